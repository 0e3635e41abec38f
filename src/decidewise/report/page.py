"""Boards -> one HTML page that needs nothing else: styles, script and data are inside, nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

import pyarrow as pa
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from decidewise.paper.contest import Contest
from decidewise.paper.illustrations import Illustration
from decidewise.paper.misses import group_misses
from decidewise.paper.verdicts import PAPER_TRIALS, Judgement, Order, Verdict, count, judge, order
from decidewise.report.chart import FLOOR, PUBLISHED, Chart, Matrix
from decidewise.report.formats import MARKS
from decidewise.report.results import PROTOCOL, Board, Column, Setting, in_order
from decidewise.report.style import DARK, INK, LIGHT, Style
from decidewise.report.tables import Table, regret_table, seconds_table


@dataclass(frozen=True)
class Section:
    """What the page shows of one board."""

    board: Board
    comparisons: Sequence[Judgement]
    charts: Sequence[Chart | Matrix]

    @property
    def caption(self) -> str:
        """What the table shows, and from how many trials."""
        trials = self.board.n_trials
        if trials == 1:
            return "Normalised test regret in percent, in one trial"
        counted = f" over {trials} trials" if trials else ""
        return f"Normalised test regret in percent: mean ± standard deviation{counted}"

    @property
    def counts(self) -> dict[Verdict, int]:
        """The cells of each verdict; empty where nothing is published."""
        return count(self.comparisons) if self.comparisons else {}

    @property
    def order(self) -> Order | None:
        """How often MSE and WISE are in the published order."""
        return order(self.board)

    @property
    def regret(self) -> Table:
        """The table of regrets."""
        return regret_table(self.board)

    @property
    def seconds(self) -> Table | None:
        """The table of training times, None before there are any."""
        return seconds_table(self.board) if self.charts else None


@dataclass(frozen=True)
class FailedCell:
    """Trials of one cell that failed for the same reason."""

    board: Board
    setting: Setting
    column: Column
    reason: str
    trials: Sequence[int]


def render_page(
    table: pa.Table,
    boards: Sequence[Board],
    charts: Mapping[str, Sequence[Chart | Matrix]],
    styles: Mapping[str, Style],
    illustrations: Sequence[tuple[Illustration, Sequence[bytes]]],
) -> str:
    """Return the page.

    Parameters
    ----------
    table : pyarrow.Table
        The rows, for what is said about machine and version.
    boards : sequence of Board
    charts : mapping
        The charts of each board, by its name.
    styles : mapping
        The look of each method.
    illustrations : sequence
        Drawings, each with the SVG of its panels.
    """
    sections = [
        Section(board, list(judge(board).values()), charts[board.name]) for board in boards if not board.is_contest
    ]
    contest = Contest.among(boards)
    judged = [comparison for section in sections for comparison in section.comparisons]
    counts = count(judged) if judged else {}
    environment = Environment(
        loader=PackageLoader("decidewise.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}  # the order of methods is the order of the legend
    return environment.get_template("report.html.j2").render(
        title="The paper, reproduced" if judged else "Deciding better" if contest.boards else "Benchmark",
        lead="Methods compared by the regret of the decisions they lead to. Lower is better.",
        headline=_headline(table, judged, contest),
        counts=counts,
        facts=_facts(table, boards),
        boards=sections,
        contest=contest,
        contest_charts=[chart for board in contest.boards for chart in charts[board.name]],
        misses=group_misses((section.board, section.comparisons) for section in sections),
        failures=list(_failures(boards)),
        illustrations=[
            {"illustration": drawing, "panels": [_inline(svg, drawing.title) for svg in panels]}
            for drawing, panels in illustrations
        ],
        styles=styles if any(charts.values()) else {},
        layers=_layers(chart for board in boards for chart in charts[board.name]),
        marks=MARKS,
        light=LIGHT,
        dark=DARK,
        css=_source("report.css"),
        js=_source("report.js"),
        data=_data(styles, [chart for board in boards for chart in charts[board.name]]),
    )


def summary_line(comparisons: Iterable[Judgement]) -> str:
    """Return the line that says it all: how many of the published cells are reproduced."""
    counts = count(comparisons)
    return f"{counts['reproduced']} of {sum(counts.values())} cells reproduced"


def _headline(table: pa.Table, judged: Sequence[Judgement], contest: Contest) -> str:
    if judged:
        return summary_line(judged)
    return contest.headline if contest.boards else f"{table.num_rows:,} trials"


def _source(name: str) -> Markup:
    return Markup((files("decidewise.report") / "templates" / name).read_text(encoding="utf-8"))


def _facts(table: pa.Table, boards: Sequence[Board]) -> dict[str, str]:
    if not table.num_rows:
        return {}
    facts = {"Trials": f"{table.num_rows:,}"}
    facts |= {
        name.capitalize(): ", ".join(sorted(set(filter(None, table[name].to_pylist()))))
        for name in ("version", "machine")
    }
    ours, theirs = _clocks(boards)
    if theirs:
        facts["Training time of the same trials"] = f"{_duration(theirs)} published, {_duration(ours)} here"
    return {name: value for name, value in facts.items() if value}


def _clocks(boards: Sequence[Board]) -> tuple[float, float]:
    """Return our seconds and the published ones, over the cells that have both, for as many trials as published."""
    ours = theirs = 0.0
    for board in boards:
        for (setting, method), published in board.published.items():
            cell = board.cells.get((setting, Column(method, PROTOCOL)))
            if cell and cell.seconds.mean >= 0 and published.seconds.mean >= 0:
                ours += PAPER_TRIALS * cell.seconds.mean
                theirs += PAPER_TRIALS * published.seconds.mean
    return ours, theirs


def _duration(seconds: float) -> str:
    """Return a duration in the largest unit that fits.

    >>> [_duration(seconds) for seconds in (12.34, 600, 7200, 846_720)]
    ['12.3 seconds', '10.0 minutes', '2.0 hours', '9.8 days']
    """
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} seconds"


def _failures(boards: Sequence[Board]) -> Iterable[FailedCell]:
    for board in boards:
        for (setting, column), cell in board.cells.items():
            reasons: dict[str, list[int]] = {}
            for failure in cell.failures:
                reasons.setdefault(failure.reason, []).append(failure.trial)
            for reason, trials in reasons.items():
                yield FailedCell(board, setting, column, reason, sorted(trials))


def _layers(charts: Iterable[Chart | Matrix]) -> list[str]:
    found = {
        series.layer
        for chart in charts
        if isinstance(chart, Chart)
        for panel in chart.panels
        for series in panel.series
    }
    modes = in_order(sorted(found - {PUBLISHED, FLOOR}), first=(PROTOCOL, "exact"))
    return [*modes, *(layer for layer in (PUBLISHED, FLOOR) if layer in found)]


def _data(styles: Mapping[str, Style], charts: Sequence[Chart | Matrix]) -> dict[str, Any]:
    """Return what the script draws; marks are short arrays, and a note that several charts share is stored once."""
    notes: dict[str, int] = {}

    def encode(chart: Chart | Matrix) -> dict[str, Any]:
        encoded = asdict(chart)
        if isinstance(chart, Matrix):
            return encoded | {"columns": [{"method": method, "layer": mode} for method, mode in chart.columns]}
        for panel in encoded["panels"]:
            for series in panel["series"]:
                series["marks"] = [
                    [*(float(f"{mark[name]:.6g}") for name in ("x", "y", "spread")),
                     notes.setdefault(mark["note"], len(notes)), mark["size"]]
                    for mark in series["marks"]
                ]  # fmt: skip
        return encoded

    drawn = {chart.name: encode(chart) for chart in charts}
    looks = {method: asdict(style) for method, style in styles.items()}
    return {"protocol": PROTOCOL, "styles": looks, "charts": drawn, "notes": list(notes)}


def _inline(svg: bytes, label: str) -> Markup:
    """Return a Matplotlib SVG as an element of the page: no prologue, no fixed size, ink in the colour of the text."""
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # names like patch_1 repeat from drawing to drawing
    colors = {INK: "currentColor", "#ffffff": "transparent"} | {c: f"var(--c{i})" for i, c in enumerate(LIGHT)}
    for fixed, themed in colors.items():
        text = text.replace(fixed, themed)
    head, body = text.split(">", 1)
    (box,) = re.findall(r'viewBox="[^"]*"', head)
    return Markup('<svg {} role="img" aria-label="{}">{}').format(Markup(box), label, Markup(body))
