"""The assignment problem: one column for each row of a square matrix, no column twice.

Shortest augmenting paths give an optimal matching together with prices of the columns, in O(n³). The optimal
assignments are then exactly the perfect matchings of the tight entries, those with `cost - price` as small as any in
their row, and among these the first is chosen.

Ties: row 0 takes the lowest column that an optimal assignment gives it; then row 1, and so on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, eye_array, kron, vstack

from decidewise.batches import in_parts
from decidewise.checks import FloatArray, as_integer
from decidewise.kernels import kernel
from decidewise.problems.base import Polyhedron, Problem, Sense, as_n_costs

IntArray = npt.NDArray[np.int64]


class Assignment(Problem):
    """Assign `n` rows to `n` columns, one to one.

    Costs and decisions are matrices of shape `(n, n)` written row by row: entry `i * n + j` belongs to row `i` and
    column `j`. `is_integer` is false because every vertex of `polyhedron` is a permutation matrix.

    Parameters
    ----------
    n : int
        The number of rows, and of columns.
    sense : {"min", "max"}

    Attributes
    ----------
    B_S : float
        The norm of every decision, `sqrt(n)`.

    Examples
    --------
    >>> from decidewise.problems import Assignment
    >>> Assignment(2).solve([[1.0, 2.0, 1.0, 3.0], [1.0, 1.0, 1.0, 1.0]])
    array([[0., 1., 1., 0.],
           [1., 0., 0., 1.]])
    """

    def __init__(self, n: int, *, sense: Sense = "min") -> None:
        super().__init__(sense=sense)
        self.n = as_integer(n, name="n")
        self.n_costs = as_n_costs(self.n**2)
        self.B_S = float(np.sqrt(self.n))

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a cheapest assignment for each row; ties go to the first permutation in lexicographic order."""
        # In units of the largest cost no sum can overflow, and the tolerance is a constant: each of n augmentations
        # rounds the prices, sums of at most 2n such costs, by up to eps n. This leaves a factor 4.
        tolerance = 4 * np.finfo(float).eps * self.n**2

        def assign(rows: FloatArray) -> FloatArray:
            scale = np.abs(rows).max(axis=1, keepdims=True)
            scaled = rows / np.where(scale > 0, scale, 1.0)
            return _assign(scaled.reshape(-1, self.n, self.n), tolerance).reshape(rows.shape)

        return in_parts(assign, costs)

    @property
    def polyhedron(self) -> Polyhedron:
        """The doubly stochastic matrices: every row and every column sums to 1."""
        ones, identity = np.ones((1, self.n)), eye_array(self.n)
        return Polyhedron(
            A_ub=csr_array((0, self.n_costs)),
            b_ub=np.empty(0),
            A_eq=csr_array(vstack([kron(identity, ones), kron(ones, identity)])),
            b_eq=np.ones(2 * self.n),
            lower=np.zeros(self.n_costs),
            upper=np.ones(self.n_costs),
        )


@kernel
def _assign(costs: FloatArray, tolerance: float) -> FloatArray:
    """Solve each matrix of shape (n, n), in units in which the tolerance means a tie."""
    decisions = np.zeros_like(costs)
    n = costs.shape[1]
    tight = np.empty((n, n), dtype=np.bool_)
    for row in range(len(costs)):
        matrix = costs[row]
        column_of, prices = _match(matrix)
        for i in range(n):
            lowest = np.inf
            for j in range(n):
                lowest = min(lowest, matrix[i, j] - prices[j])
            for j in range(n):
                tight[j, i] = matrix[i, j] - prices[j] <= lowest + tolerance
        _make_first(tight, column_of)
        for i in range(n):
            decisions[row, i, column_of[i]] = 1.0
    return decisions


@kernel
def _match(costs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return an optimal matching, as the column of each row, and prices that prove it."""
    n = len(costs)
    prices = np.zeros(n)
    column_of = np.full(n, -1)
    row_of = np.full(n, -1)
    distance = np.empty(n)
    previous = np.empty(n, dtype=np.int64)
    settled = np.empty(n, dtype=np.bool_)
    for start in range(n):
        # Dijkstra from the new row to the nearest free column; matched entries have reduced cost zero.
        distance[:] = np.inf
        settled[:] = False
        i, offset = start, 0.0
        while True:
            nearest = -1
            for j in range(n):
                if settled[j]:
                    continue
                length = costs[i, j] - prices[j] + offset
                if length < distance[j]:
                    distance[j] = length
                    previous[j] = i
                closer = nearest < 0 or distance[j] < distance[nearest]
                if closer or (distance[j] == distance[nearest] and row_of[j] < 0):  # a free column ends the search
                    nearest = j
            settled[nearest] = True
            if row_of[nearest] < 0:
                break
            i = row_of[nearest]
            offset = distance[nearest] - (costs[i, nearest] - prices[nearest])
        for j in range(n):
            if settled[j]:
                prices[j] += distance[j] - distance[nearest]
        j = nearest
        while j >= 0:
            i = previous[j]
            row_of[j] = i
            column_of[i], j = j, column_of[i]
    return column_of, prices


@kernel
def _make_first(tight: npt.NDArray[np.bool_], column_of: IntArray) -> None:
    """Turn a perfect matching of the entries `tight[column, row]` into the lexicographically first one, in place."""
    n = len(tight)
    row_of = np.empty(n, dtype=np.int64)
    for i in range(n):
        row_of[column_of[i]] = i
    moves_to = np.empty(n, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    for i in range(n):
        freed = column_of[i]
        # Search backwards from the column that row i would free, no further than needed: which later rows can move on,
        # and where to?
        moves_to[:] = -1
        queue[0] = freed
        k, found = 0, 1
        for j in range(freed):
            owner = row_of[j]
            if not tight[j, i] or owner < i:
                continue
            while moves_to[owner] < 0 and k < found:
                for r in range(i + 1, n):
                    if tight[queue[k], r] and moves_to[r] < 0:
                        moves_to[r] = queue[k]
                        queue[found] = column_of[r]
                        found += 1
                k += 1
            if moves_to[owner] >= 0:
                moves_to[i] = j
                _shift(i, moves_to, column_of, row_of)
                break


@kernel
def _shift(row: int, moves_to: IntArray, column_of: IntArray, row_of: IntArray) -> None:
    """Move the row to its new column, the owner of that one on to its own, and so forth round the circle."""
    freed = column_of[row]
    column = -1
    while column != freed:
        column = moves_to[row]
        owner = row_of[column]
        column_of[row], row_of[column] = column, row
        row = owner
