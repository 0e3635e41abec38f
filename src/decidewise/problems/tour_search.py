"""The cheapest tour of each row: branch and bound on one-trees.

What an edge would add to the bound, or its absence would, decides most edges at once; the search branches on the
others. Prices are never exact, and where many tours are as good as the best, no bound tells them apart. So a search
that takes long starts again, with better prices and more care for each node. A tie is broken afterwards, by more
searches: edge by edge, is there a tour as good that takes this one?
"""

from __future__ import annotations

import numpy as np

from decidewise.checks import FloatArray
from decidewise.kernels import kernel
from decidewise.problems.tour_bound import ascend, grow, narrow
from decidewise.problems.tour_row import BARRED, TAKEN, IntArray, Row, decide, follow, is_open, open_row, record, reopen
from decidewise.problems.tour_start import find_tours

#: Steps of the ascent at each node of a search, and one-trees for each node of the row before it starts again.
STEPS, PATIENCE = 15, 50
#: The least distance to aim at in the ascent at each node, in units of the spread of the prices.
REACH = 1e-3


@kernel
def cheapest_tours(costs: FloatArray, n: int, trees: IntArray) -> tuple[FloatArray, int]:
    """Return the tours of costs (rows, n (n - 1) / 2), and the first row that was not solved, or -1.

    All rows together may take `trees[0]` one-trees, which are counted down there.
    """
    decisions = np.zeros_like(costs)
    for i in range(len(costs)):
        row = open_row(costs[i], n, trees)
        find_tours(row)
        _settle(row)
        if row.tied[0]:
            _prefer_first(row)
        if trees[0] < 0:
            return decisions, i
        edge = 0
        for a in range(n):
            for b in range(a + 1, n):
                decisions[i, edge] = row.tour[a, b]
                edge += 1
    return decisions, -1


@kernel
def _prefer_first(row: Row) -> None:
    """Replace the tour by the first of the best ones: edge by edge, take it if one of them does."""
    n = len(row.costs)
    row.gain[0] = np.inf  # a tie ends a search: nothing is better
    row.limit[0] = row.cost[0] + row.tie
    narrow(row, grow(row))
    follow(row)
    for a in range(n):
        for b in range(a + 1, n):
            if not is_open(row, a, b):
                continue
            n_decided = row.n_decided[0]
            decide(row, a, b, TAKEN)
            possible = follow(row)
            if row.tour[a, b]:
                continue
            row.limit[0], row.tied[0] = row.cost[0] + row.tie, False
            if possible:
                _settle(row)
            if not row.tied[0]:
                reopen(row, n_decided)
                decide(row, a, b, BARRED)
                follow(row)


@kernel
def _settle(row: Row) -> None:
    """Find the best tour of what is open, and whether it is tied."""
    n = len(row.costs)
    effort = 1.0
    while not _search(row, effort) and row.trees_left[0] >= 0:
        # Polyak's steps, somewhat longer, converge where the bound can reach its aim, and shorter ones where not.
        ascend(row, 100 * n, 1.8, 1.8, 0.0)
        ascend(row, 10 * n, 1.0, 0.05, 0.0)
        effort *= 2


@kernel
def _search(row: Row, effort: float) -> bool:
    """Record tours within the limit, which falls with each better one, and each tie; return False if in vain.

    The steps at a node grow with the effort, and the one-trees, after which it is in vain, with its square. All
    decisions are undone.
    """
    steps = int(STEPS * effort)
    stop = max(row.trees_left[0] - int(PATIENCE * effort**2) * len(row.costs), 0)
    n_decided, prices = row.n_decided[0], row.prices.copy()
    reach = REACH * (prices.max() - prices.min())
    branches = np.empty((len(row.decided), 3), np.int64)  # an edge, and how many were decided before it
    branch_prices = np.empty((len(row.decided), len(prices)))
    depth, possible = 0, True
    while possible and row.trees_left[0] >= stop:
        split = _close(row, steps, reach)
        if split >= 0:
            a, b = row.tree[split]
            branches[depth, 0], branches[depth, 1], branches[depth, 2] = a, b, row.n_decided[0]
            branch_prices[depth] = row.prices
            depth += 1
            decide(row, a, b, TAKEN)
            if follow(row):
                continue
        # Bar the last edge that was taken by choice; where that leaves no tour, the one before.
        possible = False
        while depth > 0 and not possible:
            depth -= 1
            reopen(row, branches[depth, 2])
            row.prices[:] = branch_prices[depth]
            decide(row, branches[depth, 0], branches[depth, 1], BARRED)
            possible = follow(row)
    reopen(row, n_decided)
    row.prices[:] = prices
    return not possible


@kernel
def _close(row: Row, steps: int, reach: float) -> int:
    """Return the edge of the one-tree to branch on, or -1 if no tour within the limit is left here."""
    while True:
        bound = ascend(row, steps, 1.0, 0.05, reach)
        if bound > row.limit[0]:
            return -1
        is_tour = bool(np.all(row.degrees == 2))
        if is_tour:
            record(row, row.tree)
            if bound > row.limit[0]:
                return -1
        narrow(row, bound)
        if not follow(row):
            return -1
        split = -1
        for k in range(len(row.tree)):
            a, b = row.tree[k]
            crowded = is_tour or row.degrees[a] > 2 or row.degrees[b] > 2
            if crowded and is_open(row, a, b) and (split < 0 or row.detours[k] < row.detours[split]):
                split = k
        if is_tour or split >= 0:
            return split
        # All edges at crowded nodes have been decided, some of them against the one-tree: the next one is another.
