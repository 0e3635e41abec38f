"""Our regrets beside those that others published for the same setting, though not for the same draw of data.

A draw of data may be hard for all methods. So each regret is also given relative to that of squared errors on the same
draw, ours trial by trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, nan
from typing import NamedTuple

from decidewise_bench.field.standings import show_mean
from decidewise_bench.report.formats import markdown_table, markdown_text
from decidewise_bench.report.results import Board, Summary, Trials

#: The method that all others are divided by, in our rows and in the published numbers.
UNIT = "MSE by Adam"
HEADS = ("ours", "published", "difference", "ours / MSE", "published / MSE")


class BesidePublished(NamedTuple):
    """One method: our cell, the published regret in percent (NaN if there is none), and both relative to `UNIT`."""

    method: str
    ours: Trials
    published: float
    ours_relative: Summary
    published_relative: float

    @property
    def shown(self) -> list[str]:
        """The entries under `HEADS`: means ± standard errors; the relative regret ± its deviation over the draws."""
        gap = self.ours.regret.mean - self.published
        relative = self.ours_relative
        return [
            show_mean(self.ours) if self.ours.trials else self.ours.absence,
            _shown(self.published),
            f"{gap:+.2f}".replace("-", "−") if isfinite(gap) else "",
            f"{relative.mean:.2f} ± {relative.std:.2f}" if isfinite(relative.mean) else "",
            _shown(self.published_relative),
        ]


def comparisons(board: Board) -> list[BesidePublished]:
    """Return the methods with a published number first, then the others, each from the lowest regret of ours up."""
    settings = {at for at, _ in board.cells}
    published = {method: cell.regret.mean for (at, method), cell in board.published.items() if at in settings}
    ours = {column.method: cell for (_, column), cell in board.cells.items()}
    unit = ours.get(UNIT, Trials()).trials
    found = []
    for name in dict.fromkeys([*ours, *published]):
        cell = ours.get(name, Trials())
        ratios = Summary.of(trial.regret / unit[t].regret for t, trial in cell.trials.items() if t in unit)
        theirs = published.get(name, nan)
        found.append(BesidePublished(name, cell, theirs, ratios, theirs / published.get(UNIT, nan)))
    return sorted(
        found,
        key=lambda each: (not isfinite(each.published), each.ours.regret.mean if each.ours.trials else inf),
    )


def to_markdown_lines(compared: Sequence[tuple[Board, Sequence[BesidePublished]]]) -> str:
    """Write one table for each problem."""
    tables = []
    for board, lines in compared:
        rows = [[markdown_text(each.method), *each.shown] for each in lines]
        tables.append(markdown_table([[markdown_text(board.problem_title), *HEADS], *rows]))
    return "\n".join(tables)


def _shown(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else ""
