"""Sections of a report: each has HTML, charts and files. A report is a list of sections.

Every report has the sections of its boards and of failures, if any; other packages can add their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import pyarrow as pa
from markupsafe import Markup

from decidewise.app.pages import Chart, render_template
from decidewise_bench.report.formats import to_csv, to_latex, to_markdown
from decidewise_bench.report.results import Board, Column, Failure, Matrix, Setting, Trials
from decidewise_bench.report.tables import regret_table, seconds_table

#: Whose templates the sections of all reports use.
PACKAGE = "decidewise_bench.report"


@dataclass(frozen=True)
class Section:
    """One section of the page.

    Parameters
    ----------
    name : str
        The id of the section on the page, as in the link `#name`.
    title : str
        The heading.
    label : str
        The text of its link in the navigation; by default the title.
    body : Markup
        The HTML below the heading.
    charts : sequence of Chart or Matrix
        Charts to draw below the body and into files.
    files : mapping
        The files that the body links to: content by path inside the folder of the report.
    """

    name: str
    title: str
    label: str = ""
    body: Markup = field(default_factory=Markup)
    charts: Sequence[Chart | Matrix] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)


class Share(NamedTuple):
    """One part of the bar beside the headline: a number of cells, a colour, and the section that lists the cells."""

    label: str
    n: int
    tone: Literal["good", "other", "bad", "failed", "blank"]
    section: str = ""


@dataclass(frozen=True)
class Report:
    """The contents of a page.

    Parameters
    ----------
    headline : str
        The result in one line; also the title of the window.
    facts : mapping
        Facts about the rows for the summary, by name.
    summary : Markup
        HTML above the facts.
    shares : sequence of Share
        The parts of the bar beside the headline. The headline itself gives the number of good cells.
    methods : sequence of str
        Methods that come first and have the same style in every report.
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
    """Trials of one cell that failed, or were refused, for the same reason."""

    board: Board
    setting: Setting
    column: Column
    reason: str
    trials: Sequence[int]


def board_section(board: Board, charts: Sequence[Chart | Matrix]) -> Section:
    """Return the section of a board: its tables, its figures, and the tables as files."""
    regret, seconds = regret_table(board), seconds_table(board)
    body = render_template(
        "board.html.j2",
        package=PACKAGE,
        board=board,
        regret=regret,
        seconds=seconds if charts else None,
        caption=regret_caption(board),
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
    """Return the sections of failed and of refused trials with their reasons, each only if there are some."""
    sections = []
    for name, title, failures in (
        ("failures", "Failed trials", list(_failures(boards, lambda cell: cell.failures))),
        ("refusals", "Methods that are not for such a problem", list(_failures(boards, lambda cell: cell.refusals))),
    ):
        if failures:
            has_degrees = any(failure.setting.degree is not None for failure in failures)
            body = render_template(
                "failures.html.j2", package=PACKAGE, failures=failures, has_degrees=has_degrees, title=title
            )
            sections.append(Section(name, title, label=name.capitalize(), body=body))
    return sections


def facts_of(table: pa.Table) -> dict[str, str]:
    """Return facts about the rows: their number, and the code, the libraries and the machines that computed them."""
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
    """Return the caption of a table of regrets, with the number of trials."""
    if board.n_trials == 1:
        return "Normalised test regret in percent, in one trial"
    counted = f" over {board.n_trials} trials" if board.n_trials else ""
    return f"Normalised test regret in percent: mean ± standard deviation{counted}"


def _failures(boards: Sequence[Board], of: Callable[[Trials], list[Failure]]) -> Iterator[FailedCell]:
    for board in boards:
        for (setting, column), cell in board.cells.items():
            reasons: dict[str, list[int]] = {}
            for failure in of(cell):
                reasons.setdefault(failure.reason, []).append(failure.trial)
            for reason, trials in reasons.items():
                yield FailedCell(board, setting, column, reason, sorted(trials))
