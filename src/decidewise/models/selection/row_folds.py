"""Folds of rows that are not in memory: by the number of a row in its file or partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import as_integer
from decidewise.rows.passes import Pass, Passes, changed
from decidewise.rows.source import Combine, Rows, RowSource, Sums, add


@dataclass(frozen=True)
class RowFolds:
    """Hold out rows by their number in their file or partition, for rows that are not in memory.

    Parameters
    ----------
    n_folds : int
    rows_together : int
        So many consecutive rows are held out together: for rows in the order of time, whose neighbours are alike.

    Examples
    --------
    >>> RowFolds(2, rows_together=3).of(np.arange(8))
    array([0, 0, 0, 1, 1, 1, 0, 0])
    """

    n_folds: int = 5
    rows_together: int = 1

    def __post_init__(self) -> None:
        as_integer(self.n_folds, name="n_folds", minimum=2)
        as_integer(self.rows_together, name="rows_together", minimum=1)

    def of(self, numbers: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the folds of rows, from their numbers."""
        return numbers // self.rows_together % self.n_folds

    def split(self, rows: Rows) -> list[tuple[npt.NDArray[np.intp], Rows]]:
        """Return for each fold the numbers of its rows within the block, and the rows."""
        fold = self.of(rows.first + np.arange(len(rows)))
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
        held_out = self.folds.of(rows.first + np.arange(len(rows))) == self.fold
        return self.function(replace(rows, weights=np.where(held_out, 0.0, weights)))


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
