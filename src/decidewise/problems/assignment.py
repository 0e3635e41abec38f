"""The assignment problem: one column for each row of a square matrix, no column twice.

Shortest augmenting paths find an optimal matching and a price for each column, in O(n³). An entry is tight if its
`cost - price` is the smallest in its row. The optimal assignments are exactly the perfect matchings of tight entries;
the lexicographically first of them is returned.

Ties: row 0 gets the lowest column that it has in any optimal assignment; then row 1, and so on.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import eye_array, kron, vstack

from decidewise.kit.batches import in_parts
from decidewise.kit.checks import BoolArray, FloatArray, IntArray, as_integer
from decidewise.kit.kernels import kernel
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.problems.rounding import TIE, is_tie, safe_unit
from decidewise.solvers import Polyhedron

#: The largest number of matchings to compute, each from the slacks of the one before, until one is proved optimal.
ROUNDS = 3


class Assignment(Problem, marks_ones=True):
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
    n_costs : int
        `n²`.
    B_S : float
        The norm of every decision, `sqrt(n)`.

    Examples
    --------
    >>> from decidewise.problems import Assignment
    >>> Assignment(2).solve([[1.0, 2.0, 1.0, 3.0], [1.0, 1.0, 1.0, 1.0]])
    array([[0., 1., 1., 0.],
           [1., 0., 0., 1.]])
    """

    _by_row = ("_rows", "_columns")
    _rows: BoolArray | None = None
    _columns: BoolArray | None = None

    def __init__(self, n: int, *, sense: Sense = "min") -> None:
        super().__init__(sense=sense)
        self.n = as_integer(n, name="n")
        self.n_costs = as_n_costs(self.n**2)
        self.B_S = float(np.sqrt(self.n))

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a cheapest assignment for each row; ties go to the first permutation in lexicographic order."""

        def solve(rows: FloatArray, decisions: FloatArray) -> None:
            assign(rows.reshape(-1, self.n, self.n), decisions.reshape(-1, self.n, self.n))

        return in_parts(solve, costs) if self.n_rows is None else self._minimize_present(costs)

    def _with_present(self, present: BoolArray) -> Self:
        """Return the problem in which only rows and columns of entries that are present, (n, n_costs), are assigned."""
        entries = present.reshape(-1, self.n, self.n)
        rows, columns = np.asarray(entries.any(axis=2)), np.asarray(entries.any(axis=1))
        odd = np.argwhere(entries != (rows[:, :, np.newaxis] & columns[:, np.newaxis]))
        if len(odd):
            sample, row, column = odd[0]
            raise ValueError(
                f"an Assignment can lack whole rows and columns of its matrix; in row {sample} of present, entry "
                f"({row}, {column}) is absent, and others of its row and of its column are not. Give a pair that must "
                "not be a high cost, or write a LinearProgram."
            )
        part = copy(self)
        part.n_rows, part._rows, part._columns = len(present), rows, columns
        return part

    def _minimize_present(self, costs: FloatArray) -> FloatArray:
        """Assign as many rows as there are columns, or the other way round, as if what lacks were there for nothing."""
        assert self._rows is not None
        assert self._columns is not None
        matrices, decisions = costs.reshape(-1, self.n, self.n), np.zeros(costs.shape)
        places = [np.ix_(rows, columns) for rows, columns in zip(self._rows, self._columns, strict=True)]
        sizes = np.maximum(self._rows.sum(axis=1), self._columns.sum(axis=1))
        for size in np.unique(sizes):
            samples = np.flatnonzero(sizes == size)
            squares, marks = np.zeros((2, len(samples), size, size))
            for square, sample in zip(squares, samples, strict=True):
                part = matrices[sample][places[sample]]
                square[: part.shape[0], : part.shape[1]] = part
            assign(squares, marks)
            for mark, sample in zip(marks, samples, strict=True):
                entries = decisions[sample].reshape(self.n, self.n)
                n_rows, n_columns = self._rows[sample].sum(), self._columns[sample].sum()
                entries[places[sample]] = mark[:n_rows, :n_columns]
        return decisions

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The doubly stochastic matrices: every row and every column sums to 1. None if entries are absent."""
        if self.n_rows is not None:
            return None
        ones, identity = np.ones((1, self.n)), eye_array(self.n)
        sums = vstack([kron(identity, ones), kron(ones, identity)]), np.ones(2 * self.n)
        return Polyhedron.within(np.zeros(self.n_costs), np.ones(self.n_costs), eq=sums)


class _Square(NamedTuple):
    """One matrix (n, n), and what is found of its assignment."""

    costs: FloatArray  # (n, n), in a safe unit
    slack: FloatArray  # (n, n) the costs, and later what an entry costs beyond the prices
    column_of: IntArray  # (n,) the column of each row, and -1 if there is none yet
    row_of: IntArray  # (n,)
    prices: FloatArray  # (n,) of columns
    distance: FloatArray  # (n,) as the next two of a search by Dijkstra's method
    link: IntArray
    settled: BoolArray
    terms: FloatArray  # (2 n,) in which two assignments differ


