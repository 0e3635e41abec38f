"""Folds of rows that are not in memory: by the number of a row in its file or partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.rows.passes import Pass, Passes, changed
from decidewise.rows.source import Rows, RowSource
from decidewise.rows.tree import Combine, Sums, add


@dataclass(frozen=True)
class RowFolds:
    """Which fold each row belongs to, by its number in its file or partition.

    Attributes
    ----------
    n_folds : int
    rows_together : int
        So many consecutive rows are in the same fold.
    """

    n_folds: int
    rows_together: int = 1

    def of(self, rows: Rows) -> npt.NDArray[np.intp]:
        """Return the fold of each row (b,)."""
        return (rows.first + np.arange(len(rows))) // self.rows_together % self.n_folds

    def split(self, rows: Rows) -> list[tuple[npt.NDArray[np.intp], Rows]]:
        """Return for each fold the numbers of its rows within the block, and the rows."""
        fold = self.of(rows)
        places = [np.flatnonzero(fold == number) for number in range(self.n_folds)]
        return [(place, take_rows(rows, place)) for place in places]


@dataclass(frozen=True)
class WithoutFold:
    """A function of the rows of a block without a fold, whose rows get weight zero, so that all keep their numbers."""

    function: Callable[[Rows], Sums]
    folds: RowFolds
    fold: int

    def __call__(self, rows: Rows) -> Sums:
        """Return the sums over the other rows."""
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        return self.function(replace(rows, weights=np.where(self.folds.of(rows) == self.fold, 0.0, weights)))


@dataclass
class TrainingRows(RowSource):
    """The rows of a source without those of a fold. Its columns have no names, so that models predict from arrays."""

    source: RowSource
    folds: RowFolds
    fold: int

    def first(self) -> Rows:
        """Return some of the first rows."""
        return replace(self.source.first(), columns=None)

    def reduce(self, function: Callable[[Rows], Sums], combine: Combine = add) -> Sums:
        """Return the results of `function` on all blocks, combined in a fixed tree."""
        return self.source.reduce(WithoutFold(function, self.folds, self.fold), combine)

    def passes(self, fit: Passes[Any]) -> Passes[Any]:
        """Return a fit on these rows as passes over all rows of the source."""
        return changed(fit, lambda wanted: Pass(WithoutFold(wanted.add, self.folds, self.fold), wanted.merge))


def take_rows(rows: Rows, place: Any) -> Rows:
    """Return some rows of a block."""
    costs, weights = (None if values is None else values[place] for values in (rows.costs, rows.weights))
    return replace(rows, stored_features=rows.X[place], stored_costs=costs, weights=weights, keys=None)
