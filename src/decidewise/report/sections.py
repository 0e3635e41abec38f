"""What a report is made of: sections, each with some HTML, charts and files. A report is any list of them.

`board_section` and `failures_section` are those of every report; whoever knows more about the rows adds sections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from decidewise.report.chart import Chart, Matrix
from decidewise.report.formats import to_csv, to_latex, to_markdown
from decidewise.report.results import Board, Column, Setting
from decidewise.report.tables import regret_table, seconds_table


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    name : str
        Its place on the page, `#name`.
    title : str
        Its heading.
    label : str
        What the navigation calls it; the title unless given.
    body : Markup
        The HTML below the heading.
    charts : sequence of Chart or Matrix
        Drawn below the body, and into files.
    files : mapping
        What the body links to: content by path inside the folder of the report.
    """

    name: str
    title: str
    label: str = ""
    body: Markup = field(default_factory=Markup)
    charts: Sequence[Chart | Matrix] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)


class Share(NamedTuple):
    """A part of the bar beside the headline: a number of cells, its colour, and the section that lists them."""

    label: str
    n: int
    tone: Literal["good", "bad", "failed", "blank"]
    section: str = ""


@dataclass(frozen=True)
class Report:
    """All that a page shows.

    Parameters
    ----------
    headline : str
        The result in one line; also the title of the window.
    facts : mapping
        What is said about the rows in the summary, by name.
    summary : Markup
        HTML above the facts.
    shares : sequence of Share
        The parts of the bar beside the headline; the headline itself says how many are good.
    methods : sequence of str
        Methods that come first and look alike in every report.
    """

    title: str
    headline: str
    sections: Sequence[Section]
    facts: Mapping[str, str] = field(default_factory=dict)
    summary: Markup = field(default_factory=Markup)
    shares: Sequence[Share] = ()
    methods: Sequence[str] = ()

    @property
    def charts(self) -> list[Chart | Matrix]:
        """The charts of all sections."""
        return [chart for section in self.sections for chart in section.charts]


class FailedCell(NamedTuple):
    """Trials of one cell that failed for the same reason."""

    board: Board
    setting: Setting
    column: Column
    reason: str
    trials: Sequence[int]


def board_section(board: Board, charts: Sequence[Chart | Matrix]) -> Section:
    """Return the section of a board: its tables, its figures, and the tables as files."""
    regret, seconds = regret_table(board), seconds_table(board)
    body = render_template(
        "board.html.j2", board=board, regret=regret, seconds=seconds if charts else None, caption=regret_caption(board)
    )
    tables = {
        f"{board.name}.csv": to_csv(board),
        f"{board.name}.md": to_markdown(regret),
        f"{board.name}.tex": to_latex(regret, f"{board.title}: normalised test regret (%), mean ± standard deviation."),
        f"{board.name}_seconds.md": to_markdown(seconds),
        f"{board.name}_seconds.tex": to_latex(seconds, f"{board.title}: seconds of training, labels included."),
    }
    files = {f"tables/{name}": text.encode() for name, text in tables.items()}
    return Section(board.name, board.title, body=body, charts=charts, files=files)


def failures_section(boards: Sequence[Board]) -> list[Section]:
    """Return the section that lists failed trials with their reasons, in a list that is empty if none failed."""
    failures = list(_failures(boards))
    if not failures:
        return []
    has_degrees = any(failure.setting.degree is not None for failure in failures)
    body = render_template("failures.html.j2", failures=failures, has_degrees=has_degrees)
    return [Section("failures", "Failed trials", label="Failures", body=body)]


def facts_of(table: pa.Table) -> dict[str, str]:
    """Return what the rows say about themselves: how many they are, and which code and machine made them."""
    if not table.num_rows:
        return {}
    facts = {"Trials": f"{table.num_rows:,}"}
    facts |= {
        name.capitalize(): ", ".join(sorted(set(filter(None, table[name].to_pylist()))))
        for name in ("version", "libraries", "machine")
        if name in table.column_names
    }
    return {name: value for name, value in facts.items() if value}


def regret_caption(board: Board) -> str:
    """Return what a table of regrets shows, and from how many trials."""
    if board.n_trials == 1:
        return "Normalised test regret in percent, in one trial"
    counted = f" over {board.n_trials} trials" if board.n_trials else ""
    return f"Normalised test regret in percent: mean ± standard deviation{counted}"


def render_template(template: str, *, package: str = "decidewise.report", **context: Any) -> Markup:
    """Return the HTML of a template in the folder `templates` of a package, which may use those of this one."""
    loaders = [PackageLoader(name) for name in dict.fromkeys((package, "decidewise.report"))]
    environment = Environment(
        loader=ChoiceLoader(loaders), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}  # the order of methods is the order of the legend
    return Markup(environment.get_template(template).render(context))


def _failures(boards: Sequence[Board]) -> Iterator[FailedCell]:
    for board in boards:
        for (setting, column), cell in board.cells.items():
            reasons: dict[str, list[int]] = {}
            for failure in cell.failures:
                reasons.setdefault(failure.reason, []).append(failure.trial)
            for reason, trials in reasons.items():
                yield FailedCell(board, setting, column, reason, sorted(trials))
