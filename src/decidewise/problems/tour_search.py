"""The cheapest tour: branch and bound on one-trees, row by row.

A one-tree is a spanning tree of all nodes but node 0, with two more edges at node 0. Every tour is one, so the cheapest
one-tree, which is found greedily, costs no more than the cheapest tour. A price `p_i` on every visit of node `i` adds
`2 sum(p)` to all tours alike and so keeps their order; but prices that rise at the nodes of degree above 2 and fall at
the others drive the one-tree towards a tour. On ordinary costs the bound ends within half a percent of the best tour
(Held & Karp, "The Traveling-Salesman Problem and Minimum Spanning Trees: Part II", Mathematical Programming 1, 1971).

What an edge would add to that bound, or what leaving it out would, decides most edges at once; the search branches on
the others. A tie is broken afterwards, by more searches: edge by edge, is there a tour as good that takes this one?
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from decidewise.checks import FloatArray
from decidewise.problems.knapsack_search import _common_divisor

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Lengths of the edges that are decided; all others are open.
TAKEN, BARRED = -np.inf, np.inf
#: Tours whose costs differ by less, in units of n times the largest cost, are equal.
TIE = 1e-12
#: Steps of the ascent at the root of the search and at its other nodes.
ROOT_STEPS, NODE_STEPS = 60, 15
#: Tours that are built at the root's prices, and improved.
STARTS = 5
FLOOR = 1e-3
QUICK, SG, BG = 50, 4, 4
LONG = 200


class _Row(NamedTuple):
    """One row's edges, what is decided of them, its one-tree and its best tour."""

    costs: FloatArray  # (n, n) symmetric, at most 1 in size
    lengths: FloatArray  # (n, n) the costs of open edges, else TAKEN or BARRED, as is the diagonal
    decided: IntArray  # (n (n - 1) / 2, 2) the edges that are not open, in the order of the decisions
    prices: FloatArray  # (n,)
    tree: IntArray  # (n, 2) edges of the one-tree: grown from node 1, nodes old and new; then the two of node 0
    edge_to: IntArray  # (n,) the number of the edge that grew to each node
    degrees: IntArray  # (n,) in the one-tree
    detours: FloatArray  # (n,) what leaving out each edge of the one-tree adds to it
    tour: BoolArray  # (n, n) the best so far
    cost: FloatArray  # (1,) of that tour
    limit: FloatArray  # (1,) the search asks for tours up to this cost
    tied: BoolArray  # (1,) whether another tour is as good
    gain: float
    floor: FloatArray
    counts: IntArray  # (2,) of the edges decided, and of the one-trees left to spend


@njit(cache=True, nogil=True)
def cheapest_tours(costs: FloatArray, n: int, max_trees: int) -> tuple[FloatArray, int]:
    """Return the tours of costs (rows, n (n - 1) / 2), and the first row that took over `max_trees`, or -1."""
    decisions = np.zeros_like(costs)
    for i in range(len(costs)):
        row = _open_row(costs[i], n, max_trees)
        _find_tours(row)
        _settle(row, False)
        if row.tied[0]:
            _prefer_first(row)
        if row.counts[1] < 0:
            return decisions, i
        edge = 0
        for a in range(n):
            for b in range(a + 1, n):
                decisions[i, edge] = row.tour[a, b]
                edge += 1
    return decisions, -1


