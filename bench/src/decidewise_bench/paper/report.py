"""The report of the paper's rows: verdicts on the published cells, misses, the contest, and the paper's drawings.

Tables, figures and the page are those of `decidewise_bench.report`; this adds sections to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from markupsafe import Markup

from decidewise.app.pages import Chart, render_template
from decidewise_bench.paper import CONTESTS, EXPLAINED, METHODS, TITLES
from decidewise_bench.paper.contest import Contest, contest_chart, is_contest
from decidewise_bench.paper.contest_tables import contest_to_csv, contest_to_latex, contest_to_markdown
from decidewise_bench.paper.illustrations import ILLUSTRATIONS
from decidewise_bench.paper.misses import group_misses
from decidewise_bench.paper.text_figure import text_figure
from decidewise_bench.paper.verdicts import (
    MARKS,
    PAPER_TRIALS,
    PROTOCOL,
    Judgement,
    count,
    groups,
    judge,
    order,
    with_verdicts,
)
from decidewise_bench.report.chart_builders import charts_of
from decidewise_bench.report.matplotlib_charts import render
from decidewise_bench.report.page import inline_svg
from decidewise_bench.report.read_results import compare_with, read_boards, read_published
from decidewise_bench.report.results import Board, Column, Conventions, Matrix, Setting
from decidewise_bench.report.sections import (
    PACKAGE,
    Report,
    Section,
    Share,
    board_section,
    facts_of,
    failures_section,
)

#: Boards with the judgements on their published cells.
_Judged: TypeAlias = Sequence[tuple[Board, Mapping[tuple[Setting, str], Judgement]]]
CONVENTIONS = Conventions(
    titles=TITLES,
    methods=METHODS,
    reserved=(
        Contest.name, EXPLAINED, "misses", "idea", "text_shortest_path", *(drawing.name for drawing in ILLUSTRATIONS),
    ),
)  # fmt: skip


def paper_boards(table: pa.Table, folder: Path) -> list[Board]:
    """Sort rows into boards: boards of the paper's tables get verdicts, those of other plans published numbers."""
    published = read_published(folder)
    tables = {problem: numbers for problem, numbers in published.items() if problem not in CONTESTS}
    found = read_boards(table, tables, CONVENTIONS)
    boards = []
    for board in found:
        numbers = published.get(board.problem, {})
        if board.plan in CONTESTS:
            boards.append(compare_with(board, numbers))
        elif board.plan == EXPLAINED:
            theirs = {
                (at, column.method): cell
                for column in board.columns
                for (at, method), cell in numbers.items()
                if method == column.method.partition(", ")[0]
            }
            boards.append(compare_with(board, theirs))
        else:
            boards.append(with_verdicts(board, _tried(found, board)))
    return boards


def _tried(boards: Sequence[Board], board: Board) -> Board | None:
    """Return the board of the same problem under other settings."""
    return next((other for other in boards if (other.plan, other.problem) == (EXPLAINED, board.problem)), None)


def paper_report(table: pa.Table, published: Path) -> Report:
    """Return the report of the paper's rows, and of any other plans, with all its sections.

    Parameters
    ----------
    published : Path
        The folder of the paper's numbers.
    """
    boards = paper_boards(table, published)
    repeated = [board for board in boards if not is_contest(board)]
    contest = Contest.among(boards)
    cells = [(board, judge(board, _tried(boards, board))) for board in repeated if board.plan != EXPLAINED]
    counts = count(judgement for _, judgements in cells for judgement in judgements.values())
    judged = sum(counts.values())
    sections = [
        *(board_section(board, paper_charts(board)) for board in repeated),
        *_contest_sections(contest),
        *_explained_sections(boards, cells),
        *_miss_sections(cells),
        *failures_section(boards),
        _idea_section(),
    ]
    if judged:
        title, headline = "The paper, reproduced", f"{counts['reproduced']} of {judged} cells reproduced"
    elif contest.boards:
        title, headline = "Deciding better", contest.headline
    else:
        title, headline = "Benchmark", f"{table.num_rows:,} trials"
    shares = [
        Share("reproduced", counts["reproduced"], "good"),
        Share("explained by another setting", counts["explained"], "other", EXPLAINED),
        Share("missed", counts["missed"], "bad", "misses"),
        Share("failed", counts["failed"], "failed", "failures"),
        Share("not run", counts["not run"], "blank"),
    ]
    return Report(
        title,
        headline,
        sections,
        facts=_facts(table, boards),
        summary=_summary(cells) if judged else Markup(),
        shares=shares if judged else (),
        methods=METHODS,
    )


