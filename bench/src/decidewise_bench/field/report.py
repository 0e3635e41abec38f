"""The report of the field: the table, the ranks, what it costs, a sentence for each method, and published numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path

import pyarrow as pa

from decidewise.app.pages import FLOOR, Axis, Chart, Mark, Panel, Series, render_template
from decidewise_bench.field import TITLES
from decidewise_bench.field.published_numbers import HEADS, comparisons, to_markdown_lines
from decidewise_bench.field.ranks import LEVEL
from decidewise_bench.field.sentences import sentence_of
from decidewise_bench.field.standings import REFERENCE, Standings, numbers_of, to_csv, to_markdown
from decidewise_bench.report.chart_builders import build_chart, regret_by_solves, regret_by_time
from decidewise_bench.report.read_results import compare_with, read_boards, read_published
from decidewise_bench.report.results import DEFAULT_MODE, PUBLISHED, Board, Conventions
from decidewise_bench.report.sections import PACKAGE, Report, Section, facts_of, failures_section

#: Below this many percent the axis of regrets is linear.
_SMALL_REGRET = 0.5
_PARTS = ("standings", "ranks", "price", "sentences", "published")


def field_report(table: pa.Table, published: Path) -> Report:
    """Return the report of the field's rows: sections of each plan, then published numbers, failures and refusals.

    Parameters
    ----------
    published : Path
        The folder of published numbers, one CSV file per problem.
    """
    numbers = read_published(published)
    boards = [
        compare_with(board, numbers.get(board.problem, {}))
        for board in read_boards(table, None, Conventions(titles=TITLES, reserved=_PARTS))
    ]
    return report_of_boards(table, boards)


def report_of_boards(table: pa.Table, boards: Sequence[Board]) -> Report:
    """Return the report of rows that are sorted into boards."""
    held = [board for board in boards if board.published]
    plans = dict.fromkeys(board.plan for board in boards if not board.published)
    field = [Standings(plan, [b for b in boards if b.plan == plan and not b.published]) for plan in plans]
    sections = [section for standings in field for section in _sections(standings, named=len(field) > 1)]
    return Report(
        "The table of the field",
        _headline(field, table),
        [*sections, *_published_section(held), *failures_section(boards)],
        facts=facts_of(table),
    )


def _headline(field: Sequence[Standings], table: pa.Table) -> str:
    if not field:
        return f"{table.num_rows:,} trials"
    first = field[0]
    trials = "1 trial" if first.n_trials == 1 else f"{first.n_trials} trials"
    return f"{len(first.methods)} methods on {len(first.boards)} problems, {trials}"


def _sections(standings: Standings, *, named: bool) -> list[Section]:
    end, of = (f"_{standings.plan}", f" ({standings.plan})") if named else ("", "")
    page = partial(
        render_template, package="decidewise_bench.field", shared=[PACKAGE], standings=standings, reference=REFERENCE
    )
    table = f"standings{end}"
    return [
        Section(
            table,
            f"All problems{of}",
            body=page("standings.html.j2", name=table, numbers_of=numbers_of),
            files={
                f"tables/{table}.md": to_markdown(standings).encode(),
                f"tables/{table}.csv": to_csv(standings).encode(),
            },
        ),
        Section(
            f"ranks{end}",
            f"Average ranks{of}",
            body=page("ranks.html.j2", level=LEVEL, isfinite=isfinite),
            charts=[chart for chart in [_rank_chart(standings, f"average_ranks{end}")] if chart],
        ),
        Section(
            f"price{end}",
            f"What it costs{of}",
            charts=[
                chart
                for chart in (
                    _all_problems(standings, regret_by_time, f"regret_seconds{end}", "Regret against seconds"),
                    _all_problems(standings, regret_by_solves, f"regret_solves{end}", "Regret against solver calls"),
                )
                if chart
            ],
        ),
        Section(
            f"sentences{end}",
            f"One sentence a method{of}",
            label="Sentences",
            body=page("sentences.html.j2", sentence_of=sentence_of),
        ),
    ]


def _rank_chart(standings: Standings, name: str) -> Chart | None:
    """Return the average ranks; whiskers of half the critical difference overlap where methods cannot be told apart."""
    ranks = standings.ranks
    reach = ranks.critical / 2 if isfinite(ranks.critical) else 0.0
    series = tuple(
        Series(method, DEFAULT_MODE, (Mark(place, rank, reach, f"{method}\naverage rank {rank:.2f}"),))
        for place, (method, rank) in enumerate(ranks.mean.items())
        if isfinite(rank)
    )
    names = tuple(ranks.mean)
    chart = build_chart(
        name,
        "Average rank of each method with a result on every problem",
        f"Over {ranks.n_blocks} draws of data; 1 is the best. Whiskers are half of the critical difference of Nemenyi: "
        "two methods differ at the level 5 % if theirs do not overlap.",
        Axis("", ticks=tuple(map(float, range(len(names)))), names=names),
        "average rank",
        [Panel("", series)],
    )
    return chart and replace(chart, y=Axis("average rank"))


def _all_problems(
    standings: Standings, builder: Callable[[Board], Chart | None], name: str, title: str
) -> Chart | None:
    """Return one chart with a panel for each problem, of the charts of its board."""
    found = [(board, builder(board)) for board in standings.boards]
    charts = [(board, chart) for board, chart in found if chart is not None]
    if not charts:
        return None
    panels = [replace(chart.panels[-1], title=board.problem_title) for board, chart in charts]
    panels = [replace(p, series=tuple(s for s in p.series if s.layer not in (FLOOR, PUBLISHED))) for p in panels]
    caption = (
        "Mean normalised regret on test rows, with the standard deviation over trials, against the mean of the whole "
        "search: all tries and the last fit, on one thread, labels and validation included. Point at a mark for its "
        "name."
    )
    first = charts[0][1]
    x = replace(first.x, unit=min(chart.x.unit for _, chart in charts))
    y = replace(first.y, scale="symlog", unit=_SMALL_REGRET)  # a regret may be zero
    return replace(first, name=name, title=title, caption=caption, x=x, y=y, panels=tuple(panels))


def _published_section(boards: Sequence[Board]) -> list[Section]:
    if not boards:
        return []
    compared = [(board, comparisons(board)) for board in boards]
    body = render_template(
        "published.html.j2", package="decidewise_bench.field", shared=[PACKAGE], boards=compared, heads=HEADS
    )
    files = {"tables/published.md": to_markdown_lines(compared).encode()}
    return [Section("published", "Published numbers", label="Published", body=body, files=files)]
