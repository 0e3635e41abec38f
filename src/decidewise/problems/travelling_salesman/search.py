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
from decidewise.problems.rounding.ties import common_divisor
from decidewise.problems.travelling_salesman.bound import ascend, fix_edges, length
from decidewise.problems.travelling_salesman.state import (
    BARRED,
    COST,
    EXCESS,
    GAIN,
    LIMIT,
    TAKEN,
    TIE,
    decide,
    is_open,
    open_rows,
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
    square, numbers = open_rows(costs, n)
    # Every tour has n edges, so subtracting the least cost from all costs keeps the differences between tours.
    coarse = [common_divisor(row) for row in costs - costs.min(axis=1, keepdims=True)]
    numbers[:, GAIN] = np.maximum(numbers[:, TIE], 0.999 * np.array(coarse))
    tours = np.zeros_like(square)
    floats, ints, stacks = np.zeros((2, n)), np.zeros((4, n), np.int64), np.zeros((2, costs.shape[1] + 2), np.int64)
    stuck = _search(square, square.copy(), np.zeros(square.shape[:2]), *floats, *ints, *stacks, tours, numbers, trees)
    a, b = np.triu_indices(n, 1)
    return tours[:, a, b], stuck


@kernel(inner=True, _nrt=False)
def _build_tour(costs: FloatArray, prices: FloatArray, old: IntArray, new: IntArray, start: int, tie: float) -> None:
    """Build a tour: always go to the nearest unvisited node; then reverse parts of the tour while that helps (2-opt).

    Distances include the prices, so that nodes that are hard to reach come early. Edge `k` of the tour goes from
    `old[k]` to `new[k]`.
    """
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
def _search(
    all_costs: FloatArray,
    all_lengths: FloatArray,
    all_prices: FloatArray,
    best_prices: FloatArray,
    detours: FloatArray,
    old: IntArray,
    new: IntArray,
    edge_to: IntArray,
    degrees: IntArray,
    decided: IntArray,
    branches: IntArray,
    tours: FloatArray,
    all_numbers: FloatArray,
    trees: IntArray,
) -> int:
    """Find the tours, row by row; return the first row that was not solved, or -1.

    `branches` holds the number of edges that were decided when the question was asked, and before each branch.

    Start: several tours, and first prices.
    Restart: after too long, with better prices.
    Bound: propagate decisions, raise prices, fix edges.
    Branch: take an edge, later bar it.
    Ask: best tour, then ties edge by edge.
    """
    n = len(old)
    for row in range(len(tours)):
        costs, lengths, prices = all_costs[row], all_lengths[row], all_prices[row]
        tour, numbers = tours[row], all_numbers[row]
        for start in range(int(STARTS * n) + 2):
            _build_tour(costs, prices, old, new, start % n, numbers[TIE])
            record(costs, old, new, tour, numbers)
            if start == 0:
                ascend(
                    costs, lengths, prices, best_prices, detours, old, new, edge_to, degrees, numbers, trees,
                    FIRST_STEPS * n, 1.0, 0.05, 0.0,
                )  # fmt: skip
        edge_to[1] = -1
        decided[0] = branches[0] = depth = 0
        asked, effort, stop = BEST, 1, trees[0] - PATIENCE * n
        while trees[0] >= 0:
            if trees[0] < stop:
                # The search takes too long: start again, with better prices and longer ascents. Steps longer than
                # Polyak's converge if the bound can reach its aim, and shorter ones if it cannot.
                reopen(costs, lengths, decided, branches[0])
                ascend(
                    costs, lengths, prices, best_prices, detours, old, new, edge_to, degrees, numbers, trees,
                    100 * n, 1.8, 1.8, 0.0,
                )  # fmt: skip
                ascend(
                    costs, lengths, prices, best_prices, detours, old, new, edge_to, degrees, numbers, trees,
                    10 * n, 1.0, 0.05, 0.0,
                )  # fmt: skip
                depth, effort = 0, 2 * effort
                stop = trees[0] - PATIENCE * effort * effort * n
            if propagate(lengths, decided, degrees):
                bound = ascend(
                    costs, lengths, prices, best_prices, detours, old, new, edge_to, degrees, numbers, trees,
                    STEPS * effort, 1.0, 0.05, REACH,
                )  # fmt: skip
                if numbers[EXCESS] == 0 and asked != FIXED and bound <= numbers[LIMIT]:
                    record(costs, old, new, tour, numbers)
                if bound <= numbers[LIMIT]:
                    split = fix_edges(lengths, decided, prices, detours, old, new, edge_to, degrees, numbers, bound)
                    if asked == FIXED:
                        branches[0] = decided[0]
                    elif split >= 0:
                        depth += 1
                        branches[depth] = decided[0]
                        decide(lengths, decided, old[split], new[split], TAKEN)
                        continue
                    elif numbers[EXCESS] > 0:
                        # All edges of the one-tree at a node of degree above 2 are taken: propagate finds no tour.
                        continue
            # No tour is left in this branch. Bar the edge of the last branch.
            edge = decided[branches[depth] + 1]
            reopen(costs, lengths, decided, branches[depth])
            if depth > 0:
                depth -= 1
                decide(lengths, decided, edge // n, edge % n, BARRED)
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
                reopen(costs, lengths, decided, branches[0] - 1)
                decide(lengths, decided, asked // n, asked % n, BARRED)
            asked = _next_edge(lengths, decided, tour, asked)
            if asked < 0:
                break
            branches[0] = decided[0]
            effort, stop = 1, trees[0] - PATIENCE * n
        if trees[0] < 0:
            return row
    return -1


@kernel(inner=True, _nrt=False, error_model="numpy")
def _next_edge(lengths: FloatArray, decided: IntArray, tour: FloatArray, asked: int) -> int:
    """Take the open edges after `asked` up to the first that the tour does not have; return that edge, or -1."""
    n = len(tour)
    for edge in range(asked + 1, n * n):
        a, b = edge // n, edge % n
        if a < b and is_open(lengths, a, b):
            decide(lengths, decided, a, b, TAKEN)
            if tour[a, b] == 0:
                return edge
    return -1
