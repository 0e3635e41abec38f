"""Choose the best k of n items.

Ties: the item with the lower index is chosen.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np

from decidewise.kit.batches import in_parts
from decidewise.kit.checks import BoolArray, FloatArray, IntArray, as_integer, shown
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.solvers import Polyhedron


class TopK(Problem, marks_ones=True):
    """Choose exactly `k` of `n` items: by default those with the largest values.

    `is_integer` is false because every vertex of `polyhedron` chooses whole items.

    Parameters
    ----------
    n : int
        The number of items.
    k : int or array-like of int, of shape (n_rows,)
        The number of items to choose, from 1 to `n`: the same for all rows of costs, or one per row.
    sense : {"max", "min"}

    Attributes
    ----------
    n_costs : int
        `n`, one per item.
    n_rows : int or None
        The number of rows, if each has a `k` of its own.
    B_S : float
        The largest norm of a decision, `sqrt(k)`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> TopK(4, 2).solve([[0.1, 0.9, 0.5, 0.2], [1.0, 3.0, 1.0, 1.0]])
    array([[0., 1., 1., 0.],
           [1., 1., 0., 0.]])
    >>> TopK(4, [1, 3]).solve([[0.1, 0.9, 0.5, 0.2], [1.0, 3.0, 1.0, 1.0]])
    array([[0., 1., 0., 0.],
           [1., 1., 1., 0.]])
    """

    faces = "flat"
    _by_row = ("k", "_present")
    _present: BoolArray | None = None

    def __init__(self, n: int, k: Any, *, sense: Sense = "max") -> None:
        super().__init__(sense=sense)
        self.n = self.n_costs = as_n_costs(as_integer(n, name="n"))
        self.k: Any = as_integer(k, name="k") if np.ndim(k) == 0 else self._as_counts(k)
        if np.max(self.k) > self.n_costs:
            where = "" if self.n_rows is None else f" in row {np.argmax(self.k)}"
            raise ValueError(f"cannot choose k={np.max(self.k)} of n={self.n_costs} items{where}; k must be at most n.")
        self.B_S = float(np.sqrt(np.max(self.k)))

    def _as_counts(self, k: Any) -> Any:
        counts = np.asarray(k)
        if counts.ndim != 1 or len(counts) == 0 or counts.dtype.kind not in "iu" or counts.min() < 1:
            raise ValueError(f"k must be an integer of at least 1, or one such integer per row; got k={shown(k)}.")
        self.n_rows = len(counts)
        return counts.astype(np.int64)

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return decisions that choose the `k` smallest costs of each row; ties go to the lower index."""
        if self._present is not None:
            costs = np.where(self._present, costs, np.inf)
        k = self.k if self.n_rows is None else int(np.max(self.k, initial=1))
        if self.n_rows is None or np.all(self.k == k):  # a partition takes less time than the order
            return in_parts(partial(_choose, k=k), costs)
        return in_parts(_choose_by_row, costs, self.k)

    def _with_present(self, present: BoolArray) -> Self:
        """Return the problem in which only items that are present, (n, n_costs), are chosen."""
        counts = present.sum(axis=1)
        few = np.flatnonzero(counts < self.k)
        if len(few):
            k = np.broadcast_to(self.k, len(counts))[few[0]]
            raise ValueError(
                f"cannot choose k={k} of the {counts[few[0]]} items that are present in row {few[0]}. Pass k by row, "
                'such as np.minimum(k, present.sum(axis=1)); in a problem file as k = { column = "k" }.'
            )
        part = copy(self)
        part.n_rows, part._present = len(present), present
        part.k = np.broadcast_to(np.asarray(self.k, dtype=np.int64), len(present))
        return part

    @property
    def polyhedron(self) -> Polyhedron | None:
        """Vectors with entries between 0 and 1 that sum to `k`; None if `k` differs by row."""
        if self.n_rows is not None:
            return None
        total = np.ones((1, self.n_costs)), [self.k]
        return Polyhedron.within(np.zeros(self.n_costs), np.ones(self.n_costs), eq=total)


def _choose(costs: FloatArray, decisions: FloatArray, *, k: int) -> None:
    last = np.partition(costs, k - 1, axis=1)[:, k - 1 : k]  # the largest cost chosen
    np.less_equal(costs, last, out=decisions)
    too_many = decisions.sum(axis=1) > k
    if too_many.any():
        costs, last = costs[too_many], last[too_many]
        tied = costs == last
        room = k - (costs < last).sum(axis=1, keepdims=True)
        decisions[too_many] -= tied & (tied.cumsum(axis=1) > room)


def _choose_by_row(costs: FloatArray, decisions: FloatArray, k: IntArray) -> None:
    order = np.argsort(costs, axis=1, kind="stable")
    chosen = np.arange(costs.shape[1]) < k[:, None]
    np.put_along_axis(decisions, order, chosen.astype(float), axis=1)
