"""The state of the search for one row: its edges, the decisions on them, and the best tour so far.

The state is kept in plain arrays, since kernels on plain arrays compile fast. For a row with `n` nodes these are:

========================  ==========================================================================================
`costs`                   (n, n) symmetric, at most 1 in size, infinite on the diagonal
`lengths`                 (n, n) the costs of the open edges, TAKEN or BARRED elsewhere; the diagonal is barred
`decided`                 the number of decided edges, then these edges as `a * n + b`, in the order of the decisions
`prices`                  (n,) the price of a visit to each node
`old`, `new`              (n,) the edges of the one-tree: old and new node, starting at node 1; then those of node 0
`edge_to`                 (n,) the number of the edge by which each node joined the one-tree, -1 for node 1
`degrees`                 (n,) the degree of each node in the one-tree
`detours`                 (n,) the extra cost of the one-tree without each of its edges
`tour`                    (n, n) 1 at the edges of the best tour so far
`numbers`                 (5,) see `COST, LIMIT, TIE, GAIN, EXCESS` below
`trees`                   (1,) the number of one-trees left, for this row and those after it
========================  ==========================================================================================
"""

from __future__ import annotations

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


def open_rows(costs: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return `costs` (rows, n, n) and `numbers` (rows, 5) for costs (rows, n (n - 1) / 2) of size at most 1."""
    a, b = np.triu_indices(n, 1)
    square = np.full((len(costs), n, n), BARRED)
    square[:, a, b] = square[:, b, a] = costs
    numbers = np.full((len(costs), 5), np.inf)
    numbers[:, TIE] = TOLERANCE * n
    return square, numbers


@kernel(inner=True, _nrt=False)
def record(costs: FloatArray, old: IntArray, new: IntArray, tour: FloatArray, numbers: FloatArray) -> None:
    """Keep the tour with the edges from `old` to `new` if it is better than the best tour, or different and tied."""
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
def decide(lengths: FloatArray, decided: IntArray, a: int, b: int, length: float) -> None:
    """Take or bar an open edge."""
    lengths[a, b] = lengths[b, a] = length
    count = decided[0] + 1
    decided[0] = count
    decided[count] = a * len(lengths) + b


@kernel(inner=True, _nrt=False, error_model="numpy")
def reopen(costs: FloatArray, lengths: FloatArray, decided: IntArray, count: int) -> None:
    """Undo all decisions after the first `count`."""
    n = len(lengths)
    for k in range(count, decided[0]):
        a, b = decided[k + 1] // n, decided[k + 1] % n
        lengths[a, b] = lengths[b, a] = costs[a, b]
    decided[0] = count


@kernel(inner=True, _nrt=False)
def propagate(lengths: FloatArray, decided: IntArray, far_end: IntArray) -> bool:
    """Make all decisions that follow from the present ones; return whether a tour may be left.

    The taken edges form paths. `far_end` (n,), overwritten, holds at each end of a path the other end.
    """
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
                        decide(lengths, decided, a, b, length)
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
                decide(lengths, decided, a, b, BARRED)
    return True
