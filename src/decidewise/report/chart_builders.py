"""Boards -> charts: every figure that the rows are enough for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import exp, isfinite, log
from typing import Literal

from decidewise.paper.contest import contest_chart
from decidewise.paper.verdicts import judge
from decidewise.report.chart import FLOOR, PUBLISHED, Axis, Chart, Mark, Matrix, Panel, Series
from decidewise.report.results import PROTOCOL, Board, Column, Published, Setting, Summary, Trials
from decidewise.report.tables import digits_of

#: The degrees and sample sizes in the figure of the paper's text.
TEXT_DEGREES, TEXT_SAMPLES = (1, 4, 8), (400, 1600)
_LOG_RATIO = 4  # a linear axis hides the small values beyond this ratio
# What a series is made of: our cell or the published one -> where its mark is, None to leave it out.
_Place = Callable[[Setting, Trials | Published], tuple[float, Summary] | None]


def charts_of(board: Board) -> list[Chart | Matrix]:
    """Return every figure that the rows of a board are enough for."""
    if not any(cell.trials for cell in board.cells.values()):
        return []
    if board.is_contest:
        return [chart for chart in [contest_chart(board)] if chart is not None]
    candidates: list[Chart | Matrix | None] = [
        regret_by_samples(board),
        regret_by_time_as_in_the_text(board) if board.problem == board.plan == "shortest_path" else None,
        regret_by_time(board),
        regret_by_solver_calls(board),
        excess_over_floor(board),
        speed_up(board),
        paired_wins(board),
    ]
    return [chart for chart in candidates if chart is not None]


def regret_by_samples(board: Board) -> Chart | None:
    """Return regret against the number of training samples, one panel a degree."""
    return _by_degree(
        board,
        "regret_samples",
        "Regret against training samples",
        "Mean normalised test regret, with the standard deviation over trials."
        + (" Hollow marks are the published means." if board.published else "")
        + (" The dotted line is the floor, the regret of the true expected costs." if board.floors else ""),
        _samples_axis(board),
        "regret, %",
        lambda setting, cell: (setting.samples, cell.regret),
        floor=True,
    )


def regret_by_time(board: Board) -> Chart | None:
    """Return regret against training time, one panel a degree, a path through the sample sizes."""
    return _by_degree(
        board,
        "regret_time",
        "Regret against training time, every setting",
        "Mean regret against mean seconds of training, labels included. Each path goes through the sample sizes, from "
        "the smallest (fastest) to the largest.",
        Axis("seconds", "log"),
        "regret, %",
        lambda setting, cell: _at_seconds(cell),
    )


def regret_by_time_as_in_the_text(board: Board) -> Chart | None:
    """Return regret against training time for the settings in the paper's text, one panel a sample size."""
    panels = []
    for samples in TEXT_SAMPLES:
        settings = [at for at in board.settings if at.samples == samples and at.degree in TEXT_DEGREES]
        panels.append(
            Panel(
                f"{samples:,} samples",
                tuple(_series(board, settings, lambda at, cell: _at_seconds(cell), grow=True)),
            )
        )
    return _chart(
        f"regret_time_text_{board.name}",
        "Regret against training time, as in the paper's text",
        "Mean regret against mean seconds of training, labels included. The larger the mark, the higher "
        "the degree (1, 4, 8).",
        Axis("seconds", "log"),
        "regret, %",
        panels,
    )


def regret_by_solver_calls(board: Board) -> Chart | None:
    """Return regret against solver calls, one panel a degree, a path through the sample sizes."""
    calls = [cell.solver_calls.mean for cell in board.cells.values() if cell.solver_calls.mean > 0]
    if not calls:
        return None
    return _by_degree(
        board,
        "regret_calls",
        "Regret against solver calls",
        "Mean regret against the solver calls of labels and training. A solver-free method stands at zero whatever the "
        "number of samples.",
        Axis("solver calls", "symlog", unit=min(calls) / 3),
        "regret, %",
        lambda setting, cell: (cell.solver_calls.mean, cell.regret) if isinstance(cell, Trials) else None,
    )


def excess_over_floor(board: Board) -> Chart | None:
    """Return regret above the floor against samples, one panel a degree."""
    return _by_degree(
        board,
        "excess",
        "Excess over the floor",
        "Regret minus that of the true expected costs on the same test set, trial by trial: what is left to learn.",
        _samples_axis(board),
        "excess regret, points",
        lambda setting, cell: (setting.samples, cell.excess) if isinstance(cell, Trials) else None,
    )


def speed_up(board: Board) -> Chart | None:
    """Return published seconds over ours against samples, as geometric means over the degrees."""
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
    return _chart(
        f"speed_up_{board.name}",
        "Speed-up over the published seconds",
        "Published training seconds over ours (labels included, one thread a trial), as the geometric mean over the "
        "degrees. The machines differ; the ratios between methods do not depend on that.",
        _samples_axis(board),
        "times faster",
        [Panel("all degrees", tuple(series))],
    )


