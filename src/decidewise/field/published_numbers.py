"""Our regrets beside those that others published for the same setting, though not for the same draw of data."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan, sqrt
from typing import NamedTuple

from decidewise.field.standings import show_mean
from decidewise.report.formats import markdown_table, markdown_text
from decidewise.report.results import Board, Trials


class Comparison(NamedTuple):
    """One method: our cell, and the published regret in percent, NaN if there is none."""

    method: str
    ours: Trials
    published: float

    @property
    def shown(self) -> list[str]:
        """Ours, published, and the difference, also in standard deviations of our trials: what one seed may differ."""
        ours = show_mean(self.ours) if self.ours.trials else self.ours.absence
        if not isfinite(self.published):
            return [ours, "", "", ""]
        gap = self.ours.regret.mean - self.published
        std = self.ours.regret.std
        difference = f"{gap:+.2f}".replace("-", "−") if isfinite(gap) else ""
        apart = f"{abs(gap) / (std * sqrt(1 + 1 / len(self.ours.trials))):.1f}" if isfinite(gap) and std > 0 else ""
        return [ours, f"{self.published:.2f}", difference, apart]


HEADS = ("ours", "published", "difference", "in standard deviations")


def comparisons(board: Board) -> list[Comparison]:
    """Return the methods with a published number first, then the others, each from the lowest regret of ours up."""
    settings = {at for at, _ in board.cells}
    published = {method: cell.regret.mean for (at, method), cell in board.published.items() if at in settings}
    ours = {column.method: cell for (_, column), cell in board.cells.items()}
    names = dict.fromkeys([*ours, *published])
    found = [Comparison(name, ours.get(name, Trials()), published.get(name, nan)) for name in names]
    last = float("inf")
    return sorted(
        found,
        key=lambda each: (not isfinite(each.published), each.ours.regret.mean if each.ours.trials else last),
    )


def to_markdown_lines(compared: Sequence[tuple[Board, Sequence[Comparison]]]) -> str:
    """Write one table for each problem."""
    tables = []
    for board, lines in compared:
        rows = [[markdown_text(each.method), *each.shown] for each in lines]
        tables.append(markdown_table([[markdown_text(board.problem_title), *HEADS], *rows]))
    return "\n".join(tables)
