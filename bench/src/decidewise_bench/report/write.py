"""Write reports: the only module of the report that writes files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
from matplotlib.figure import Figure

from decidewise.app.pages import Chart, Style, styles
from decidewise.kit.files import write_whole
from decidewise_bench.report.chart_builders import charts_of
from decidewise_bench.report.matplotlib_charts import draw_chart, draw_matrix, render
from decidewise_bench.report.page import render_page
from decidewise_bench.report.read_results import read_boards, read_published
from decidewise_bench.report.results import Matrix
from decidewise_bench.report.sections import Report, board_section, facts_of, failures_section


def benchmark_report(table: pa.Table, published: Path | None = None) -> Report:
    """Return the report of any rows: one section per board, and one of the failures.

    Parameters
    ----------
    table : pyarrow.Table
        One row per (plan, problem, degree, samples, method, mode, trial); any subset will do.
    published : Path, optional
        A folder of published numbers to show beside ours, one CSV file per problem; see `read_published`.
    """
    boards = read_boards(table, read_published(published) if published else None)
    sections = [board_section(board, charts_of(board)) for board in boards]
    return Report(
        title="Benchmark",
        headline=f"{table.num_rows:,} trials",
        sections=[*sections, *failures_section(boards)],
        facts=facts_of(table),
    )


def write_report(report: Report, out: Path) -> Path:
    """Write `report.html` into `out`, with `tables/` and `figures/` beside it, and return the page's path.

    The folder is created if it does not exist. Old files are replaced only after all new ones have been written; an
    error before that leaves the old report.
    """
    looks = styles((method for chart in report.charts for method in chart.methods), first=report.methods)
    files = {out / path: content for section in report.sections for path, content in section.files.items()}
    for chart in report.charts:
        files |= {out / path: content for path, content in figure_files(chart, looks).items()}
    page = out / "report.html"
    files[page] = render_page(report, looks).encode()
    write_whole(files)
    return page


def figure_files(chart: Chart | Matrix, looks: Mapping[str, Style]) -> dict[str, bytes]:
    """Return a chart as PNG and SVG, by path inside the folder of a report."""
    drawn = render(partial(_draw, chart, looks), chart.name)
    return {f"figures/{chart.name}.{kind}": content for kind, content in drawn.items()}


def _draw(chart: Chart | Matrix, looks: Mapping[str, Style]) -> Figure:
    return draw_matrix(chart) if isinstance(chart, Matrix) else draw_chart(chart, looks)
