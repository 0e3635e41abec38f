"""Subtour rows that bind at a tour and help to prove it optimal."""

from __future__ import annotations

import numpy as np

from decidewise.checks import FloatArray
from decidewise.kernels import kernel
from decidewise.problems.tour_bound import ascend, length
from decidewise.problems.tour_row import BoolArray, Row, open_row


@kernel
def binding_sets(costs: FloatArray, decisions: FloatArray, n: int) -> BoolArray:
    """Return sets of nodes (sets, n), more than two inside and outside, through which tours pass at one stretch.

    At good prices the cheapest one-tree proves the tour, or nearly so. Kruskal's method grows it from sets of nodes; a
    set that stays while the edges get longer has a positive multiplier in that proof. Node 0 is in none of them: a set
    and its complement give equivalent rows.
    """
    sets = np.zeros((len(costs) * n, n), np.bool_)
    count = 0
    for i in range(len(costs)):
        row = open_row(costs[i], n, np.array([10 * n]))
        row.cost[0] = costs[i] @ decisions[i]
        row.limit[0] = row.cost[0]
        edge = 0
        for a in range(n):
            for b in range(a + 1, n):
                row.tour[a, b] = row.tour[b, a] = decisions[i, edge] > 0.5
                edge += 1
        ascend(row, 10 * n, 1.0, 0.01, 0.0)
        for inside in _sets_of(row):
            sets[count] = inside
            count += 1
    return sets[:count]


@kernel
def _sets_of(row: Row) -> BoolArray:
    n = len(row.costs)
    sets, count = np.zeros((n, n), np.bool_), 0
    lengths = np.array([length(row, row.tree[k, 0], row.tree[k, 1]) for k in range(n - 2)])
    group = np.arange(n)
    grown_by = np.full(n, np.inf)  # the length of the edge that made each group; nothing is longer for a single node
    for k in np.argsort(lengths):
        for end in row.tree[k]:
            inside = group == group[end]
            size = inside.sum()
            if lengths[k] > grown_by[group[end]] + row.tie and 2 < size < n - 2:
                within = 0
                for a in range(n):
                    for b in range(a):
                        within += row.tour[a, b] and inside[a] and inside[b]
                if within == size - 1:
                    sets[count] = inside
                    count += 1
        joined, left = group[row.tree[k, 0]], group[row.tree[k, 1]]
        group[group == left] = joined
        grown_by[joined] = lengths[k]
    return sets[:count]
