"""Rows -> files: the one place of the report that touches the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from matplotlib.figure import Figure

from decidewise.paper.contest import Contest
from decidewise.paper.illustrations import ILLUSTRATIONS
from decidewise.report.chart import Chart, Matrix
from decidewise.report.chart_builders import charts_of
from decidewise.report.formats import (
    contest_to_csv,
    contest_to_latex,
    contest_to_markdown,
    to_csv,
    to_latex,
    to_markdown,
)
from decidewise.report.matplotlib_charts import draw_chart, draw_matrix, render
from decidewise.report.page import render_page
from decidewise.report.read_results import read_boards
from decidewise.report.results import Board
from decidewise.report.style import Style, styles
from decidewise.report.tables import regret_table, seconds_table
from decidewise.runtime.files import write_whole


def write_report(table: pa.Table, out: Path, published: Path | None = None) -> Path:
    """Write `report.html` into `out`, with `tables/` and `figures/` beside it, and return the page's path.

    All files are replaced together, when every one of them has been written: an error leaves the old report.

    Parameters
    ----------
    table : pyarrow.Table
        One row per (plan, problem, degree, samples, method, mode, trial); any subset will do.
    out : Path
        A folder; made if it is missing. Files of an earlier report are replaced.
    published : Path, optional
        A folder of published numbers, one CSV file a problem; without it nothing is compared.
    """
    out.mkdir(parents=True, exist_ok=True)  # before any work is done in vain
    boards = read_boards(table, published)
    charts = {board.name: charts_of(board) for board in boards}
    looks = styles(method for some in charts.values() for chart in some for method in chart.methods)
    files = {out / "tables" / name: text.encode() for name, text in _tables(boards)}
    for board in boards:
        for chart in charts[board.name]:
            files |= _figure(out, chart.name, render(partial(_draw, chart, looks), chart.name))
    drawings = []
    for drawing in ILLUSTRATIONS:
        files |= _figure(out, drawing.name, render(drawing.draw, drawing.name))
        panels = [
            render(partial(drawing.draw, panel), f"{drawing.name}{panel}")["svg"]
            for panel in range(len(drawing.panels))
        ]
        drawings.append((drawing, panels))
    page = out / "report.html"
    files[page] = render_page(table, boards, charts, looks, drawings).encode()
    write_whole(files)
    return page


def _tables(boards: Sequence[Board]) -> Iterator[tuple[str, str]]:
    for board in boards:
        if not board.is_contest:
            yield from _board_tables(board)
    contest = Contest.among(boards)
    if contest.boards:
        yield f"{Contest.name}.csv", contest_to_csv(contest)
        yield f"{Contest.name}.md", contest_to_markdown(contest)
        yield f"{Contest.name}.tex", contest_to_latex(contest)


def _board_tables(board: Board) -> Iterator[tuple[str, str]]:
    regret, seconds = regret_table(board), seconds_table(board)
    yield f"{board.name}.csv", to_csv(board)
    yield f"{board.name}.md", to_markdown(regret)
    yield (
        f"{board.name}.tex",
        to_latex(regret, f"{board.title}: normalised test regret (%), mean ± standard deviation."),
    )
    yield f"{board.name}_seconds.md", to_markdown(seconds)
    yield f"{board.name}_seconds.tex", to_latex(seconds, f"{board.title}: seconds of training, labels included.")


def _draw(chart: Chart | Matrix, looks: dict[str, Style]) -> Figure:
    return draw_matrix(chart) if isinstance(chart, Matrix) else draw_chart(chart, looks)


def _figure(out: Path, name: str, files: Mapping[str, bytes]) -> dict[Path, bytes]:
    return {out / "figures" / f"{name}.{kind}": content for kind, content in files.items()}
