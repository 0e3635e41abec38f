"""A lower bound on the cost of every tour, the cheapest one-tree with prices on the nodes, and cuts that prove it.

A one-tree is a spanning tree of all nodes but node 0, plus two edges at node 0. Every tour is a one-tree, so the
cheapest one-tree, which is found greedily, costs at most as much as the cheapest tour. A price `p_i` on every visit to
node `i` adds `2 sum(p)` to all tours and so keeps their order. But prices that rise at nodes of degree above 2 and fall
at nodes of degree 1 make the cheapest one-tree more like a tour. On ordinary costs the bound ends within half a percent
of the best tour (Held & Karp, "The Traveling-Salesman Problem and Minimum Spanning Trees: Part II", Mathematical
Programming 1, 1971).
"""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.travelling_salesman.state import (
    BARRED,
    COST,
    EXCESS,
    LIMIT,
    TAKEN,
    TIE,
    TourState,
    decide,
    is_open,
    make_state,
    of_row,
)

#: Steps of the ascent for each node before cuts are looked for.
CUT_STEPS = 10


@kernel(inner=True, _nrt=False, error_model="numpy")
def ascend(at: TourState, steps: int, pace: float, last_pace: float, reach: float) -> float:
    """Raise the bound by changing the prices; return the best bound, and set its prices and its one-tree.

    Parameters
    ----------
    steps : int
        The largest number of steps along the subgradient `degrees - 2`. The ascent ends early if the bound exceeds the
        limit or the one-tree is a tour.
    pace, last_pace : float
        The lengths of the first and the last step, in units of Polyak's step, which suits a bound that can reach its
        aim: the limit, or the cost of the best tour if the limit is below it.
    reach : float
        The least distance to aim at, in units of the mean absolute price. Without it, Polyak's step would be zero if
        the bound equals the limit, although the bound may still rise.
    """
    prices, best_prices, degrees, numbers = at.prices, at.best_prices, at.degrees, at.numbers
    n = len(prices)
    best = -np.inf
    change = (last_pace / pace) ** (1 / steps)
    least = 0.0
    while True:
        if steps == 0:
            for i in range(n):
                prices[i] = best_prices[i]
        bound = grow_one_tree(at)
        if steps == 0 or bound > numbers[LIMIT] or numbers[EXCESS] == 0 or at.trees[0] < 0:
            return bound
        aim = numbers[LIMIT] if numbers[LIMIT] > numbers[COST] else numbers[COST]
        distance = aim - bound if aim - bound > least else least
        stride = pace * distance / numbers[EXCESS]
        least = 0.0
        for i in range(n):
            if bound > best:
                best_prices[i] = prices[i]
            prices[i] += stride * (degrees[i] - 2)
            least += reach / n * abs(prices[i])
        if bound > best:
            best = bound
        pace *= change
        steps -= 1


@kernel(inner=True, _nrt=False)
def grow_one_tree(at: TourState) -> float:
    """Find the cheapest one-tree by Prim's method; return its cost less `2 sum(p)`, or infinity if there is none.

    After the edges of the tree, `old` and `new` hold the shortest edge to each node outside it, of length `ways`, which
    take the place of the detours.
    """
    costs, lengths, prices, degrees = at.costs, at.lengths, at.prices, at.degrees
    ways, old, new, edge_to = at.detours, at.old, at.new, at.edge_to
    n = len(prices)
    at.trees[0] -= 1
    first = second = nearest = 0
    to_first = to_second = BARRED
    for b in range(1, n):
        way = lengths[0, b] + prices[b]
        if way < to_first:
            second, to_second = first, to_first
            first, to_first = b, way
        elif way < to_second:
            second, to_second = b, way
        if b > 1:
            old[b - 2], new[b - 2], ways[b - 2] = 1, b, length(lengths, prices, 1, b)
            if ways[b - 2] < ways[nearest]:
                nearest = b - 2
    for k in range(n - 2):
        a, b = old[nearest], new[nearest]
        old[nearest], new[nearest], ways[nearest] = old[k], new[k], ways[k]
        old[k], new[k], edge_to[b] = a, b, k
        nearest = k + 1
        for m in range(k + 1, n - 2):
            way = length(lengths, prices, b, new[m])
            if way < ways[m]:
                ways[m] = way
                old[m] = b
            if ways[m] < ways[nearest]:
                nearest = m
    old[n - 2], new[n - 2] = 0, first
    old[n - 1], new[n - 1] = 0, second
    total = excess = 0.0
    for i in range(n):
        total -= 2 * prices[i]
        degrees[i] = 0
    for k in range(n):
        a, b = old[k], new[k]
        if lengths[a, b] == BARRED:
            return np.inf
        total += costs[a, b] + prices[a] + prices[b]
        excess += degrees[a] + degrees[b] - 1
        degrees[a] += 1
        degrees[b] += 1
    at.numbers[EXCESS] = 2 * excess
    return total


