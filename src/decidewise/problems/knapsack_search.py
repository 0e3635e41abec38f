"""The large knapsack: branch and bound, row by row.

For any prices `u >= 0` of the room and any pack `x`, with loads `a` and reduced profits `p = v - a u`,

    v·x  =  sum(u) + sum(p+)  -  sum of |p_i| over the items where x differs from [p > 0]  -  u·(room that x leaves).

The first two terms bound every pack and the third says what each deviation costs, so a depth-first search over the
items, dearest deviation first, closes quickly when the prices are those of the linear relaxation. Where it does not,
the search branches on an item that the relaxation splits, prices again and dives again. Prices that are off only slow
the search down: a bound is always recomputed from the formula, so the answer never depends on the simplex's rounding.
"""

from __future__ import annotations

import numpy as np

from decidewise.checks import FloatArray
from decidewise.kernels import kernel
from decidewise.problems.common_divisor import common_divisor
from decidewise.problems.knapsack_packs import TIE
from decidewise.problems.knapsack_relaxation import FREE, IN, OUT, BoolArray, IntArray, Row, open_row, relax, room_left

#: Steps of one dive before it is cheaper to branch and price again.
DIVE = 20_000
#: What one relaxation costs, in steps of a dive.
RELAXATION = 500


@kernel
def search_packs(values: FloatArray, loads: FloatArray, steps: IntArray) -> tuple[FloatArray, int]:
    """Return the best pack of each row of values (n, items), and the first row that was not solved, or -1.

    All rows together may take `steps[0]` steps, which are counted down there. An item that does not fit by itself must
    have no value.
    """
    n, m = values.shape
    decisions = np.zeros((n, m))
    items = np.empty(m, np.int64)
    for i in range(n):
        count = 0
        for item in range(m):
            if values[i, item] > 0.0:
                items[count] = item
                count += 1
        if count > 0:
            row = open_row(values[i], loads, items[:count], steps)
            pack = _best_pack(row)
            if steps[0] < 0:
                return decisions, i
            for j in range(count):
                decisions[i, items[j]] = pack[j]
    return decisions, -1


@kernel
def _best_pack(row: Row) -> BoolArray:
    """Find the best value, then the first pack in lexicographic order that is worth as much."""
    total = row.values.sum()
    pack = np.zeros(len(row.values), np.bool_)
    best = _search(row, 0.0, max(TIE / 10 * total, 0.999 * common_divisor(row.values)), pack)
    for item in range(len(pack)):
        row.fixed[item] = IN
        if not pack[item] and _search(row, best - TIE * total, 0.0, pack) < 0.0:
            row.fixed[item] = OUT
    return pack


@kernel
def _search(row: Row, goal: float, gain: float, pack: BoolArray) -> float:
    """Write to `pack` the best one that respects `row.fixed` and is worth the goal; return its value, or -1 if none is.

    After each find the goal is that value plus `gain`; with no gain to ask for, the first find ends the search.
    """
    best = -1.0
    branches = np.empty(len(row.values), np.int64)
    depth = 0
    while row.steps[0] >= 0:
        row.steps[0] -= RELAXATION
        bound, split = relax(row, goal)
        closed = bound < goal
        if not closed:
            closed, value = _dive(row, bound, goal, gain, pack)
            if value >= 0.0:
                best, goal = value, value + gain
                if gain == 0.0:
                    break
        if not closed:
            row.fixed[split] = IN
            branches[depth] = split
            depth += 1
            continue
        while depth > 0 and row.fixed[branches[depth - 1]] == OUT:
            depth -= 1
            row.fixed[branches[depth]] = FREE
        if depth == 0:
            break
        row.fixed[branches[depth - 1]] = OUT
    for branch in branches[:depth]:
        row.fixed[branch] = FREE
    return best


@kernel
def _dive(row: Row, bound: float, goal: float, gain: float, pack: BoolArray) -> tuple[bool, float]:
    """Search the free items depth first at the present prices; return whether that settles them, and the best value."""
    best = _fill(row, goal, pack)
    if best >= 0.0:
        goal = best + gain
        if gain == 0.0:
            return True, best

    items, room, rest = _plan(row)
    n = len(items)
    bounds = np.full(n + 1, bound)
    tries = np.zeros(n, np.int64)
    take = _taken(row)
    level = 0
    for _ in range(DIVE + 2 * n):
        row.steps[0] -= 1
        if level < 0:
            return True, best
        if level == n:
            value = _value(row, take)
            if value >= goal:
                _copy(take, pack)
                best, goal = value, value + gain
                if gain == 0.0:
                    return True, best
            level -= 1
        elif tries[level] == 2:
            tries[level] = 0
            level -= 1
        else:
            # First what the prices suggest, then the deviation from it.
            item = items[level]
            take[item] = (row.profits[item] > 0.0) == (tries[level] == 0)
            bounds[level + 1] = bounds[level] - abs(row.profits[item]) * tries[level]
            tries[level] += 1
            is_open = bounds[level + 1] >= goal
            if is_open:
                waste = 0.0
                for d in range(len(row.prices)):
                    left = room[level, d] - row.loads[item, d] * take[item]
                    is_open &= left >= 0.0
                    waste += row.prices[d] * max(0.0, left - rest[level + 1, d])
                    room[level + 1, d] = left
                is_open &= bounds[level + 1] - waste >= goal
            level += is_open
    return False, best


@kernel
def _plan(row: Row) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the free items, dearest deviation first, the room before each of them, and the load that is to come."""
    m, k = row.loads.shape
    size = np.empty(m)
    for item in range(m):
        size[item] = abs(row.profits[item])
    items = np.empty(m, np.int64)
    n = 0
    for item in _descending(size):
        if row.fixed[item] == FREE:
            items[n] = item
            n += 1
    room = np.empty((n + 1, k))  # the first row is known; the search fills in the others
    rest = np.zeros((n + 1, k))
    left = room_left(row)
    for d in range(k):
        room[0, d] = left[d]
        for level in range(n - 1, -1, -1):
            rest[level, d] = rest[level + 1, d] + row.loads[items[level], d]
    return items[:n], room, rest


@kernel
def _fill(row: Row, goal: float, pack: BoolArray) -> float:
    """Add the free items that fit, best first; keep the pack and return its value if it is worth the goal, else -1."""
    take = _taken(row)
    room = room_left(row)
    for item in _descending(row.profits):
        if row.fixed[item] == FREE:
            fits = True
            for d in range(len(room)):
                fits &= row.loads[item, d] <= room[d]
            if fits:
                take[item] = True
                for d in range(len(room)):
                    room[d] -= row.loads[item, d]
    value = _value(row, take)
    if value < goal:
        return -1.0
    _copy(take, pack)
    return value


# Plain loops from here on, where NumPy has a function: those take far longer to compile, once for every caller.


@kernel
def _descending(keys: FloatArray) -> IntArray:
    order = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        place = i
        while place > 0 and keys[order[place - 1]] < keys[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
    return order


@kernel
def _taken(row: Row) -> BoolArray:
    take = np.empty(len(row.fixed), np.bool_)
    for item in range(len(take)):
        take[item] = row.fixed[item] == IN
    return take


@kernel
def _value(row: Row, take: BoolArray) -> float:
    value = 0.0
    for item in range(len(take)):
        if take[item]:
            value += row.values[item]
    return value


@kernel
def _copy(take: BoolArray, pack: BoolArray) -> None:
    for item in range(len(take)):
        pack[item] = take[item]
