"""Arrays in memory as a source of row blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from decidewise.kit.checks import FloatArray, as_integer, check_same_rows
from decidewise.rows.source import Rows, RowSource, located
from decidewise.rows.tree import Combine, PairwiseTree, Sums, add


class ArrayRows(RowSource):
    """Arrays in memory as blocks of `block_rows` rows.

    Examples
    --------
    >>> import numpy as np
    >>> source = ArrayRows(np.ones((5, 2)), np.ones((5, 3)), block_rows=2)
    >>> source.reduce(lambda rows: (rows.costs.sum(axis=0),))
    (array([5., 5., 5.]),)
    """

    def __init__(
        self, X: FloatArray, costs: FloatArray, weights: FloatArray | None = None, *, block_rows: int = 2**16
    ) -> None:
        check_same_rows(X=X, costs=costs)
        self.X, self.costs, self.weights = X, costs, weights
        self.block_rows = as_integer(block_rows, name="block_rows")

    def blocks(self) -> Iterator[Rows]:
        """Yield the blocks in order."""
        for first in range(0, len(self.X), self.block_rows):
            rows = slice(first, first + self.block_rows)
            weights = None if self.weights is None else self.weights[rows]
            yield Rows(self.X[rows], self.costs[rows], weights, first=first)

    def first(self) -> Rows:
        """Return the first block."""
        for rows in self.blocks():
            return rows
        raise ValueError("there are no rows at all. Pass at least one row.")

    def reduce(self, function: Callable[[Rows], Sums], combine: Combine = add) -> Sums:
        """Return the results of `function` on all blocks, combined in a fixed tree."""
        tree = PairwiseTree(combine)
        for rows in self.blocks():
            with located(rows):
                tree.add(function(rows))
        return tree.total()