@njit(cache=True, nogil=True)
def _open_row(condensed: FloatArray, n: int, max_trees: int) -> _Row:
    costs = np.zeros((n, n))
    edge = 0
    for a in range(n):
        for b in range(a + 1, n):
            costs[a, b] = costs[b, a] = condensed[edge]
            edge += 1
    above = condensed - condensed.min()
    lengths = costs.copy()
    for a in range(n):
        lengths[a, a] = BARRED
    return _Row(
        costs,
        lengths,
        np.empty((n * (n - 1) // 2, 2), np.int64),
        np.zeros(n),
        np.empty((n, 2), np.int64),
        np.full(n, -1),
        np.empty(n, np.int64),
        np.empty(n),
        np.zeros((n, n), np.bool_),
        np.array([np.inf]),
        np.array([np.inf]),
        np.zeros(1, np.bool_),
        max(TIE * n, 0.999 * _common_divisor(above[above > TIE])),
        np.zeros(1),
        np.array([0, max_trees]),
    )


@njit(cache=True, nogil=True)
def _settle(row: _Row, any_tie: bool) -> None:
    n = len(row.costs)
    steps, budget = NODE_STEPS, QUICK * n
    while not _search(row, any_tie, steps, budget) and row.counts[1] >= 0:
        _ascend(row, LONG * n, 1.8, 1.8)
        _ascend(row, 10 * n, 1.0, 0.05)
        steps *= SG if any_tie else 1
        budget *= BG


@njit(cache=True, nogil=True)
def _search(row: _Row, any_tie: bool, steps: int, budget: int) -> bool:
    """Record every tour within the limit, which falls with each better one; or stop at the first tie."""
    base, start = row.counts[0], row.prices.copy()
    branches = np.empty((len(row.decided), 3), np.int64)  # an edge, and how many were decided before it
    prices = np.empty((len(row.decided), len(start)))
    depth = 0
    stop = max(row.counts[1] - budget, 0)
    while row.counts[1] >= stop and not (any_tie and row.tied[0]):
        split = _close(row, steps)
        if split >= 0:
            a, b = row.tree[split]
            branches[depth, 0], branches[depth, 1], branches[depth, 2] = a, b, row.counts[0]
            prices[depth] = row.prices
            depth += 1
            _decide(row, a, b, TAKEN)
            if _follow(row):
                continue
        # Bar the last edge that was taken by choice, or the one before if no tour does without both.
        possible = False
        while depth > 0 and not possible:
            depth -= 1
            _reopen(row, branches[depth, 2])
            _decide(row, branches[depth, 0], branches[depth, 1], BARRED)
            possible = _follow(row)
        if not possible:
            break
        row.prices[:] = prices[depth]
    _reopen(row, base)
    row.prices[:] = start
    return row.counts[1] >= stop


@njit(cache=True, nogil=True)
def _close(row: _Row, steps: int) -> int:
    """Return the edge of the one-tree to branch on, or -1 if no tour within the limit is left here."""
    while True:
        bound = _ascend(row, steps, 1.0, 0.05)
        if bound > row.limit[0] or row.counts[1] < 0:
            return -1
        is_tour = bool(np.all(row.degrees == 2))
        if is_tour:
            _record(row, row.tree)
            if bound > row.limit[0]:
                return -1
        _narrow(row, bound)
        if not _follow(row):
            return -1
        split = -1
        for k in range(len(row.tree)):
            a, b = row.tree[k]
            crowded = is_tour or row.degrees[a] > 2 or row.degrees[b] > 2
            if crowded and _is_open(row, a, b) and (split < 0 or row.detours[k] < row.detours[split]):
                split = k
        if is_tour or split >= 0:
            return split
        # What made the one-tree differ from a tour has been decided otherwise: there is a new one.


@njit(cache=True, nogil=True)
def _record(row: _Row, edges: IntArray) -> None:
    """Keep a tour, given by its edges (n, 2), if it is better than the best, or another one as good."""
    cost, known = 0.0, True
    for k in range(len(edges)):
        a, b = edges[k]
        cost += row.costs[a, b]
        known &= row.tour[a, b]
    tie = TIE * len(edges)
    if known or cost > row.cost[0] + tie:
        return
    row.tied[0] = cost >= row.cost[0] - tie
    if not row.tied[0]:
        row.cost[0] = cost
    row.limit[0] = row.cost[0] - row.gain if row.tied[0] else cost + tie
    row.tour[:] = False
    for k in range(len(edges)):
        a, b = edges[k]
        row.tour[a, b] = row.tour[b, a] = True


@njit(cache=True, nogil=True)
def _prefer_first(row: _Row) -> None:
    """Turn the tour into the first of the best ones: edge by edge, take it if one of them does."""
    limit = row.cost[0] + TIE * len(row.costs)
    row.limit[0] = limit
    row.floor[0] = FLOOR * (row.prices.max() - row.prices.min())
    _narrow(row, _ascend(row, ROOT_STEPS, 1.0, 0.05))
    _follow(row)
    for a in range(len(row.costs)):
        for b in range(a + 1, len(row.costs)):
            if not _is_open(row, a, b) or row.counts[1] < 0:
                continue
            mark = row.counts[0]
            _decide(row, a, b, TAKEN)
            possible = _follow(row)
            if row.tour[a, b]:
                continue
            row.limit[0], row.tied[0] = limit, False
            if possible:
                _settle(row, True)
            if not row.tied[0]:
                _reopen(row, mark)
                _decide(row, a, b, BARRED)
                _follow(row)


# The bound.


@njit(cache=True, nogil=True)
def _ascend(row: _Row, steps: int, pace: float, end: float) -> float:
    """Raise the bound by steps along the subgradient `degrees - 2`; return the best, with its prices and one-tree."""
    n = len(row.prices)
    best, best_prices = -np.inf, row.prices.copy()
    last = np.zeros(n)
    shrink = (end / pace) ** (1 / steps)
    for _ in range(steps):
        bound = _grow(row)
        if bound > best:
            best = bound
            best_prices[:] = row.prices
        excess = 0
        for i in range(n):
            excess += (row.degrees[i] - 2) ** 2
        gap = row.limit[0] - bound
        if gap < 0.0 or excess == 0:
            return bound
        gap = row.cost[0] - bound if row.limit[0] < row.cost[0] else max(gap, row.floor[0])
        for i in range(n):
            slope = row.degrees[i] - 2.0
            row.prices[i] += pace * gap / excess * (0.7 * slope + 0.3 * last[i])
            last[i] = slope
        pace *= shrink
    row.prices[:] = best_prices
    return _grow(row)


@njit(cache=True, nogil=True)
def _grow(row: _Row) -> float:
    """Grow the cheapest one-tree by Prim's method; return its cost without the prices, a bound on every tour."""
    n = len(row.prices)
    lengths, prices, tree = row.lengths, row.prices, row.tree
    reach = row.detours  # of the nodes that are still outside, as edges of `tree` behind those that have grown
    row.counts[1] -= 1
    total = 0.0
    nearest = 0
    for k in range(n - 2):
        tree[k, 0], tree[k, 1] = 1, k + 2
        reach[k] = lengths[1, k + 2] + prices[1] + prices[k + 2]
        if reach[k] < reach[nearest]:
            nearest = k
    row.degrees[:] = 0
    for k in range(n - 2):
        if reach[nearest] == BARRED:
            return np.inf
        old, new = tree[nearest]
        tree[nearest, 0], tree[nearest, 1] = tree[k]
        tree[k, 0], tree[k, 1] = old, new
        reach[nearest] = reach[k]
        row.edge_to[new] = k
        row.degrees[old] += 1
        row.degrees[new] += 1
        total += row.costs[old, new] + prices[old] + prices[new]
        nearest = k + 1
        for m in range(k + 1, n - 2):
            outside = tree[m, 1]
            length = lengths[new, outside] + prices[new] + prices[outside]
            if length < reach[m]:
                reach[m] = length
                tree[m, 0] = new
            if reach[m] < reach[nearest]:
                nearest = m
    first, second = 1, 2
    if lengths[0, second] + prices[second] < lengths[0, first] + prices[first]:
        first, second = second, first
    for j in range(3, n):
        if lengths[0, j] + prices[j] < lengths[0, first] + prices[first]:
            first, second = j, first
        elif lengths[0, j] + prices[j] < lengths[0, second] + prices[second]:
            second = j
    if lengths[0, second] == BARRED:
        return np.inf
    tree[n - 2, 0], tree[n - 2, 1] = 0, first
    tree[n - 1, 0], tree[n - 1, 1] = 0, second
    row.degrees[0] = 2
    row.degrees[first] += 1
    row.degrees[second] += 1
    total += row.costs[0, first] + row.costs[0, second] + prices[first] + prices[second] + 2 * prices[0]
    return total - 2 * prices.sum()


@njit(cache=True, nogil=True)
def _narrow(row: _Row, bound: float) -> None:
    """Bar the edges that would raise the bound above the limit, take those whose absence would; set the detours."""
    n = len(row.costs)
    slack = row.limit[0] - bound
    row.detours[:] = np.inf
    for a in range(n):
        for b in range(a + 1, n):
            if not _is_open(row, a, b) or _in_tree(row, a, b):
                continue
            length = _length(row, a, b)
            # With this edge comes a circle, of which the longest other edge can go.
            longest = TAKEN
            k, i, j = _circle(row, a, b, -1)
            while k >= 0:
                longest = max(longest, _length(row, row.tree[k, 0], row.tree[k, 1]))
                k, i, j = _circle(row, i, j, k)
            if length - longest > slack:
                _decide(row, a, b, BARRED)
                continue
            k, i, j = _circle(row, a, b, -1)
            while k >= 0:
                detour = length - _length(row, row.tree[k, 0], row.tree[k, 1])
                row.detours[k] = min(row.detours[k], detour)
                k, i, j = _circle(row, i, j, k)
    for k in range(n):
        a, b = row.tree[k]
        if row.detours[k] > slack and _is_open(row, a, b):
            _decide(row, a, b, TAKEN)


@njit(cache=True, nogil=True)
def _circle(row: _Row, a: int, b: int, k: int) -> tuple[int, int, int]:
    """Return the next edge after `k` of the one-tree that an edge a-b could replace, or -1, and the ends moved on."""
    n = len(row.costs)
    if a == 0:
        following = n - 2 if k < 0 else k + 1
        return (following if following < n else -1), a, b
    if a == b:
        return -1, a, b
    if row.edge_to[a] < row.edge_to[b]:  # step back from the node that grew later, until both meet
        a, b = b, a
    return row.edge_to[a], row.tree[row.edge_to[a], 0], b


@njit(cache=True, nogil=True)
def _in_tree(row: _Row, a: int, b: int) -> bool:
    if a == 0:
        return b == row.tree[-1, 1] or b == row.tree[-2, 1]
    return (a > 1 and row.tree[row.edge_to[a], 0] == b) or (b > 1 and row.tree[row.edge_to[b], 0] == a)


@njit(cache=True, nogil=True)
def _length(row: _Row, a: int, b: int) -> float:
    return row.lengths[a, b] + row.prices[a] + row.prices[b]


# The edges.


@njit(cache=True, nogil=True)
def _is_open(row: _Row, a: int, b: int) -> bool:
    return TAKEN < row.lengths[a, b] < BARRED


@njit(cache=True, nogil=True)
def _decide(row: _Row, a: int, b: int, length: float) -> None:
    row.lengths[a, b] = row.lengths[b, a] = length
    row.decided[row.counts[0], 0], row.decided[row.counts[0], 1] = a, b
    row.counts[0] += 1


@njit(cache=True, nogil=True)
def _reopen(row: _Row, mark: int) -> None:
    """Undo all decisions but the first `mark`."""
    for k in range(mark, row.counts[0]):
        a, b = row.decided[k]
        row.lengths[a, b] = row.lengths[b, a] = row.costs[a, b]
    row.counts[0] = mark


@njit(cache=True, nogil=True)
def _follow(row: _Row) -> bool:
    """Decide what follows from the decisions until nothing does; return whether a tour may be left."""
    n = len(row.costs)
    taken = np.empty(n, np.int64)
    while True:
        before = row.counts[0]
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
                    if _is_open(row, a, b):
                        _decide(row, a, b, length)
        if row.counts[0] == before:
            if not _bar_circles(row, taken):
                return False
            if row.counts[0] == before:
                return True


@njit(cache=True, nogil=True)
def _bar_circles(row: _Row, taken: IntArray) -> bool:
    """Bar the edges that join the ends of a path of taken edges; return False if taken edges form a smaller circle."""
    n = len(taken)
    seen = np.zeros(n, np.bool_)
    for ends in (1, 2):  # first the paths, from their ends; what is left are circles
        for start in range(n):
            if seen[start] or taken[start] != ends:
                continue
            a, size, b = start, 0, 0
            while b < n:
                seen[a] = True
                size += 1
                b = 0
                while b < n and (seen[b] or row.lengths[a, b] != TAKEN):
                    b += 1
                if b < n:
                    a = b
            if size < n:
                if ends == 2:
                    return False
                if _is_open(row, start, a):
                    _decide(row, start, a, BARRED)
    return True


# Tours to start with.


@njit(cache=True, nogil=True)
def _find_tours(row: _Row) -> None:
    """Record a tour that is good at no prices, raise the prices, and record tours that are good at these."""
    _record(row, _improved(row.costs, _nearest_neighbours(row, 0)))
    _ascend(row, ROOT_STEPS, 1.0, 0.05)
    for start in range(min(STARTS, len(row.costs))):
        _record(row, _improved(row.costs, _nearest_neighbours(row, start)))


@njit(cache=True, nogil=True)
def _nearest_neighbours(row: _Row, start: int) -> IntArray:
    """Go from node to node, always to the nearest that is left; prices say where it is worth going early."""
    n = len(row.costs)
    nodes = np.arange(n)
    nodes[0], nodes[start] = start, 0
    for k in range(1, n):
        nearest = k
        for m in range(k + 1, n):
            if _length(row, nodes[k - 1], nodes[m]) < _length(row, nodes[k - 1], nodes[nearest]):
                nearest = m
        nodes[k], nodes[nearest] = nodes[nearest], nodes[k]
    return nodes


@njit(cache=True, nogil=True)
def _improved(costs: FloatArray, nodes: IntArray) -> IntArray:
    """Turn stretches of a tour round, or move short ones elsewhere, while that helps; return its edges (n, 2)."""
    idle = 0
    while idle < len(nodes):
        if _move_front(costs, nodes):
            idle = 0
        else:
            nodes[:] = np.roll(nodes, -1)
            idle += 1
    return np.column_stack((nodes, np.roll(nodes, -1)))


@njit(cache=True, nogil=True)
def _move_front(costs: FloatArray, nodes: IntArray) -> bool:
    """Make the best move of a stretch at the front, if there is one that saves something."""
    n = len(nodes)
    most, best_size, best_place, best_turned = TIE, 0, 0, False
    first, last = nodes[0], nodes[n - 1]
    for size in range(1, n - 1):
        end, after = nodes[size - 1], nodes[size]
        cut = costs[last, first] + costs[end, after]
        saved = cut - costs[last, end] - costs[first, after]
        if saved > most:
            most, best_size, best_place, best_turned = saved, size, size, True
        if size > 3:
            continue
        for place in range(size + 1, n):
            left, right = nodes[place - 1], nodes[place]
            gap = cut - costs[last, after] + costs[left, right]
            straight, turned = costs[left, first] + costs[end, right], costs[left, end] + costs[first, right]
            saved = gap - min(straight, turned)
            if saved > most:
                most, best_size, best_place, best_turned = saved, size, place, turned < straight
    if best_size == 0:
        return False
    stretch = nodes[:best_size].copy()
    nodes[: best_place - best_size] = nodes[best_size:best_place].copy()
    nodes[best_place - best_size : best_place] = stretch[::-1] if best_turned else stretch
    return True
