"""The state of the search for one row: its edges, the decisions on them, and the best tour so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel

#: The lengths of decided edges; all others are open.
TAKEN, BARRED = -np.inf, np.inf
#: Places in `numbers`: the cost of the best tour; the largest cost of a tour to search for; the difference below which
#: costs are tied; how much better than the best a tour must be once a tie is found; and the sum of `(degree - 2)^2`
#: over the one-tree, which is zero for a tour.
COST, LIMIT, TIE, GAIN, EXCESS = 0, 1, 2, 3, 4
#: Tours are tied if their costs differ by less than this times the number of nodes times the largest cost.
TOLERANCE = 1e-12


class TourState(NamedTuple):
    """The arrays of a search among `n` nodes; `make_state` puts an axis of rows in front of some."""

    costs: FloatArray  # (n, n) symmetric, at most 1 in size, infinite on the diagonal; by row
    lengths: FloatArray  # (n, n) the costs of the open edges, TAKEN or BARRED elsewhere; the diagonal is barred; by row
    prices: FloatArray  # (n,) the price of a visit to each node; by row
    tour: FloatArray  # (n, n) 1 at the edges of the best tour so far; by row
    numbers: FloatArray  # (5,) see `COST, LIMIT, TIE, GAIN, EXCESS`; by row
    best_prices: FloatArray  # (n,)
    detours: FloatArray  # (n,) the extra cost of the one-tree without each of its edges
    old: IntArray  # (n,) and `new`: the ends of the edges of the one-tree, from node 1 on; then those of node 0
    new: IntArray
    edge_to: IntArray  # (n,) the number of the edge by which each node joined the one-tree, -1 for node 1
    degrees: IntArray  # (n,) of each node in the one-tree
    decided: IntArray  # the number of decided edges, then these edges as `a * n + b`, in the order of the decisions
    trees: IntArray  # (1,) the number of one-trees left, for this row and those after it


def make_state(costs: FloatArray, tours: FloatArray, n: int, trees: IntArray) -> TourState:
    """Return the state at the start of rows of costs and tours, (rows, n (n - 1) / 2), of costs of size at most 1."""
    square = _squares(costs, n)
    numbers = np.full((len(costs), 5), np.inf)
    numbers[:, TIE] = TOLERANCE * n
    prices, decided = np.zeros((len(costs), n)), np.zeros(costs.shape[1] + 2, np.int64)
    best_prices, detours = np.zeros((2, n))
    old, new, edge_to, degrees = np.zeros((4, n), np.int64)
    return TourState(
        square, square.copy(), prices, _squares(tours, n), numbers, best_prices, detours, old, new, edge_to, degrees,
        decided, trees,
    )  # fmt: skip


def _squares(values: FloatArray, n: int) -> FloatArray:
    """Return symmetric matrices (rows, n, n) with a barred diagonal."""
    a, b = np.triu_indices(n, 1)
    square = np.full((len(values), n, n), BARRED)
    square[:, a, b] = square[:, b, a] = values
    return square


@kernel(inner=True, _nrt=False)
def of_row(rows: TourState, row: int) -> TourState:
    """Return the state of one row."""
    return TourState(
        rows.costs[row], rows.lengths[row], rows.prices[row], rows.tour[row], rows.numbers[row], rows.best_prices,
        rows.detours, rows.old, rows.new, rows.edge_to, rows.degrees, rows.decided, rows.trees,
    )  # fmt: skip


@kernel(inner=True, _nrt=False)
def record(at: TourState) -> None:
    """Keep the tour with the edges from `old` to `new` if it is better than the best tour, or different and tied."""
    costs, old, new, tour, numbers = at.costs, at.old, at.new, at.tour, at.numbers
    n = len(old)
    cost = common = 0.0
    for k in range(n):
        cost += costs[old[k], new[k]]
        common += tour[old[k], new[k]]
    lead = numbers[COST] - cost
    if common == n or lead < -numbers[TIE]:
        return
    if lead > numbers[TIE]:
        numbers[COST] = cost
        numbers[LIMIT] = cost + numbers[TIE]
    else:
        numbers[LIMIT] = numbers[COST] - numbers[GAIN]
    for a in range(n):
        for b in range(n):
            tour[a, b] = 0.0
    for k in range(n):
        tour[old[k], new[k]] = tour[new[k], old[k]] = 1.0


@kernel(inner=True, _nrt=False)
def is_open(lengths: FloatArray, a: int, b: int) -> bool:
    """Return whether an edge is neither taken nor barred."""
    return TAKEN < lengths[a, b] < BARRED


@kernel(inner=True, _nrt=False)
def decide(at: TourState, a: int, b: int, length: float) -> None:
    """Take or bar an open edge."""
    at.lengths[a, b] = at.lengths[b, a] = length
    count = at.decided[0] + 1
    at.decided[0] = count
    at.decided[count] = a * len(at.lengths) + b


@kernel(inner=True, _nrt=False, error_model="numpy")
def reopen(at: TourState, count: int) -> None:
    """Undo all decisions after the first `count`."""
    n = len(at.lengths)
    for k in range(count, at.decided[0]):
        a, b = at.decided[k + 1] // n, at.decided[k + 1] % n
        at.lengths[a, b] = at.lengths[b, a] = at.costs[a, b]
    at.decided[0] = count


@kernel(inner=True, _nrt=False)
def propagate(at: TourState) -> bool:
    """Make all decisions that follow from the present ones; return whether a tour may be left.

    The taken edges form paths. `far_end` (n,), in the place of the degrees, holds at each end of a path the other end.
    """
    lengths, decided, far_end = at.lengths, at.decided, at.degrees
    n = len(lengths)
    before = -1
    while decided[0] > before:
        before = decided[0]
        for a in range(n):
            far_end[a] = a
            taken = possible = 0
            for b in range(n):
                taken += lengths[a, b] == TAKEN
                possible += lengths[a, b] < BARRED
            if taken > 2 or possible < 2:
                return False
            if possible > taken and (taken == 2 or possible == 2):
                length = BARRED if taken == 2 else TAKEN
                for b in range(n):
                    if is_open(lengths, a, b):
                        decide(at, a, b, length)
        if decided[0] > before:
            continue
        # Join the paths edge by edge, and bar the edges that would close a subtour.
        joined = 0
        for a in range(n):
            for b in range(a):
                if lengths[a, b] == TAKEN:
                    joined += 1
                    start, end = far_end[a], far_end[b]
                    if start == b:
                        return joined == n
                    far_end[start], far_end[end] = end, start
        for a in range(n):
            b = far_end[a]
            if joined < n - 1 and far_end[b] == a and is_open(lengths, a, b):
                decide(at, a, b, BARRED)
    return True
