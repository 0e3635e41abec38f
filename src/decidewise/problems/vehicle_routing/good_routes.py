"""Good routes quickly: take out strings of customers near each other, put them back where they cost least, and repeat.

After Christiaens and Vanden Berghe, "Slack Induction by String Removals for Vehicle Routing Problems", Transportation
Science 54, 2020. Routes that cost more are accepted too, less and less often (simulated annealing). Unlike there, a
route may lose several strings at a time, since a tour is a single route.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.vehicle_routing.fleet import Fleet
from decidewise.problems.vehicle_routing.routes import ROOM

#: How many customers are taken out on average, and the longest string of them.
TAKEN_OUT, LONGEST = 10, 10
#: One place in so many is passed over by chance.
BLINK = 64
#: Rounds for each customer, visits of a place in a second, and in one part of the work.
ROUNDS, VISITS, PART = 2_000, 4e8, 2**25
#: The first temperature, in units of what separates the nearest from the fifth neighbour, and the last.
HOT, COLD = 1.0, 0.01
#: Which routes: those at work on, those last accepted, and the best.
WORK, KEPT, BEST = 0, 1, 2
#: The rows of `links`, and those of `fleet`.
AFTER, BEFORE, ROUTE = 0, 1, 2
FIRST, SIZE = 0, 1


class Routes(NamedTuple):
    """The state of the search among nodes 0 to n, of which 0 is the depot."""

    costs: FloatArray  # (n + 1, n + 1) symmetric, 0 on the diagonal
    demands: FloatArray  # (n + 1,)
    near: IntArray  # (n + 1, n) customers, the nearest first, each its own nearest
    links: IntArray  # (3, 3, n + 1) the node after and before each customer, and its route, -1 if it is in none
    fleet: IntArray  # (3, 2, k) the first customer of each route, and how many it has
    loads: FloatArray  # (3, k)
    values: FloatArray  # (3,) what the routes cost, with a penalty for each customer that is left out or alone
    out: IntArray  # (n,) the customers taken out


def good_routes(costs: FloatArray, fleet: Fleet, seconds: float) -> FloatArray:
    """Return how often good routes use each edge (m,), found in about some seconds; customers may be left out or alone.

    Costs are of size at most 1.
    """
    stop = perf_counter() + seconds
    n, n_vehicles, square = len(fleet.demands), fleet.n_vehicles, fleet.matrix(costs)
    lengths = square[1:, 1:] + np.diag(np.full(n, -np.inf))
    near = np.vstack([np.zeros(n, np.int64), lengths.argsort(axis=1, kind="stable") + 1])
    lengths = np.sort(lengths, axis=1)
    heat = HOT * float((lengths[:, min(5, n - 1)] - lengths[:, min(1, n - 1)]).mean()) + 1e-12
    absent = 8.0 * n  # more than any routes cost
    lone = 0.0 if fleet.alone else absent / 4
    links, first = np.zeros((3, 3, n + 1), np.int64), np.zeros((3, 2, n_vehicles), np.int64)
    at = Routes(
        square, np.append(0.0, fleet.demands), near, links, first, np.zeros((3, n_vehicles)), np.full(3, n * absent),
        np.arange(1, n + 1),
    )  # fmt: skip
    at.links[:, ROUTE] = -1
    visits = TAKEN_OUT * n  # in a round
    n_rounds = int(min(ROUNDS * n, VISITS * seconds / visits)) + 1
    part = max(1, PART // visits)
    for start in range(0, n_rounds, part):
        check_time()
        _improve(at, fleet.capacity * ROOM, absent, lone, heat, start, min(start + part, n_rounds), n_rounds)
        if perf_counter() > stop:
            break
    first, served = at.fleet[BEST, FIRST], np.flatnonzero(at.links[BEST, ROUTE] >= 0)
    first = first[first > 0]
    used = np.zeros((n + 1, n + 1))
    np.add.at(used, (np.append(served, 0 * first), np.append(at.links[BEST, AFTER, served], first)), 1.0)
    edges: FloatArray = (used + used.T)[*fleet.ends]
    return edges


@kernel(error_model="numpy")
def _improve(
    at: Routes, capacity: float, absent: float, lone: float, heat: float, start: int, stop: int, n_rounds: int
) -> None:
    """Go through some of the rounds: take customers out, put them back, then keep the routes or go back to the last."""
    n = len(at.out)
    np.random.seed(start)  # noqa: NPY002  (a generator cannot enter a kernel)
    for number in range(start, stop):
        count = n if number == 0 else _take_out(at, absent, lone)
        _put_back(at, count, capacity, absent, lone)
        level = heat * COLD ** (number / n_rounds)
        if at.values[WORK] < at.values[KEPT] - level * np.log(np.random.random()):  # noqa: NPY002
            _copy(at, WORK, KEPT)
        else:
            _copy(at, KEPT, WORK)
        if at.values[WORK] < at.values[BEST] - 1e-12 * n:
            _copy(at, WORK, BEST)


@kernel(inner=True)
def _copy(at: Routes, one: int, other: int) -> None:
    at.links[other], at.fleet[other] = at.links[one], at.fleet[one]
    at.loads[other], at.values[other] = at.loads[one], at.values[one]


@kernel(inner=True)
def _draw(most: float) -> int:
    """Return a whole number from 0 to below `most`."""
    return int(np.random.random() * most)  # noqa: NPY002


@kernel(inner=True, error_model="numpy")
def _take_out(at: Routes, absent: float, lone: float) -> int:
    """Take strings of customers near a random one out of their routes, and return how many are out."""
    after, before, route = at.links[WORK, AFTER], at.links[WORK, BEFORE], at.links[WORK, ROUTE]
    sizes, out, n = at.fleet[WORK, SIZE], at.out, len(at.out)
    count = n_routes = 0
    for i in range(1, n + 1):
        if route[i] < 0:
            out[count] = i
            count += 1
    for k in range(len(sizes)):
        n_routes += sizes[k] > 0
    longest = max(1.0, min(LONGEST, (n - count) / max(1, n_routes)))
    strings = 1 + _draw(max(1.0, 4 * TAKEN_OUT / (1 + longest) - 1))
    centre = 1 + _draw(n)
    for place in range(n):
        i = at.near[centre, place]
        if strings == 0:
            break
        if route[i] < 0:
            continue
        strings -= 1
        size = sizes[route[i]]
        length = 1 + _draw(min(longest, size))
        # Half of the strings keep some customers in the middle.
        kept = _draw(2) * _draw(min(LONGEST, size - length + 1))
        keep_from = 1 + _draw(length)
        for _ in range(_draw(length + kept)):
            if before[i] > 0:
                i = before[i]
        for k in range(length + kept):
            following = after[i]
            if not keep_from <= k < keep_from + kept:
                _remove(at, i, absent, lone)
                out[count] = i
                count += 1
            i = following
            if i == 0:
                break
    return count


@kernel(inner=True)
def _put_back(at: Routes, count: int, capacity: float, absent: float, lone: float) -> None:
    """Put the customers that are out where they cost least, one after another; those without a place stay out."""
    after, route = at.links[WORK, AFTER], at.links[WORK, ROUTE]
    first, sizes, loads = at.fleet[WORK, FIRST], at.fleet[WORK, SIZE], at.loads[WORK]
    costs, demands, out, n = at.costs, at.demands, at.out, len(at.out)
    order = _draw(11)
    for k in range(1, count):
        i, j = out[k], k
        if order < 4:
            j = _draw(k + 1)
            out[k] = out[j]
        while order >= 4 and j > 0 and _rank(at, order, i) < _rank(at, order, out[j - 1]):
            out[j] = out[j - 1]
            j -= 1
        out[j] = i
    for m in range(count):
        i = out[m]
        least, place, vehicle = absent, -1, -1
        chance = _draw(BLINK)
        for j in range(1, n + 1):
            k = route[j]
            if k < 0 or loads[k] + demands[i] > capacity or (j + chance) % BLINK == 0:
                continue
            b = after[j]
            extra = costs[i, j] + costs[i, b] - costs[j, b] - (lone if sizes[k] == 1 else 0.0)
            if extra < least:
                least, place, vehicle = extra, j, k
        for k in range(len(loads)):
            if loads[k] + demands[i] <= capacity:
                b = first[k]
                extra = costs[i, 0] + costs[i, b] - costs[0, b]
                if sizes[k] < 2:
                    extra += lone if sizes[k] == 0 else -lone
                if extra < least:
                    least, place, vehicle = extra, 0, k
        if place >= 0:
            _insert(at, i, place, vehicle)
            at.values[WORK] += least - absent


@kernel(inner=True)
def _rank(at: Routes, order: int, i: int) -> float:
    """Return what customers are sorted by: the largest demand, the farthest from the depot, or the nearest first."""
    return -at.demands[i] if order < 8 else -at.costs[0, i] if order < 10 else at.costs[0, i]


@kernel(inner=True)
def _remove(at: Routes, i: int, absent: float, lone: float) -> None:
    """Take a customer out of its route."""
    links, fleet, k = at.links[WORK], at.fleet[WORK], at.links[WORK, ROUTE, i]
    a, b = links[BEFORE, i], links[AFTER, i]
    at.values[WORK] += at.costs[a, b] - at.costs[a, i] - at.costs[i, b] + absent
    fleet[SIZE, k] -= 1
    if fleet[SIZE, k] < 2:
        at.values[WORK] += lone if fleet[SIZE, k] == 1 else -lone
    at.loads[WORK, k] = at.loads[WORK, k] - at.demands[i] if fleet[SIZE, k] else 0.0
    links[ROUTE, i] = -1
    if a > 0:
        links[AFTER, a] = b
    else:
        fleet[FIRST, k] = b
    if b > 0:
        links[BEFORE, b] = a


@kernel(inner=True)
def _insert(at: Routes, i: int, a: int, k: int) -> None:
    """Put a customer into a route behind a node of it."""
    links, fleet = at.links[WORK], at.fleet[WORK]
    b = links[AFTER, a] if a > 0 else fleet[FIRST, k]
    fleet[SIZE, k] += 1
    at.loads[WORK, k] += at.demands[i]
    links[AFTER, i], links[BEFORE, i], links[ROUTE, i] = b, a, k
    if a > 0:
        links[AFTER, a] = i
    else:
        fleet[FIRST, k] = i
    if b > 0:
        links[BEFORE, b] = i
