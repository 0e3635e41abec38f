"""Subtour constraints that bind at a tour and help to prove it optimal."""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.travelling_salesman.bound import ascend, length
from decidewise.problems.travelling_salesman.state import COST, LIMIT, TIE, open_rows

#: Steps of the ascent for each node.
STEPS = 10


def binding_sets(costs: FloatArray, decisions: FloatArray, n: int) -> BoolArray:
    """Return sets of nodes (sets, n) that a tour visits consecutively, with more than two nodes inside and outside.

    At good prices the cheapest one-tree proves, or nearly proves, that the tour is optimal. Kruskal's method builds the
    one-tree by merging sets of nodes in the order of edge lengths; a set that is merged later than it was made, by a
    longer edge, has a positive multiplier in this proof. No set contains node 0: a set and its complement give
    equivalent constraints.
    """
    square, numbers = open_rows(costs, n)
    numbers[:, COST] = numbers[:, LIMIT] = (costs * decisions).sum(axis=1)
    tours, _ = open_rows(decisions, n)
    sets = np.zeros((len(costs) * n + 1, n))
    trees = np.array([len(costs) * (STEPS * n + 1)])
    floats, ints = np.zeros((2, n)), np.zeros((4, n), np.int64)
    count = _collect(square, np.zeros((len(costs), n)), *floats, *ints, tours, numbers, trees, sets)
    return sets[:count] > 0


@kernel(_nrt=False)
def _collect(
    all_costs: FloatArray,
    all_prices: FloatArray,
    best_prices: FloatArray,
    detours: FloatArray,
    old: IntArray,
    new: IntArray,
    edge_to: IntArray,
    degrees: IntArray,
    tours: FloatArray,
    all_numbers: FloatArray,
    trees: IntArray,
    sets: FloatArray,
) -> int:
    """Write the sets to the rows of `sets`, and return their number.

    Price: raise the bound of the one-tree.
    Merge: join groups by its shortest edge.
    Keep: groups that live long, and are consecutive.
    """
    n = len(old)
    count = 0
    for row in range(len(tours)):
        costs, prices, numbers = all_costs[row], all_prices[row], all_numbers[row]
        ascend(
            costs,
            costs,
            prices,
            best_prices,
            detours,
            old,
            new,
            edge_to,
            degrees,
            numbers,
            trees,
            STEPS * n,
            1.0,
            0.01,
            0.0,
        )
        group, grown_by, ways = edge_to, best_prices, detours
        for k in range(n):
            group[k] = k
            grown_by[k] = np.inf  # the length of the edge that made each group; infinite leaves out single nodes
            ways[k] = length(costs, prices, old[k], new[k])
        for _ in range(n - 2):
            shortest = 0
            for k in range(n - 2):
                if ways[k] < ways[shortest]:
                    shortest = k
            way, ways[shortest] = ways[shortest], np.inf
            one, other = group[old[shortest]], group[new[shortest]]
            for _ in range(2):
                one, other = other, one
                if way > grown_by[one] + numbers[TIE]:
                    count += _is_consecutive(tours[row], group, one, sets[count])
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