@kernel
def assign(costs: FloatArray, decisions: FloatArray) -> None:
    """Mark the cheapest assignment of each matrix of shape (n, n)."""
    n = costs.shape[1]
    square = _Square(
        np.empty((n, n)), np.empty((n, n)), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n),
        np.empty(n, np.int64), np.empty(n, np.bool_), np.empty(2 * n),
    )  # fmt: skip
    for row in range(len(costs)):
        largest = 0.0
        for i in range(n):
            for j in range(n):
                largest = max(largest, abs(costs[row, i, j]))
        unit = safe_unit(largest)
        for i in range(n):
            for j in range(n):
                square.costs[i, j] = square.slack[i, j] = costs[row, i, j] * unit
        for _ in range(ROUNDS):
            _match(square)
            if _subtract_prices(square):
                break
        _break_ties(square, largest * unit)
        for i in range(n):
            decisions[row, i, square.column_of[i]] = 1.0


@kernel(inner=True)
def _match(square: _Square) -> None:
    """Find an optimal matching (the column of each row, the row of each column) and prices that prove it optimal.

    Start: columns take their cheapest rows.
    Search: from each row left, Dijkstra to a free column.
    Prices: raise those of settled columns.
    Augment: exchange matches along the path.
    """
    costs, prices, column_of, row_of = square.slack, square.prices, square.column_of, square.row_of
    distance, previous, settled = square.distance, square.link, square.settled
    n = len(costs)
    # Each column goes to its cheapest row, unless that row has one already; this leaves about a third of the rows.
    for j in range(n):
        column_of[j] = row_of[j] = -1
        prices[j] = costs[0, j]
        previous[j] = 0
    for i in range(1, n):
        for j in range(n):
            if costs[i, j] < prices[j]:
                prices[j] = costs[i, j]
                previous[j] = i
    for j in range(n):
        if column_of[previous[j]] < 0:
            row_of[j] = previous[j]
            column_of[previous[j]] = j
    for start in range(n):
        if column_of[start] >= 0:
            continue
        # Dijkstra's method from the new row to the nearest free column; matched entries have reduced cost zero.
        for j in range(n):
            distance[j] = np.inf
            settled[j] = False
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


@kernel(inner=True)
def _subtract_prices(square: _Square) -> bool:
    """Turn costs into slacks: subtract the prices, then from each row its matched entry, in twice the precision.

    Return whether the matched entry is the smallest of each row, which proves the matching optimal. The slacks have the
    same optimal assignments as the costs, and keep the digits that prices of 1e15 would hide.
    """
    costs, prices, column_of = square.slack, square.prices, square.column_of
    n = len(costs)
    is_proved = True
    for i in range(n):
        match = column_of[i]
        least = costs[i, match] - prices[match]
        for j in range(n):
            cost, price = costs[i, j], prices[j]
            first = cost - price
            part = first - cost
            low = (cost - (first - part)) - (price + part)
            second = first - least
            part = second - first
            low += (first - (second - part)) - (least + part)
            costs[i, j] = second + low
        for j in range(n):
            is_proved &= costs[i, match] <= costs[i, j]
    return is_proved


@kernel(inner=True)
def _break_ties(square: _Square, largest: float) -> None:
    """Replace an optimal matching, in place, by the lexicographically first one that is tied with it.

    Tolerance: the largest cost of tight entries.
    Row by row: try each lower column.
    Search: Dijkstra back from the freed column.
    Move: if the exchange is a tie.
    """
    costs, slack, column_of, row_of = square.costs, square.slack, square.column_of, square.row_of
    distance, moves_to, settled = square.distance, square.link, square.settled
    n = len(costs)
    # Tied assignments differ in slack by at most TIE of their costs, so only entries with at most that slack matter.
    within = 2 * n * TIE * largest
    largest = 0.0
    for i in range(n):
        for j in range(n):
            if slack[i, j] <= within:
                largest = max(largest, abs(costs[i, j]))
    within = 2 * n * TIE * largest
    for i in range(n):
        freed = column_of[i]
        is_open = False
        nearest = -1
        for j in range(freed):
            if row_of[j] < i or slack[i, j] > within:
                continue
            # Dijkstra's method backwards from the column that row i would free, only as far as needed: the distance of
            # a column is the slack of moving its row, and the rows after it, along to the freed column.
            if not is_open:
                is_open = True
                for k in range(n):
                    distance[k] = np.inf
                    settled[k] = row_of[k] < i
                distance[freed] = 0.0
                nearest = freed
            while nearest >= 0 and not settled[j]:
                settled[nearest] = True
                for k in range(n):
                    length = distance[nearest] + slack[row_of[k], nearest]
                    if length < distance[k] and not settled[k]:
                        distance[k] = length
                        moves_to[row_of[k]] = nearest
                nearest = -1
                for k in range(n):
                    if not settled[k] and distance[k] <= within and (nearest < 0 or distance[k] < distance[nearest]):
                        nearest = k
            moves_to[i] = j
            if settled[j] and _reassign_if_tied(square, i):
                break


@kernel(inner=True)
def _reassign_if_tied(square: _Square, row: int) -> bool:
    """Move the row to its new column, the former row of that column to its own, and so on, if the result is a tie.

    Return whether the rows were moved.
    """
    costs, column_of, row_of, moves_to, terms = square.costs, square.column_of, square.row_of, square.link, square.terms
    freed = column_of[row]
    count = 0
    i = row
    while True:
        terms[count], terms[count + 1] = costs[i, moves_to[i]], -costs[i, column_of[i]]
        count += 2
        if moves_to[i] == freed:
            break
        i = row_of[moves_to[i]]
    if not is_tie(terms, count, TIE):
        return False
    i = row
    column = -1
    while column != freed:
        column = moves_to[i]
        owner = row_of[column]
        column_of[i], row_of[column] = column, i
        i = owner
    return True
