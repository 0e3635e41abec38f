"""One row of a travelling salesman: its edges, what is decided of them, and the best tour so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.kernels import kernel
from decidewise.problems.common_divisor import common_divisor

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: The length of an edge that is decided; all others are open.
TAKEN, BARRED = -np.inf, np.inf
#: Tours are equal if their costs differ by less than this, times the number of nodes and the largest cost.
TIE = 1e-12


class Row(NamedTuple):
    """What a search knows of one row; whatever is a number stands in an array of one, to be changed in place."""

    costs: FloatArray  # (n, n) symmetric, at most 1 in size
    lengths: FloatArray  # (n, n) the costs of the open edges, TAKEN or BARRED elsewhere; the diagonal is barred
    decided: IntArray  # (n (n - 1) / 2, 2) the edges that are not open, in the order of the decisions
    n_decided: IntArray  # (1,)
    prices: FloatArray  # (n,) of a visit to each node
    tree: IntArray  # (n, 2) the edges of the one-tree: old and new node, as it grows from node 1; then those of node 0
    edge_to: IntArray  # (n,) the number of the edge by which each node joined the tree
    degrees: IntArray  # (n,) in the one-tree
    detours: FloatArray  # (n,) what the one-tree would cost more without each of its edges
    tour: BoolArray  # (n, n) the best so far
    cost: FloatArray  # (1,) of that tour
    tied: BoolArray  # (1,) whether another tour is as good
    limit: FloatArray  # (1,) only tours up to this cost are searched for
    tie: float  # costs that differ by less are equal
    gain: FloatArray  # (1,) by which a tour must at least be better than two that are tied
    trees_left: IntArray  # (1,) before the search gives up, for this row and those after it


@kernel
def open_row(edge_costs: FloatArray, n: int, trees: IntArray) -> Row:
    """Start with all edges open; costs (n (n - 1) / 2,) in units of the largest."""
    costs = np.zeros((n, n))
    edge = 0
    for a in range(n):
        for b in range(a + 1, n):
            costs[a, b] = costs[b, a] = edge_costs[edge]
            edge += 1
    lengths = costs.copy()
    for a in range(n):
        lengths[a, a] = BARRED
    # Every tour has n edges, so that tours differ by sums of what edges cost above the least.
    coarse = common_divisor(edge_costs - edge_costs.min())
    return Row(
        costs,
        lengths,
        np.empty((edge, 2), np.int64),
        np.zeros(1, np.int64),
        np.zeros(n),
        np.empty((n, 2), np.int64),
        np.full(n, -1),
        np.zeros(n, np.int64),
        np.empty(n),
        np.zeros((n, n), np.bool_),
        np.array([np.inf]),
        np.zeros(1, np.bool_),
        np.array([np.inf]),
        TIE * n,
        np.array([max(TIE * n, 0.999 * coarse)]),
        trees,
    )


@kernel
def record(row: Row, edges: IntArray) -> None:
    """Keep a tour, given by its edges (n, 2), if it is better than the best, or another one as good."""
    cost, known = 0.0, True
    for k in range(len(edges)):
        a, b = edges[k]
        cost += row.costs[a, b]
        known &= row.tour[a, b]
    if known or cost > row.cost[0] + row.tie:
        return
    row.tied[0] = cost >= row.cost[0] - row.tie
    if row.tied[0]:
        row.limit[0] = row.cost[0] - row.gain[0]
    else:
        row.cost[0] = cost
        row.limit[0] = cost + row.tie
    row.tour[:] = False
    for k in range(len(edges)):
        a, b = edges[k]
        row.tour[a, b] = row.tour[b, a] = True


@kernel
def is_open(row: Row, a: int, b: int) -> bool:
    """Return whether an edge is neither taken nor barred."""
    return TAKEN < row.lengths[a, b] < BARRED


@kernel
def decide(row: Row, a: int, b: int, length: float) -> None:
    """Take or bar an open edge."""
    row.lengths[a, b] = row.lengths[b, a] = length
    row.decided[row.n_decided[0], 0], row.decided[row.n_decided[0], 1] = a, b
    row.n_decided[0] += 1


@kernel
def reopen(row: Row, n_decided: int) -> None:
    """Undo all decisions but the first ones."""
    for k in range(n_decided, row.n_decided[0]):
        a, b = row.decided[k]
        row.lengths[a, b] = row.lengths[b, a] = row.costs[a, b]
    row.n_decided[0] = n_decided


@kernel
def follow(row: Row) -> bool:
    """Decide what follows from the decisions until nothing does; return whether a tour may be left."""
    n = len(row.costs)
    taken = np.empty(n, np.int64)
    while True:
        before = row.n_decided[0]
        for a in range(n):
            taken[a], possible = 0, 0
            for b in range(n):
                taken[a] += row.lengths[a, b] == TAKEN
                possible += row.lengths[a, b] < BARRED
            if taken[a] > 2 or possible < 2:
                return False
            if possible > taken[a] and (taken[a] == 2 or possible == 2):
                length = BARRED if taken[a] == 2 else TAKEN
                for b in range(n):
                    if is_open(row, a, b):
                        decide(row, a, b, length)
        if row.n_decided[0] == before:
            if not _bar_circles(row, taken):
                return False
            if row.n_decided[0] == before:
                return True


@kernel
def _bar_circles(row: Row, taken: IntArray) -> bool:
    """Bar the edges that would close a path of taken edges too early; return False if one is closed."""
    n = len(taken)
    seen = np.zeros(n, np.bool_)
    for degree in (1, 2):  # first the paths, from their ends; then what is left is closed
        for start in range(n):
            if seen[start] or taken[start] != degree:
                continue
            end, size = start, 0
            following = start
            while following < n:
                end = following
                seen[end] = True
                size += 1
                following = 0
                while following < n and (seen[following] or row.lengths[end, following] != TAKEN):
                    following += 1
            if size < n and degree == 2:
                return False
            if size < n and is_open(row, start, end):
                decide(row, start, end, BARRED)
    return True