def paper_charts(board: Board) -> list[Chart | Matrix]:
    """Return the figures of a board; the figure in the paper's text comes second on the shortest path."""
    charts = charts_of(board)
    if charts and board.plan == board.problem == "shortest_path" and (figure := text_figure(board)):
        charts.insert(1, figure)
    return charts


def _render(template: str, **context: Any) -> Markup:
    return render_template(template, package="decidewise_bench.paper", shared=[PACKAGE], **context)


def _summary(cells: _Judged) -> Markup:
    tables = [(board, count(judged.values()), order(board)) for board, judged in cells if judged]
    return _render("summary.html.j2", outcomes=MARKS, tables=tables)


def _contest_sections(contest: Contest) -> list[Section]:
    if not contest.boards:
        return []
    tables = {
        "csv": contest_to_csv(contest),
        "md": contest_to_markdown(contest),
        "tex": contest_to_latex(contest),
    }
    charts = [chart for chart in map(contest_chart, contest.boards) if chart is not None]
    return [
        Section(
            contest.name,
            "Deciding better, without a solver in training",
            label="Deciding better",
            body=_render("contest.html.j2", contest=contest, mark=MARKS["missed"]),
            charts=charts,
            files={f"tables/{contest.name}.{kind}": text.encode() for kind, text in tables.items()},
        )
    ]


def _explained_sections(boards: Sequence[Board], cells: _Judged) -> list[Section]:
    tried = [(board, group) for board, _ in cells for group in groups(board, _tried(boards, board))]
    explained = [(board, cell) for board, judged in cells for cell in judged.values() if cell.outcome == "explained"]
    body = _render("explained.html.j2", tried=tried, explained=explained)
    return [Section(EXPLAINED, "What another setting explains", label="Explained", body=body)] if tried else []


def _miss_sections(cells: _Judged) -> list[Section]:
    misses = group_misses((board, judged.values()) for board, judged in cells)
    body = _render("misses.html.j2", misses=misses)
    return [Section("misses", "What was not reproduced", label="Misses", body=body)] if misses else []


@cache
def _idea_section() -> Section:
    drawings, files = [], {}
    for drawing in ILLUSTRATIONS:
        for kind, content in render(drawing.draw, drawing.name).items():
            files[f"figures/{drawing.name}.{kind}"] = content
        panels = [
            render(partial(drawing.draw, panel), f"{drawing.name}{panel}")["svg"]
            for panel in range(len(drawing.panels))
        ]
        drawings.append((drawing, [inline_svg(svg, drawing.title) for svg in panels]))
    body = _render("idea.html.j2", drawings=drawings)
    return Section("idea", "The idea in three pictures", label="The idea", body=body, files=files)


def _facts(table: pa.Table, boards: Sequence[Board]) -> dict[str, str]:
    facts = facts_of(table)
    ours, theirs = _total_seconds(boards)
    if facts and theirs:
        facts["Training time of the same trials"] = f"{_duration(theirs)} published, {_duration(ours)} here"
    return facts


def _total_seconds(boards: Sequence[Board]) -> tuple[float, float]:
    """Return our total seconds and the published ones, for `PAPER_TRIALS` trials of each cell that has both."""
    ours = theirs = 0.0
    for board in (board for board in boards if board.plan != EXPLAINED):
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
