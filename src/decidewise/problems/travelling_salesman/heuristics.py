"""Good initial tours, so that the search can discard branches that cost more."""

from __future__ import annotations

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.travelling_salesman.bound import length
from decidewise.problems.travelling_salesman.state import BARRED


@kernel(inner=True, _nrt=False)
def build_tour(costs: FloatArray, prices: FloatArray, old: IntArray, new: IntArray, start: int, tie: float) -> None:
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
