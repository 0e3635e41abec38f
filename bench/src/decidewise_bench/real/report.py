"""The report on real data: one table of all tasks and methods, then each task by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from decidewise.app.pages import FLOOR, Chart, render_template
from decidewise_bench.real import METHODS, TITLES
from decidewise_bench.real.overview import Overview, to_csv, to_markdown
from decidewise_bench.report.chart_builders import regret_by_method
from decidewise_bench.report.read_results import read_boards, read_published
from decidewise_bench.report.results import Board, Conventions
from decidewise_bench.report.sections import PACKAGE, Report, Section, board_section, facts_of, failures_section

CONVENTIONS = Conventions(titles=TITLES, methods=METHODS, reserved=(Overview.name,))


def real_report(table: pa.Table, published: Path | None = None) -> Report:
    """Return the report of rows on real data, with published numbers if a folder of them is given."""
    boards = read_boards(table, read_published(published) if published else None, CONVENTIONS)
    overview = Overview.of(boards)
    sections = [
        Section(
            overview.name,
            "All tasks",
            body=render_template(
                "overview.html.j2", package="decidewise_bench.real", shared=[PACKAGE], overview=overview
            ),
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
    """Return the regret of each method, without the floor: only synthetic data have one, and the table shows it."""
    chart = regret_by_method(board) if any(cell.trials for cell in board.cells.values()) else None
    if chart is None:
        return []
    panels = [replace(p, series=tuple(s for s in p.series if s.layer != FLOOR)) for p in chart.panels]
    return [replace(chart, panels=tuple(panels))]
