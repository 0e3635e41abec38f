"""Build the charts of a board: every figure for which it has enough rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import exp, isfinite, log
from typing import Literal

from decidewise.app.pages import FLOOR, Axis, Chart, Mark, Panel, Series
from decidewise_bench.report.results import (
    DEFAULT_MODE,
    PUBLISHED,
    Board,
    Column,
    Matrix,
    Published,
    Setting,
    Summary,
    Trials,
    degree_text,
)
from decidewise_bench.report.tables import digits_of

_LOG_RATIO = 4  # a linear axis hides the small values beyond this ratio
#: Returns the position of the mark of one of our cells or of a published one, None to omit the mark.
Place = Callable[[Setting, Trials | Published], tuple[float, Summary] | None]


def charts_of(board: Board) -> list[Chart | Matrix]:
    """Return every figure for which the board has enough rows."""
    if not any(cell.trials for cell in board.cells.values()):
        return []
    lines = board.leading
    candidates: list[Chart | Matrix | None] = [regret_by_time(lines), regret_by_solves(lines), paired_wins(lines)]
    if board.has_several_sizes:  # with a single one, charts against samples would have one position
        candidates = [
            regret_by_samples(lines),
            *candidates[:2],
            excess_over_floor(lines),
            speed_up(lines),
            candidates[2],
        ]
    shown = [chart for chart in candidates if chart is not None]
    if board.has_many_columns:
        note = f" Of {len(board.columns)} methods, the {len(lines.columns)} with the best mean rank."
        shown = [replace(chart, caption=chart.caption + note) for chart in shown]
    by_method = None if board.has_several_sizes and not board.has_many_columns else regret_by_method(board)
    return [by_method, *shown] if by_method else shown


def regret_by_samples(board: Board) -> Chart | None:
    """Return regret against the number of training samples, one panel per degree."""
    return _by_degree(
        board,
        "regret_samples",
        "Regret against training samples",
        _regret_caption(board),
        _samples_axis(board),
        "regret, %",
        lambda setting, cell: (setting.samples, cell.regret),
        floor=True,
    )


def regret_by_method(board: Board) -> Chart | None:
    """Return the regret of each method at the largest number of samples, one panel per degree; many by their rank."""
    columns = board.ranked if board.has_many_columns else board.columns
    labels = [column.label for column in columns]
    most = max(setting.samples for setting in board.settings)
    panels = []
    for setting in (setting for setting in board.settings if setting.samples == most):
        series = []
        for each in series_of(board, [setting], lambda at, cell: (0.0, cell.regret)):
            # A published number goes to the position of the method in its default mode.
            mode = DEFAULT_MODE if each.layer == PUBLISHED else each.layer
            x = columns.index(Column(each.method, mode))
            series.append(replace(each, marks=tuple(replace(mark, x=x) for mark in each.marks)))
        if setting in board.floors:
            ends = (0, len(labels) - 1) if len(labels) > 1 else (0,)
            series.append(Series("", FLOOR, tuple(_floor_mark(x, setting, board.floors[setting]) for x in ends)))
        panels.append(Panel(degree_text(setting.degree), tuple(series)))
    return build_chart(
        f"regret_method_{board.name}",
        "Regret of each method" + (f", {most:,} samples" if board.has_several_sizes else ""),
        _regret_caption(board),
        Axis("", ticks=tuple(map(float, range(len(labels)))), names=tuple(labels)),
        "regret, %",
        panels,
    )


def regret_by_time(board: Board) -> Chart | None:
    """Return regret against training time, one panel per degree; a line joins the sample sizes of a method."""
    several = board.has_several_sizes
    return _by_degree(
        board,
        "regret_time",
        "Regret against training time, every setting",
        "Mean regret against mean seconds of training, labels included."
        + (" A line joins the sample sizes of each method, from the smallest (fastest) up." if several else ""),
        Axis("seconds", "log"),
        "regret, %",
        lambda setting, cell: at_seconds(cell),
    )


def regret_by_solves(board: Board) -> Chart | None:
    """Return regret against solver calls, one panel per degree; a line joins the sample sizes of a method."""
    calls = [cell.n_solves.mean for cell in board.cells.values() if cell.n_solves.mean > 0]
    if not calls:
        return None
    return _by_degree(
        board,
        "regret_calls",
        "Regret against solver calls",
        "Mean regret against mean solver calls of labels and training. A solver-free method has zero calls at every "
        "number of samples.",
        Axis("solver calls", "symlog", unit=min(calls) / 3),
        "regret, %",
        lambda setting, cell: (cell.n_solves.mean, cell.regret) if isinstance(cell, Trials) else None,
    )


def excess_over_floor(board: Board) -> Chart | None:
    """Return regret above the floor against samples, one panel per degree."""
    return _by_degree(
        board,
        "excess",
        "Excess over the floor",
        "Regret minus the floor (the regret of the true expected costs on the same test set), trial by trial: the part "
        "of the regret that a better prediction could remove.",
        _samples_axis(board),
        "excess regret, points",
        lambda setting, cell: (setting.samples, cell.excess) if isinstance(cell, Trials) else None,
    )


def speed_up(board: Board) -> Chart | None:
    """Return published seconds divided by ours, as geometric means over the degrees, against samples."""
    ratios: dict[tuple[Column, int], list[float]] = {}
    for (setting, column), cell in board.cells.items():
        published = board.published.get((setting, column.method))
        if published and published.seconds.mean > 0 and cell.seconds.mean > 0:
            ratios.setdefault((column, setting.samples), []).append(published.seconds.mean / cell.seconds.mean)
    series = []
    for column in board.columns:
        marks = []
        for samples in sorted(samples for found, samples in ratios if found == column):
            ratio = exp(sum(map(log, ratios[column, samples])) / len(ratios[column, samples]))
            marks.append(Mark(samples, ratio, 0.0, f"{column.label} · n = {samples:,}\n{ratio:,.0f} times faster"))
        series.append(Series(*column, tuple(marks)))
    return build_chart(
        f"speed_up_{board.name}",
        "Speed-up over the published seconds",
        "Published training seconds divided by ours (labels included, one thread per trial), as the geometric mean "
        "over the degrees. The machines differ, which scales the speed-ups of all methods alike.",
        _samples_axis(board),
        "times faster",
        [Panel("all degrees" if board.has_degrees else "", tuple(series))],
    )


def paired_wins(board: Board) -> Matrix | None:
    """Return how often each column beats each other column on the same data; a tie counts as half a win."""
    columns = [column for column in board.columns if any(at[1] == column and c.trials for at, c in board.cells.items())]
    if len(columns) < 2:
        return None
    counts = [[_count_wins(board, one, other) for other in columns] for one in columns]
    return Matrix(
        f"paired_wins_{board.name}",
        "Paired wins",
        "In percent of the trials, how often the method of the row has a lower regret than the method of the column on "
        "the same data. A tie counts as half.",
        tuple(columns),
        tuple(column.label for column in columns),
        tuple(tuple(100 * wins / n if n else None for wins, n in row) for row in counts),
        tuple(tuple(n for _, n in row) for row in counts),
    )


def _count_wins(board: Board, one: Column, other: Column) -> tuple[float, int]:
    """Return the wins of one column over another, and the number of trials that both have."""
    if one == other:
        return 0.0, 0
    wins, meetings = 0.0, 0
    for setting in board.settings:
        left = board.cells.get((setting, one), Trials()).trials
        right = board.cells.get((setting, other), Trials()).trials
        for trial in left.keys() & right.keys():
            gap = right[trial].regret - left[trial].regret
            wins += 1.0 if gap > 0 else 0.5 if gap == 0 else 0.0
            meetings += 1
    return wins, meetings


def series_of(
    board: Board, settings: Sequence[Setting], place: Place, size: Callable[[Setting], float] = lambda _: 1.0
) -> Iterator[Series]:
    """Yield the series of each column over the settings; the published series of a method comes before ours."""
    for column in board.columns:
        if column.mode == DEFAULT_MODE:
            theirs = ((at, board.published.get((at, column.method))) for at in settings)
            yield Series(column.method, PUBLISHED, _marks(board, theirs, column, place, size))
        ours = ((at, board.cells.get((at, column))) for at in settings)
        yield Series(*column, _marks(board, ours, column, place, size))


def build_chart(name: str, title: str, caption: str, x: Axis, y: str, panels: Sequence[Panel]) -> Chart | None:
    """Return a chart without empty series and panels, None if none is left.

    The y axis is logarithmic if a linear one would hide the small values.
    """
    panels = [Panel(p.title, tuple(series for series in p.series if series.marks)) for p in panels]
    panels = [panel for panel in panels if any(series.layer not in (PUBLISHED, FLOOR) for series in panel.series)]
    if not panels:
        return None
    heights = [[mark.y for series in panel.series for mark in series.marks] for panel in panels]
    wide = any(max(ys) > _LOG_RATIO * min(ys) for ys in heights)
    scale: Literal["linear", "log"] = "log" if wide and min(map(min, heights)) > 0 else "linear"
    return Chart(name, title, caption, x, Axis(y, scale), tuple(panels))


def at_seconds(cell: Trials | Published) -> tuple[float, Summary] | None:
    """Return the position of a cell at its training time."""
    # A coarse clock may measure zero seconds for an exact fit, which a logarithmic axis cannot show.
    return (cell.seconds.mean, cell.regret) if cell.seconds.mean > 0 else None


def _by_degree(
    board: Board, name: str, title: str, caption: str, x: Axis, y: str, place: Place, *, floor: bool = False
) -> Chart | None:
    panels = []
    for degree in board.degrees:
        settings = [setting for setting in board.settings if setting.degree == degree]
        series = list(series_of(board, settings, place))
        if floor:
            marks = tuple(_floor_mark(at.samples, at, board.floors[at]) for at in settings if at in board.floors)
            series.append(Series("", FLOOR, marks))
        panels.append(Panel(degree_text(degree), tuple(series)))
    return build_chart(f"{name}_{board.name}", title, caption, x, y, panels)


def _floor_mark(x: float, setting: Setting, floor: float) -> Mark:
    return Mark(x, floor, 0.0, f"floor · n = {setting.samples:,}\n{floor:.3f} %")


def _marks(
    board: Board,
    cells: Iterable[tuple[Setting, Trials | Published | None]],
    column: Column,
    place: Place,
    size: Callable[[Setting], float],
) -> tuple[Mark, ...]:
    marks = []
    for setting, cell in cells:
        placed = place(setting, cell) if cell else None
        if placed and isfinite(placed[0]) and isfinite(placed[1].mean):
            marks.append(Mark(placed[0], *placed[1], _note(board, setting, column), size(setting)))
    return tuple(marks)


def _note(board: Board, setting: Setting, column: Column) -> str:
    """Return the note that the page shows when the mouse is over the mark of a cell."""
    digits = digits_of(board)
    place = f"{degree_text(setting.degree)}, n = {setting.samples:,}".removeprefix(", ")
    lines = [f"{column.label} · {place}"]
    cell = board.cells.get((setting, column), Trials())
    if cell.trials:
        mean, std = cell.regret
        lines.append(f"ours {mean:.{digits}f} ± {std:.{digits}f} % ({len(cell.trials)} trials)")
        lines.append(f"{cell.seconds.mean:.3g} s, {cell.n_solves.mean:,.0f} solver calls")
    published = board.published.get((setting, column.method)) if column.mode == DEFAULT_MODE else None
    if published:
        mean, std = published.regret
        seconds = f", {published.seconds.mean:.3g} s" if isfinite(published.seconds.mean) else ""
        lines.append(f"published {mean:.2f} ± {std:.2f} %{seconds}")
    if published and cell.trials:
        verdict = board.verdicts.get((setting, column.method))
        outcome = f": {verdict.word}" if verdict else ""
        lines.append(f"difference {cell.regret.mean - published.regret.mean:+.{digits}f}{outcome}")
    return "\n".join(lines)


def _regret_caption(board: Board) -> str:
    return (
        "Mean normalised test regret, with the standard deviation over trials."
        + (" Hollow marks are the published means." if board.published else "")
        + (" The dashed line without marks is the floor, reached by the true expected costs." if board.floors else "")
    )


def _samples_axis(board: Board) -> Axis:
    return Axis("training samples", "log", ticks=tuple(sorted({float(setting.samples) for setting in board.settings})))