@kernel(inner=True, _nrt=False)
def fix_edges(at: TourState, bound: float) -> int:
    """Bar the edges whose use would raise the bound above the limit, and take those whose absence would; set `detours`.

    Return the edge of the one-tree to branch on: the open edge with the shortest detour at a node of degree above 2, or
    at any node if the one-tree is a tour; -1 if there is none.
    """
    lengths, prices, detours, degrees, numbers = at.lengths, at.prices, at.detours, at.degrees, at.numbers
    old, new, edge_to = at.old, at.new, at.edge_to
    n = len(prices)
    slack = numbers[LIMIT] - bound
    for k in range(n):
        detours[k] = np.inf
    for a in range(n):
        for b in range(a + 1, n):
            if not is_open(lengths, a, b) or old[edge_to[b]] == a or old[edge_to[a]] == b:
                continue
            here = length(lengths, prices, a, b)
            longest = TAKEN
            # Visit the edges that this one could replace in the one-tree twice: first to find the longest, which may
            # bar this edge, then to shorten their detours.
            for turn in range(2):
                i, j, k = a, b, n - 3
                while i != j and k < n - 1:
                    if a == 0:
                        k += 1
                    else:
                        # From the node that joined the tree later, step towards the root, until both ends meet.
                        if edge_to[i] < edge_to[j]:
                            i, j = j, i
                        k = edge_to[i]
                        i = old[k]
                    there = length(lengths, prices, old[k], new[k])
                    if there > longest:
                        longest = there
                    if turn == 1 and here - there < detours[k]:
                        detours[k] = here - there
                if here - longest > slack:
                    decide(at, a, b, BARRED)
                    break
    split = -1
    for k in range(n):
        a, b = old[k], new[k]
        if is_open(lengths, a, b):
            if detours[k] > slack:
                decide(at, a, b, TAKEN)
            elif (split < 0 or detours[k] < detours[split]) and (
                numbers[EXCESS] == 0 or degrees[a] > 2 or degrees[b] > 2
            ):
                split = k
    return split


@kernel(inner=True, _nrt=False)
def length(lengths: FloatArray, prices: FloatArray, a: int, b: int) -> float:
    """Return the length of an edge plus the prices of its two nodes."""
    return lengths[a, b] + prices[a] + prices[b]


def binding_sets(costs: FloatArray, decisions: FloatArray, n: int) -> BoolArray:
    """Return sets of nodes (sets, n) that a tour visits consecutively, with more than two nodes inside and outside.

    At good prices the cheapest one-tree proves, or nearly proves, that the tour is optimal. Kruskal's method builds the
    one-tree by merging sets of nodes in the order of edge lengths; a set that is merged later than it was made, by a
    longer edge, has a positive multiplier in this proof. No set contains node 0: a set and its complement give
    equivalent constraints.
    """
    rows = make_state(costs, decisions, n, np.array([len(costs) * (CUT_STEPS * n + 1)]))
    rows.numbers[:, COST] = rows.numbers[:, LIMIT] = (costs * decisions).sum(axis=1)
    sets = np.zeros((len(costs) * n + 1, n))
    count = _collect(rows, sets)
    return sets[:count] > 0


@kernel(_nrt=False)
def _collect(rows: TourState, sets: FloatArray) -> int:
    """Write the sets to the rows of `sets`, and return their number.

    Price: raise the bound of the one-tree.
    Merge: join groups by its shortest edge.
    Keep: groups that live long, and are consecutive.
    """
    n = len(rows.old)
    count = 0
    for row in range(len(rows.costs)):
        at = of_row(rows, row)
        ascend(at, CUT_STEPS * n, 1.0, 0.01, 0.0)
        old, new, group, grown_by, ways = at.old, at.new, at.edge_to, at.best_prices, at.detours
        for k in range(n):
            group[k] = k
            grown_by[k] = np.inf  # the length of the edge that made each group; infinite leaves out single nodes
            ways[k] = length(at.costs, at.prices, old[k], new[k])
        for _ in range(n - 2):
            shortest = 0
            for k in range(n - 2):
                if ways[k] < ways[shortest]:
                    shortest = k
            way, ways[shortest] = ways[shortest], np.inf
            one, other = group[old[shortest]], group[new[shortest]]
            for _ in range(2):
                one, other = other, one
                if way > grown_by[one] + at.numbers[TIE]:
                    count += _is_consecutive(at.tour, group, one, sets[count])
            for i in range(n):
                if group[i] == other:
                    group[i] = one
            grown_by[one] = way
    return count


@kernel(inner=True, _nrt=False)
def _is_consecutive(tour: FloatArray, group: IntArray, name: int, inside: FloatArray) -> bool:
    """Set `inside` to the group; return whether the tour visits it consecutively and 2 < its size < n - 2."""
    n = len(group)
    size = within = 0.0
    for a in range(n):
        inside[a] = group[a] == name
        size += inside[a]
        for b in range(a):
            within += inside[a] * inside[b] * tour[a, b]
    return 2 < size < n - 2 and within == size - 1
