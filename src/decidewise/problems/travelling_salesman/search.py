"""The cheapest tour of each row: branch and bound on one-trees.

Most edges are decided by the bound: an edge is barred if using it would raise the bound above the limit, and taken if
leaving it out would. The search branches on the others. Prices are never exact, and if many tours are as good as the
best, the bound cannot separate them. So a search that takes long starts again, with better prices and longer ascents.
Ties are broken afterwards by further searches, edge by edge: is there an equally good tour that takes this edge?
"""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.rounding import common_divisor
from decidewise.problems.travelling_salesman.bound import ascend, fix_edges, length
from decidewise.problems.travelling_salesman.state import (
    BARRED,
    COST,
    EXCESS,
    GAIN,
    LIMIT,
    TAKEN,
    TIE,
    TourState,
    decide,
    is_open,
    make_state,
    of_row,
    propagate,
    record,
    reopen,
)

#: The number of initial tours and the steps of the first ascent, both per node.
STARTS, FIRST_STEPS = 0.5, 2
#: The steps of the ascent at each branch of the search, and the least distance to aim at, in units of the mean price.
STEPS, REACH = 15, 3e-3
#: The number of one-trees per node after which the search starts again, with longer ascents.
PATIENCE = 50
#: The questions before those about single edges: which tour is the best, and, if it is tied, which edges the bound
#: decides for all the best tours.
BEST, FIXED = -1, 0


def cheapest_tours(costs: FloatArray, n: int, trees: IntArray) -> tuple[FloatArray, int]:
    """Return the cheapest tours for costs (rows, n (n - 1) / 2) of size at most 1, and the first unsolved row, or -1.

    All rows together may take `trees[0]` one-trees; the search counts `trees[0]` down.
    """
    rows = make_state(costs, np.zeros_like(costs), n, trees)
    # Every tour has n edges, so subtracting the least cost from all costs keeps the differences between tours.
    coarse = [common_divisor(row) for row in costs - costs.min(axis=1, keepdims=True)]
    rows.numbers[:, GAIN] = np.maximum(rows.numbers[:, TIE], 0.999 * np.array(coarse))
    stuck = _search(rows, np.zeros_like(rows.decided))
    a, b = np.triu_indices(n, 1)
    return rows.tour[:, a, b], stuck


@kernel(inner=True, _nrt=False)
def _build_tour(at: TourState, start: int) -> None:
    """Build a tour: always go to the nearest unvisited node; then reverse parts of the tour while that helps (2-opt).

    Distances include the prices, so that nodes that are hard to reach come early. Edge `k` of the tour goes from
    `old[k]` to `new[k]`.
    """
    costs, prices, old, new, tie = at.costs, at.prices, at.old, at.new, at.numbers[TIE]
    n = len(prices)
    for k in range(n):
        new[k] = k
    new[0], new[start] = start, 0
    for k in range(1, n):
        nearest, shortest = k, BARRED
        for m in range(k, n):
            way = length(costs, prices, new[k - 1], new[m])
            if way < shortest:
                nearest, shortest = m, way
        new[k], new[nearest] = new[nearest], new[k]
    improved = True
    while improved:
        improved = False
        for i in range(n - 1):
            for j in range(i + 1, n):
                a, b, c, d = new[i - 1], new[i], new[j], new[j + 1 - n]
                if costs[a, b] + costs[c, d] - costs[a, c] - costs[b, d] > tie:
                    improved = True
                    for k in range((j + 1 - i) // 2):
                        new[i + k], new[j - k] = new[j - k], new[i + k]
    for k in range(n):
        old[k] = new[k - 1]


@kernel(_nrt=False, error_model="numpy")
def _search(rows: TourState, branches: IntArray) -> int:
    """Find the tours, row by row; return the first row that was not solved, or -1.

    `branches` holds the number of edges that were decided when the question was asked, and before each branch.

    Start: several tours, and first prices.
    Restart: after too long, with better prices.
    Bound: propagate decisions, raise prices, fix edges.
    Branch: take an edge, later bar it.
    Ask: best tour, then ties edge by edge.
    """
    n, decided, trees = len(rows.old), rows.decided, rows.trees
    for row in range(len(rows.costs)):
        at = of_row(rows, row)
        numbers = at.numbers
        for start in range(int(STARTS * n) + 2):
            _build_tour(at, start % n)
            record(at)
            if start == 0:
                ascend(at, FIRST_STEPS * n, 1.0, 0.05, 0.0)
        at.edge_to[1] = -1
        decided[0] = branches[0] = depth = 0
        asked, effort, stop = BEST, 1, trees[0] - PATIENCE * n
        while trees[0] >= 0:
            if trees[0] < stop:
                # The search takes too long: start again, with better prices and longer ascents. Steps longer than
                # Polyak's converge if the bound can reach its aim, and shorter ones if it cannot.
                reopen(at, branches[0])
                ascend(at, 100 * n, 1.8, 1.8, 0.0)
                ascend(at, 10 * n, 1.0, 0.05, 0.0)
                depth, effort = 0, 2 * effort
                stop = trees[0] - PATIENCE * effort * effort * n
            if propagate(at):
                bound = ascend(at, STEPS * effort, 1.0, 0.05, REACH)
                if numbers[EXCESS] == 0 and asked != FIXED and bound <= numbers[LIMIT]:
                    record(at)
                if bound <= numbers[LIMIT]:
                    split = fix_edges(at, bound)
                    if asked == FIXED:
                        branches[0] = decided[0]
                    elif split >= 0:
                        depth += 1
                        branches[depth] = decided[0]
                        decide(at, at.old[split], at.new[split], TAKEN)
                        continue
                    elif numbers[EXCESS] > 0:
                        # All edges of the one-tree at a node of degree above 2 are taken: propagate finds no tour.
                        continue
            # No tour is left in this branch. Bar the edge of the last branch.
            edge = decided[branches[depth] + 1]
            reopen(at, branches[depth])
            if depth > 0:
                depth -= 1
                decide(at, edge // n, edge % n, BARRED)
                continue
            # The question is answered.
            tied = numbers[LIMIT] < numbers[COST]
            numbers[LIMIT] = numbers[COST] + numbers[TIE]
            if asked == BEST:
                if not tied:
                    break
                numbers[GAIN] = np.inf  # from now on a tie ends a search, since no tour is better
                asked = FIXED
                continue
            if asked > 0 and not tied:
                reopen(at, branches[0] - 1)
                decide(at, asked // n, asked % n, BARRED)
            asked = _next_edge(at, asked)
            if asked < 0:
                break
            branches[0] = decided[0]
            effort, stop = 1, trees[0] - PATIENCE * n
        if trees[0] < 0:
            return row
    return -1


@kernel(inner=True, _nrt=False, error_model="numpy")
def _next_edge(at: TourState, asked: int) -> int:
    """Take the open edges after `asked` up to the first that the tour does not have; return that edge, or -1."""
    n = len(at.tour)
    for edge in range(asked + 1, n * n):
        a, b = edge // n, edge % n
        if a < b and is_open(at.lengths, a, b):
            decide(at, a, b, TAKEN)
            if at.tour[a, b] == 0:
                return edge
    return -1
