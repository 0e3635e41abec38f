"""Good tours to start with, so that the search can leave out what costs more."""

from __future__ import annotations

import numpy as np

from decidewise.checks import FloatArray
from decidewise.kernels import kernel
from decidewise.problems.tour_bound import ascend, length
from decidewise.problems.tour_row import TIE, IntArray, Row, record

#: Steps of the first ascent for each node, and tours that are built and improved after it.
STEPS, STARTS = 2, 5


@kernel
def find_tours(row: Row) -> None:
    """Record a tour that is good without prices, raise the prices, and record tours that are good with them."""
    record(row, _improve(row.costs, _visit_nearest(row, 0)))
    ascend(row, STEPS * len(row.costs), 1.0, 0.05, 0.0)
    for start in range(min(STARTS, len(row.costs))):
        record(row, _improve(row.costs, _visit_nearest(row, start)))


@kernel
def _visit_nearest(row: Row, start: int) -> IntArray:
    """Go from node to node, always to the nearest that is left; prices tell which nodes must not be left to the end."""
    nodes = np.arange(len(row.costs))
    nodes[0], nodes[start] = start, 0
    for k in range(1, len(nodes)):
        nearest = k
        for m in range(k + 1, len(nodes)):
            if length(row, nodes[k - 1], nodes[m]) < length(row, nodes[k - 1], nodes[nearest]):
                nearest = m
        nodes[k], nodes[nearest] = nodes[nearest], nodes[k]
    return nodes


@kernel
def _improve(costs: FloatArray, nodes: IntArray) -> IntArray:
    """Turn stretches of a tour round, or move short ones elsewhere, while that helps; return its edges (n, 2)."""
    idle = 0
    while idle < len(nodes):
        if _move_front(costs, nodes):
            idle = 0
        else:
            nodes[:] = np.roll(nodes, -1)
            idle += 1
    return np.column_stack((nodes, np.roll(nodes, -1)))


@kernel
def _move_front(costs: FloatArray, nodes: IntArray) -> bool:
    """Make the best move of a stretch at the front of the tour, if there is one that saves something."""
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
            before, behind = nodes[place - 1], nodes[place]
            straight, turned = costs[before, first] + costs[end, behind], costs[before, end] + costs[first, behind]
            saved = cut - costs[last, after] + costs[before, behind] - min(straight, turned)
            if saved > most:
                most, best_size, best_place, best_turned = saved, size, place, turned < straight
    if best_size == 0:
        return False
    stretch = nodes[:best_size].copy()
    nodes[: best_place - best_size] = nodes[best_size:best_place].copy()
    nodes[best_place - best_size : best_place] = stretch[::-1] if best_turned else stretch
    return True
