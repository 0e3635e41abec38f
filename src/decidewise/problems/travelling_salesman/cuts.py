"""Subtour constraints that bind at a tour and help to prove it optimal."""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.travelling_salesman.bound import ascend, length
from decidewise.problems.travelling_salesman.state import COST, LIMIT, TIE, TourState, make_state, of_row

#: Steps of the ascent for each node.
STEPS = 10


def binding_sets(costs: FloatArray, decisions: FloatArray, n: int) -> BoolArray:
    """Return sets of nodes (sets, n) that a tour visits consecutively, with more than two nodes inside and outside.

    At good prices the cheapest one-tree proves, or nearly proves, that the tour is optimal. Kruskal's method builds the
    one-tree by merging sets of nodes in the order of edge lengths; a set that is merged later than it was made, by a
    longer edge, has a positive multiplier in this proof. No set contains node 0: a set and its complement give
    equivalent constraints.
    """
    rows = make_state(costs, decisions, n, np.array([len(costs) * (STEPS * n + 1)]))
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
        ascend(at, STEPS * n, 1.0, 0.01, 0.0)
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
