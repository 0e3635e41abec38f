"""A bound on the cost of every tour: the cheapest one-tree, with prices on the nodes.

A one-tree is a spanning tree of all nodes but node 0, with two more edges at node 0. Every tour is one, so the cheapest
one-tree, which is found greedily, costs no more than the cheapest tour. A price `p_i` on every visit to node `i` adds
`2 sum(p)` to all tours alike and so keeps their order; but prices that rise at the nodes of degree above 2 and fall at
the others drive the one-tree towards a tour. On ordinary costs the bound ends within half a percent of the best tour
(Held & Karp, "The Traveling-Salesman Problem and Minimum Spanning Trees: Part II", Mathematical Programming 1, 1971).
"""

from __future__ import annotations

import numpy as np

from decidewise.checks import FloatArray
from decidewise.kernels import kernel
from decidewise.problems.tour_row import BARRED, TAKEN, Row, decide, is_open


@kernel
def ascend(row: Row, steps: int, pace: float, last_pace: float, reach: float) -> float:
    """Raise the bound by changing the prices; return the best, with its prices and its one-tree.

    Parameters
    ----------
    steps : int
        The most steps to take, along the subgradient `degrees - 2`. They end as soon as the bound exceeds the limit or
        the one-tree is a tour.
    pace, last_pace : float
        The first and the last step, in units of Polyak's, which is right for a bound that can reach its aim: the limit,
        or the cost of the best tour where only better ones are searched for.
    reach : float
        The least distance to aim at. Where the bound is equal to the limit, Polyak's step is zero, though the bound may
        well rise.
    """
    n = len(row.prices)
    best, best_prices = -np.inf, row.prices.copy()
    previous = np.zeros(n)
    change = (last_pace / pace) ** (1 / steps)
    for _ in range(steps):
        bound = grow(row)
        if bound > best:
            best = bound
            best_prices[:] = row.prices
        excess = 0
        for i in range(n):
            excess += (row.degrees[i] - 2) ** 2
        if bound > row.limit[0] or excess == 0:
            return bound
        distance = max(max(row.limit[0], row.cost[0]) - bound, reach)
        for i in range(n):
            slope = row.degrees[i] - 2.0
            row.prices[i] += pace * distance / excess * (0.7 * slope + 0.3 * previous[i])
            previous[i] = slope
        pace *= change
    row.prices[:] = best_prices
    return grow(row)


@kernel
def grow(row: Row) -> float:
    """Grow the cheapest one-tree by Prim's method; return its cost less the prices of a tour, or infinity."""
    n = len(row.prices)
    lengths, prices, tree, degrees = row.lengths, row.prices, row.tree, row.degrees
    ways = row.detours  # to the nodes outside, along the edges of `tree` behind those that have grown
    row.trees_left[0] -= 1
    degrees[:] = 0
    total = -2 * prices.sum()
    nearest = 0
    for k in range(n - 2):
        tree[k, 0], tree[k, 1] = 1, k + 2
        ways[k] = lengths[1, k + 2] + prices[1] + prices[k + 2]
        if ways[k] < ways[nearest]:
            nearest = k
    for k in range(n - 2):
        if ways[nearest] == BARRED:
            return np.inf
        old, new = tree[nearest]
        tree[nearest, 0], tree[nearest, 1], ways[nearest] = tree[k, 0], tree[k, 1], ways[k]
        tree[k, 0], tree[k, 1] = old, new
        row.edge_to[new] = k
        total += row.costs[old, new] + prices[old] + prices[new]
        degrees[old] += 1
        degrees[new] += 1
        nearest = k + 1
        for m in range(k + 1, n - 2):
            outside = tree[m, 1]
            way = lengths[new, outside] + prices[new] + prices[outside]
            if way < ways[m]:
                ways[m] = way
                tree[m, 0] = new
            if ways[m] < ways[nearest]:
                nearest = m
    nearest_two = _nearest_to_zero(lengths, prices)
    for k in range(2):
        b = nearest_two[k]
        if lengths[0, b] == BARRED:
            return np.inf
        tree[n - 2 + k, 0], tree[n - 2 + k, 1] = 0, b
        total += row.costs[0, b] + prices[0] + prices[b]
        degrees[0] += 1
        degrees[b] += 1
    return total


@kernel
def _nearest_to_zero(lengths: FloatArray, prices: FloatArray) -> tuple[int, int]:
    """Return the nearest node to node 0 and the second nearest."""
    first, second = 1, 2
    if lengths[0, second] + prices[second] < lengths[0, first] + prices[first]:
        first, second = second, first
    for b in range(3, len(prices)):
        if lengths[0, b] + prices[b] < lengths[0, first] + prices[first]:
            first, second = b, first
        elif lengths[0, b] + prices[b] < lengths[0, second] + prices[second]:
            second = b
    return first, second


@kernel
def narrow(row: Row, bound: float) -> None:
    """Bar the edges that would raise the bound above the limit, take those whose absence would; set the detours."""
    n = len(row.costs)
    slack = row.limit[0] - bound
    row.detours[:] = np.inf
    for a in range(n):
        for b in range(a + 1, n):
            if not is_open(row, a, b) or _in_tree(row, a, b):
                continue
            new = length(row, a, b)
            longest = TAKEN
            k, i, j = _circle(row, -1, a, b)
            while k >= 0:
                longest = max(longest, length(row, row.tree[k, 0], row.tree[k, 1]))
                k, i, j = _circle(row, k, i, j)
            if new - longest > slack:
                decide(row, a, b, BARRED)
                continue
            k, i, j = _circle(row, -1, a, b)
            while k >= 0:
                row.detours[k] = min(row.detours[k], new - length(row, row.tree[k, 0], row.tree[k, 1]))
                k, i, j = _circle(row, k, i, j)
    for k in range(n):
        a, b = row.tree[k]
        if row.detours[k] > slack and is_open(row, a, b):
            decide(row, a, b, TAKEN)


@kernel
def length(row: Row, a: int, b: int) -> float:
    """Return the length of an edge with the prices of its ends."""
    return row.lengths[a, b] + row.prices[a] + row.prices[b]


@kernel
def _in_tree(row: Row, a: int, b: int) -> bool:
    if a == 0:
        return b == row.tree[-1, 1] or b == row.tree[-2, 1]
    return (b > 1 and row.tree[row.edge_to[b], 0] == a) or (a > 1 and row.tree[row.edge_to[a], 0] == b)


@kernel
def _circle(row: Row, k: int, a: int, b: int) -> tuple[int, int, int]:
    """Go round the edges that an edge a-b could replace in the one-tree: return the one after `k`, or -1 at the end.

    The nodes that come with it stand for a and b in the next call.
    """
    if a == 0:
        n = len(row.costs)
        k = max(k + 1, n - 2)
        return (k if k < n else -1), a, b
    if a == b:
        return -1, a, b
    # From the node that joined the tree later a step towards its root, until both meet.
    if row.edge_to[a] < row.edge_to[b]:
        a, b = b, a
    k = row.edge_to[a]
    return k, row.tree[k, 0], b