def paired_wins(board: Board) -> Matrix | None:
    """Return how often each column beats each other one on the same data; a tie is half a win."""
    columns = [column for column in board.columns if any(at[1] == column and c.trials for at, c in board.cells.items())]
    if len(columns) < 2:
        return None
    duels = [[_duel(board, one, other) for other in columns] for one in columns]
    return Matrix(
        f"paired_wins_{board.name}",
        "Paired wins",
        "How often, in percent, the method of the row has a lower regret than that of the column in the same trial: "
        "the same degree, samples and data.",
        tuple(columns),
        tuple(column.label for column in columns),
        tuple(tuple(100 * wins / n if n else None for wins, n in row) for row in duels),
        tuple(tuple(n for _, n in row) for row in duels),
    )


def _duel(board: Board, one: Column, other: Column) -> tuple[float, int]:
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


def _by_degree(
    board: Board, name: str, title: str, caption: str, x: Axis, y: str, place: _Place, *, floor: bool = False
) -> Chart | None:
    panels = []
    for degree in board.degrees:
        settings = [setting for setting in board.settings if setting.degree == degree]
        series = list(_series(board, settings, place))
        if floor:
            floors = [(at.samples, board.floors[at]) for at in settings if at in board.floors]
            marks = tuple(Mark(n, floor, 0.0, f"floor · n = {n:,}\n{floor:.3f} %") for n, floor in floors)
            series.append(Series("", FLOOR, marks))
        panels.append(Panel(f"degree {degree}", tuple(series)))
    return _chart(f"{name}_{board.name}", title, caption, x, y, panels)


def _series(board: Board, settings: Sequence[Setting], place: _Place, *, grow: bool = False) -> Iterator[Series]:
    notes = _Notes(board)
    for column in board.columns:
        if column.mode == PROTOCOL:
            theirs = ((at, board.published.get((at, column.method))) for at in settings)
            yield Series(column.method, PUBLISHED, _marks(theirs, column, place, notes, grow))
        ours = ((at, board.cells.get((at, column))) for at in settings)
        yield Series(*column, _marks(ours, column, place, notes, grow))


def _marks(
    cells: Iterable[tuple[Setting, Trials | Published | None]],
    column: Column,
    place: _Place,
    notes: _Notes,
    grow: bool,
) -> tuple[Mark, ...]:
    marks = []
    for setting, cell in cells:
        placed = place(setting, cell) if cell else None
        if placed and isfinite(placed[0]) and isfinite(placed[1].mean):
            size = 1 + 0.3 * TEXT_DEGREES.index(setting.degree) if grow else 1.0
            marks.append(Mark(placed[0], *placed[1], notes(setting, column), size))
    return tuple(marks)


class _Notes:
    """What is said about a cell when its mark is pointed at."""

    def __init__(self, board: Board) -> None:
        self.board, self.comparisons, self.digits = board, judge(board), digits_of(board)

    def __call__(self, setting: Setting, column: Column) -> str:
        lines = [f"{column.label} · degree {setting.degree}, n = {setting.samples:,}"]
        cell = self.board.cells.get((setting, column), Trials())
        if cell.trials:
            mean, std = cell.regret
            lines.append(f"ours {mean:.{self.digits}f} ± {std:.{self.digits}f} % ({len(cell.trials)} trials)")
            lines.append(f"{cell.seconds.mean:.3g} s, {cell.solver_calls.mean:,.0f} solver calls")
        comparison = self.comparisons.get((setting, column.method)) if column.mode == PROTOCOL else None
        if comparison:
            mean, std = comparison.published
            lines.append(f"published {mean:.2f} ± {std:.2f} %")
            seconds = self.board.published[setting, column.method].seconds.mean
            lines[-1] += f", {seconds:.3g} s" if isfinite(seconds) else ""
        if comparison and comparison.difference is not None:
            lines.append(f"difference {comparison.difference:+.{self.digits}f}: {comparison.verdict}")
        return "\n".join(lines)


def _chart(name: str, title: str, caption: str, x: Axis, y: str, panels: Sequence[Panel]) -> Chart | None:
    """Leave out what is empty, and choose a logarithmic axis where a linear one would hide the small values."""
    panels = [Panel(p.title, tuple(series for series in p.series if series.marks)) for p in panels]
    panels = [panel for panel in panels if any(series.layer not in (PUBLISHED, FLOOR) for series in panel.series)]
    if not panels:
        return None
    heights = [[mark.y for series in panel.series for mark in series.marks] for panel in panels]
    wide = any(max(ys) > _LOG_RATIO * min(ys) for ys in heights)
    scale: Literal["linear", "log"] = "log" if wide and min(map(min, heights)) > 0 else "linear"
    return Chart(name, title, caption, x, Axis(y, scale), tuple(panels))


def _at_seconds(cell: Trials | Published) -> tuple[float, Summary] | None:
    # A clock too coarse for an exact fit reads zero, which a logarithmic axis cannot show.
    return (cell.seconds.mean, cell.regret) if cell.seconds.mean > 0 else None


def _samples_axis(board: Board) -> Axis:
    return Axis("training samples", "log", ticks=tuple(sorted({float(setting.samples) for setting in board.settings})))
