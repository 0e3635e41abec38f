"""Subtour rows that bind at a tour and help to prove it optimal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.problems.travelling_salesman.bound import ascend, length
from decidewise.problems.travelling_salesman.state import COST, LIMIT, TIE, open_rows
from decidewise.runtime.batches import IntArray
from decidewise.runtime.kernels import kernel

#: Steps of the ascent for each node.
STEPS = 10


def binding_sets(costs: FloatArray, decisions: FloatArray, n: int) -> npt.NDArray[np.bool_]:
    """Return sets of nodes (sets, n), more than two inside and outside, through which tours pass at one stretch.

    At good prices the cheapest one-tree proves the tour, or nearly so. Kruskal's method grows it from sets of nodes; a
    set that stays while the edges get longer has a positive multiplier in that proof. Node 0 is in none of them: a set
    and its complement give equivalent rows.
    """
    square, numbers = open_rows(costs, n)
    numbers[:, COST] = numbers[:, LIMIT] = (costs * decisions).sum(axis=1)
    tours, _ = open_rows(decisions, n)
    sets = np.zeros((len(costs) * n + 1, n))
    trees = np.array([len(costs) * (STEPS * n + 1)])
    floats, ints = np.zeros((2, n)), np.zeros((4, n), np.int64)
    count = _collect(square, np.zeros((len(costs), n)), *floats, *ints, tours, numbers, trees, sets)
    return sets[:count] > 0


@kernel
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
    """Write the sets, one after the other, and return how many there are."""
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
            grown_by[k] = np.inf  # the length of the edge that made each group; nothing is longer for a single node
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
                    count += _is_stretch(tours[row], group, one, sets[count])
            for i in range(n):
                if group[i] == other:
                    group[i] = one
            grown_by[one] = way
    return count


@kernel(inner=True)
def _is_stretch(tour: FloatArray, group: IntArray, name: int, inside: FloatArray) -> bool:
    """Whether the tour passes through a group at one stretch, with more than two nodes inside and outside."""
    n = len(group)
    size = within = 0.0
    for a in range(n):
        inside[a] = group[a] == name
        size += inside[a]
        for b in range(a):
            within += inside[a] * inside[b] * tour[a, b]
    return 2 < size < n - 2 and within == size - 1
