"""One level for each item under one budget: dynamic programming on what a Lagrangian bound leaves, row by row.

For any price `u` of the budget `b` (not negative unless the total is fixed), a solution of cost `C` and consumption `W`
has

    C = bound + loss + u (b - W),   loss = the sum over items of how much dearer than the cheapest a level is,

where a level costs `c + u w`. So a solution that is no dearer than a known one has a small loss, and almost all levels
and nearly all partial solutions can be left out. The best price is that of the linear relaxation; it is found exactly,
by intersecting the lines of the two solutions on either side. Then the partial solutions of the last items are listed,
item by item: of those that consume less, only the cheaper ones are kept. The lists give the least cost of completing
any choice, so a walk from the first item takes the lowest level with which an optimal solution exists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.rounding import EPS, safe_unit

#: Two solutions are tied if their costs differ by at most this fraction of the costs of the items in which they differ.
TIE = 1e-12
#: A consumption may exceed a budget by this fraction, since decimal numbers do not add up exactly.
ROOM = 1e-9
#: The first guess of how far the best solution is from the bound, as a fraction of how far a known one is.
FIRST = 1 / 16
#: How much larger the next guess is, where no solution was found within the last one.
GROWTH = 4.0
#: The most partial solutions in a list, and in all lists: some 300 MB. A row that needs more is given up.
MOST = 2**22


class Row(NamedTuple):
    """The levels of all items, one after another (d,), for one row of costs; those of item `i` begin at `starts[i]`."""

    weights: FloatArray
    starts: IntArray
    costs: FloatArray  # in a safe unit
    own: FloatArray  # beyond those of the cheapest level of the item
    losses: FloatArray
    chosen: IntArray  # (items,) the levels of the linear relaxation


@kernel
def search_levels(
    costs: FloatArray, steps: IntArray, budgets: FloatArray, starts: IntArray, weights: FloatArray, fixed: bool
) -> tuple[FloatArray, int]:
    """Return the best levels of each row of costs (n, items * levels) as ones, and the first row not solved, or -1.

    `budgets` (n, 1) has the largest consumption of each row, or if `fixed` the exact one; `starts` (items + 1,) has the
    place of the first level of each item. A row without any solution is left zero. All rows together may take
    `steps[0]` steps, one for each partial solution; the search counts `steps[0]` down. A row that needs more than
    `MOST` partial solutions at once is not solved either.

    Bound: the price at which the budget is met.
    Lists: partial solutions, from the last item.
    Walk: the lowest level that can be completed.
    """
    n_rows, d = costs.shape
    n = len(starts) - 1
    decisions = np.zeros((n_rows, d))
    at = Row(weights, starts, np.empty(d), np.empty(d), np.empty(d), np.empty(n, np.int64))
    scaled, own, losses, chosen = at.costs, at.own, at.losses, at.chosen
    ahead = np.zeros((n + 1, 2))  # the least and the most consumption of the items before each
    firsts = np.zeros(n + 1, np.int64)  # where the list of each item begins; those of later items come before it
    # Consumption, cost and loss of the partial solutions, item after item.
    pool, merged, spare = np.empty((3, 1024)), np.empty((3, 1024)), np.empty((3, 1024))
    size = 0.0
    for i in range(n):
        least = most = weights[starts[i]]
        for j in range(starts[i], starts[i + 1]):
            least = min(least, weights[j])
            most = max(most, weights[j])
        ahead[i + 1, 0] = ahead[i, 0] + least
        ahead[i + 1, 1] = ahead[i, 1] + most
        size = max(size, abs(least), abs(most))
    for row in range(n_rows):
        budget = budgets[row, 0]
        room = ROOM * max(abs(budget), size)
        largest = 0.0
        for j in range(d):
            largest = max(largest, abs(costs[row, j]))
        unit = safe_unit(largest)
        for i in range(n):
            least = np.inf
            for j in range(starts[i], starts[i + 1]):
                scaled[j] = unit * costs[row, j]
                least = min(least, scaled[j])
            for j in range(starts[i], starts[i + 1]):
                own[j] = scaled[j] - least
        price, spent, consumed = _price(at, budget, room, fixed)
        total = 0.0
        for i in range(n):
            base = chosen[i]
            dearest = 0.0
            for j in range(starts[i], starts[i + 1]):
                losses[j] = max(0.0, (own[j] - own[base]) + price * (weights[j] - weights[base]))
                dearest = max(dearest, losses[j])
            total += dearest
        bound = spent - price * (budget - consumed)
        gap = FIRST * _gap(at, budget - consumed, room, fixed, spent - bound, total)
        done = False
        while not done:
            tie = rounding = 0.0
            for i in range(n):
                base = chosen[i]
                largest = span = 0.0
                for j in range(starts[i], starts[i + 1]):
                    if losses[j] <= gap + TIE * abs(scaled[j]) and own[j] != own[base]:
                        largest = max(largest, abs(scaled[j]), abs(scaled[base]))
                        span = max(span, abs(own[j] - own[base]) + abs(price * (weights[j] - weights[base])))
                tie += TIE * largest
                rounding += 8.0 * EPS * span
            limit = gap + tie + rounding
            pool[0, 0] = pool[1, 0] = pool[2, 0] = 0.0
            begin, end, filled = 0, 1, 1
            for i in range(n - 1, -1, -1):
                count = 0
                for j in range(starts[i], starts[i + 1]):
                    if losses[j] > limit:
                        continue
                    steps[0] -= count + end - begin + 1
                    if steps[0] < 0:
                        return decisions, row
                    need = count + end - begin
                    if need > MOST:
                        return decisions, row
                    if need > spare.shape[1]:
                        spare = np.empty((3, min(2 * need, MOST)))
                    most, least = budget + room - ahead[i, 0], budget - room - ahead[i, 1] if fixed else -np.inf
                    level = weights[j], own[j], losses[j]
                    count = _merge(
                        merged[:, :count], pool[:, begin:end], spare, level, limit, most, least, room / 1000.0, fixed
                    )
                    merged, spare = spare, merged
                if filled + count > MOST:
                    return decisions, row
                if filled + count > pool.shape[1]:
                    larger = np.empty((3, min(2 * (filled + count), MOST)))
                    larger[:, :filled] = pool[:, :filled]
                    pool = larger
                for p in range(count):
                    for part in range(3):
                        pool[part, filled + p] = merged[part, p]
                begin, end = filled, filled + count
                firsts[i] = begin
                filled = end
            best = np.inf
            for p in range(begin, end):
                best = min(best, pool[1, p])
            if best - bound <= gap + tie + rounding:
                done = True
            elif gap >= total and best == np.inf:
                break  # nothing was left out, so there is no solution
            else:
                gap = min(max(GROWTH * gap, total / 1e6), best - bound)
        if not done:
            continue
        paid, left = 0.0, budget
        for i in range(n):
            begin, end = firsts[i + 1], firsts[i]
            take, cheapest = -1, np.inf
            for j in range(starts[i], starts[i + 1]):
                if losses[j] > limit:
                    continue
                value = paid + own[j] + _completion(pool, begin, end, left - weights[j], room, fixed)
                if value <= best + tie:
                    take = j
                    break
                if value < cheapest:
                    take, cheapest = j, value
            decisions[row, take] = 1.0
            paid += own[take]
            left -= weights[take]
    return decisions, -1


@kernel(inner=True)
def _line(at: Row, price: float, sign: float, chosen: IntArray) -> tuple[float, float]:
    """Choose the cheapest level of each item at a price; ties go to what consumes least, times the sign.

    Return cost and consumption of these levels.
    """
    own, weights, starts = at.own, at.weights, at.starts
    spent = consumed = 0.0
    for i in range(len(chosen)):
        best, weight, place = np.inf, 0.0, -1
        for j in range(starts[i], starts[i + 1]):
            value = own[j] + price * sign * weights[j]
            if value < best or (value == best and sign * weights[j] < weight):
                best, weight, place = value, sign * weights[j], j
        chosen[i] = place
        spent += own[place]
        consumed += weights[place]
    return spent, consumed


@kernel(inner=True)
def _price(at: Row, budget: float, room: float, fixed: bool) -> tuple[float, float, float]:
    """Find the price of the linear relaxation; return it, and cost and consumption of the levels it chooses.

    These levels meet the budget, but not always a fixed total.
    """
    own, weights, starts, chosen = at.own, at.weights, at.starts, at.chosen
    spent, consumed = _line(at, 0.0, 1.0, chosen)
    sign = 1.0
    if consumed <= budget + room:
        if not fixed or consumed >= budget - room:
            return 0.0, spent, consumed
        spent, consumed = _line(at, 0.0, -1.0, chosen)
        if consumed >= budget - room:
            return 0.0, spent, consumed  # some levels of the same cost consume less, and others more
        sign = -1.0
    # At a price of zero too much is consumed, and at an infinite one little enough: the levels that consume least.
    cheap, heavy = spent, sign * consumed
    dear = light = price = 0.0
    for i in range(len(chosen)):
        place = starts[i]
        for j in range(starts[i] + 1, starts[i + 1]):
            lighter = sign * (weights[j] - weights[place])
            if lighter < 0.0 or (lighter == 0.0 and own[j] < own[place]):
                place = j
        chosen[i] = place
        dear += own[place]
        light += sign * weights[place]
    trial = chosen.copy()
    for _ in range(200):
        if heavy <= light:
            break
        price = (dear - cheap) / (heavy - light)
        spent, consumed = _line(at, price, sign, trial)
        consumed = sign * consumed
        if spent + price * consumed >= (dear + price * light) * (1.0 - 4.0 * EPS) - 4.0 * EPS * price * abs(light):
            break
        if consumed > sign * budget + room:
            cheap, heavy = spent, consumed
        else:
            dear, light = spent, consumed
            chosen[:] = trial
    return sign * price, dear, sign * light


@kernel(inner=True)
def _gap(at: Row, left: float, room: float, fixed: bool, above: float, total: float) -> float:
    """Return how much dearer than the bound a solution near the chosen levels is, or for a fixed total a guess.

    The chosen levels leave `left` of the budget, and are dearer than the bound by `above`.
    """
    own, weights, starts, chosen = at.own, at.weights, at.starts, at.chosen
    n = len(chosen)
    if not fixed:
        for i in range(n):  # spend what is left, item by item
            place = chosen[i]
            for j in range(starts[i], starts[i + 1]):
                if own[j] < own[place] and weights[j] - weights[chosen[i]] <= left + room:
                    place = j
            above += own[place] - own[chosen[i]]
            left -= weights[place] - weights[chosen[i]]
        return max(0.0, above)
    if abs(left) <= room:
        return max(0.0, above)
    best, second = np.inf, 0.0
    for i in range(n):
        least = np.inf
        for j in range(starts[i], starts[i + 1]):
            if abs(weights[j] - weights[chosen[i]] - left) <= room:
                best = min(best, above + own[j] - own[chosen[i]])
            if j != chosen[i]:
                least = min(least, at.losses[j])
        second += least / n if least < np.inf else 0.0
    if best == np.inf:
        return second if second > 0.0 else total
    return max(0.0, best)


@kernel(inner=True)
def _merge(
    old: FloatArray, later: FloatArray, out: FloatArray, level: tuple[float, float, float], limit: float, most: float,
    least: float, same: float, fixed: bool,
) -> int:  # fmt: skip
    """Merge two lists in the order of their consumption: the old one, and that of later items with one more level.

    Of partial solutions only those are kept that consume at most `most` and at least `least`, lose at most `limit`, and
    are cheaper than all that consume less (or, if `fixed`, as much). Return how many.
    """
    weight, cost, loss = level
    count = a = p = 0
    while a < old.shape[1] or p < later.shape[1]:
        if p < later.shape[1]:
            heavy = later[0, p] + weight
            if heavy > most or heavy < least or later[2, p] + loss > limit:
                p += 1
                continue
        if p >= later.shape[1] or (a < old.shape[1] and old[0, a] <= heavy):
            w, c, lost = old[0, a], old[1, a], old[2, a]
            a += 1
        else:
            w, c, lost = heavy, later[1, p] + cost, later[2, p] + loss
            p += 1
        if count > 0:
            near = w - out[0, count - 1] <= same
            if c >= out[1, count - 1] and (near or not fixed):
                continue
            if near and (fixed or w == out[0, count - 1]):
                count -= 1
        out[0, count], out[1, count], out[2, count] = w, c, lost
        count += 1
    return count


@kernel(inner=True)
def _completion(pool: FloatArray, begin: int, end: int, left: float, room: float, fixed: bool) -> float:
    """Return the least cost of a partial solution that consumes what is left, or less unless `fixed`."""
    low, high = begin, end  # the first that consumes more
    while low < high:
        middle = (low + high) // 2
        if pool[0, middle] <= left + room:
            low = middle + 1
        else:
            high = middle
    best = np.inf
    place = low - 1
    if not fixed:
        return pool[1, place] if place >= begin else best
    while place >= begin and pool[0, place] >= left - room:
        best = min(best, pool[1, place])
        place -= 1
    return best
