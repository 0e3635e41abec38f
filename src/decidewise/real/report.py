"""The report on real data: one table of all tasks and methods, then each task by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from decidewise.real import METHODS, TITLES
from decidewise.real.overview import Overview, to_csv, to_markdown
from decidewise.report.chart import FLOOR, Chart
from decidewise.report.chart_builders import regret_by_method
from decidewise.report.read_results import read_boards, read_published
from decidewise.report.results import Board, Conventions
from decidewise.report.sections import Report, Section, board_section, facts_of, failures_section, render_template
from decidewise.report.write import write_files

CONVENTIONS = Conventions(titles=TITLES, methods=METHODS, reserved=(Overview.name,))


def write_report(table: pa.Table, out: Path, published: Path | None = None) -> Path:
    """Write the report of rows on real data, as `decidewise.report.write_report` does, and return the page's path."""
    out.mkdir(parents=True, exist_ok=True)  # first, so that a bad path fails before the work starts
    boards = read_boards(table, read_published(published) if published else None, CONVENTIONS)
    return write_files(real_report(table, boards), out)


def real_report(table: pa.Table, boards: Sequence[Board]) -> Report:
    """Return the report with all its sections."""
    overview = Overview.of(boards)
    sections = [
        Section(
            overview.name,
            "All tasks",
            body=render_template("overview.html.j2", package="decidewise.real", overview=overview),
            files={
                f"tables/{overview.name}.md": to_markdown(overview).encode(),
                f"tables/{overview.name}.csv": to_csv(overview).encode(),
            },
        ),
        *(replace(board_section(board, _charts(board)), title=board.problem_title) for board in boards),
        *failures_section(boards),
    ]
    return Report("Real data", overview.headline, sections, facts=facts_of(table), methods=METHODS)


def _charts(board: Board) -> list[Chart]:
    """Return the regret of each method, without the floor: only made data have one, and the table shows it."""
    chart = regret_by_method(board) if any(cell.trials for cell in board.cells.values()) else None
    if chart is None:
        return []
    panels = [replace(p, series=tuple(s for s in p.series if s.layer != FLOOR)) for p in chart.panels]
    return [replace(chart, panels=tuple(panels))]
