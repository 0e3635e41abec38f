"""The large knapsack: branch and bound, row by row.

For any prices `u >= 0` of the room and any pack `x`, with loads `a` and reduced profits `p = v - a u`,

    v·x  =  sum(u) + sum(p+)  -  sum of |p_i| over the items where x differs from [p > 0]  -  u·(room that x leaves).

The first two terms bound every pack and the third says what each deviation costs, so a depth-first search over the
items, dearest deviation first, closes quickly when the prices are those of the linear relaxation. Where it does not,
the search branches on an item that the relaxation splits, prices again and dives again. Prices that are off only slow
the search down: a bound is always recomputed from the formula, so the answer never depends on the simplex's rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from decidewise.checks import FloatArray
from decidewise.problems.knapsack_packs import ROOM, TIE

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

FREE, OUT, IN = -1, 0, 1
#: Steps of one dive before it is cheaper to branch and price again.
DIVE = 20_000
#: What one relaxation costs, in steps of a dive.
RELAXATION = 500
#: The error that the simplex tolerates; the bounds do not.
ROUNDING = 1e-9


class _Row(NamedTuple):
    """One row's items, what is decided of them, and a simplex tableau of what is not."""

    values: FloatArray  # (m,) positive, the largest is 1
    loads: FloatArray  # (m, k)
    fixed: IntArray  # (m,) FREE, OUT or IN
    tableau: FloatArray  # (k + 1, m + k + 1): columns are items, slacks and the right-hand side; last the profits
    basis: IntArray  # (k,) the column that is basic in each row
    at_one: BoolArray  # (m + k,) the columns that are not basic and stand at their upper bound
    prices: FloatArray  # (k,)
    profits: FloatArray  # (m,) reduced by the prices
    steps: IntArray  # (1,) how many are left


@njit(cache=True, nogil=True)
def search_packs(values: FloatArray, loads: FloatArray, max_steps: int) -> tuple[FloatArray, int]:
    """Return the best pack of each row of values (n, items), and the first row that took over `max_steps`, or -1.

    An item that does not fit by itself must have no value.
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
            row = _open_row(values[i], loads, items[:count], max_steps)
            pack = _best_pack(row)
            if row.steps[0] < 0:
                return decisions, i
            for j in range(count):
                decisions[i, items[j]] = pack[j]
    return decisions, -1


@njit(cache=True, nogil=True)
def _open_row(values: FloatArray, loads: FloatArray, items: IntArray, max_steps: int) -> _Row:
    m, k = len(items), loads.shape[1]
    row = _Row(
        np.empty(m),
        np.empty((m, k)),
        np.full(m, FREE),
        np.zeros((k + 1, m + k + 1)),
        np.arange(m, m + k),
        np.zeros(m + k, np.bool_),
        np.zeros(k),
        np.zeros(m),
        np.full(1, max_steps),
    )
    largest = values.max()
    for j in range(m):
        row.values[j] = row.tableau[k, j] = values[items[j]] / largest
        for d in range(k):
            row.loads[j, d] = row.tableau[d, j] = loads[items[j], d]
    for d in range(k):
        row.tableau[d, m + d] = 1.0
        row.tableau[d, m + k] = ROOM
    return row


@njit(cache=True, nogil=True)
def _best_pack(row: _Row) -> BoolArray:
    """Find the best value, then the first pack in lexicographic order that is worth as much."""
    total = row.values.sum()
    pack = np.zeros(len(row.values), np.bool_)
    best = _search(row, 0.0, max(TIE / 10 * total, 0.999 * _common_divisor(row.values)), pack)
    for item in range(len(pack)):
        row.fixed[item] = IN
        if not pack[item] and _search(row, best - TIE * total, 0.0, pack) < 0.0:
            row.fixed[item] = OUT
    return pack


@njit(cache=True, nogil=True)
def _common_divisor(values: FloatArray) -> float:
    """Return what all values are multiples of, or zero: two packs that differ in value differ by at least as much."""
    divisor = 0.0
    for value in values:
        small = value
        while small > TIE:
            divisor, small = small, divisor % small
            if divisor - small < TIE:
                small = 0.0  # a remainder that rounding kept a hair below the divisor
        if divisor < 1e-4:
            return 0.0  # too fine to close a gap, and to trust
    return divisor


@njit(cache=True, nogil=True)
def _search(row: _Row, goal: float, gain: float, pack: BoolArray) -> float:
    """Write to `pack` the best one that respects `row.fixed` and is worth the goal; return its value, or -1 if none is.

    After each find the goal is that value plus `gain`; with no gain to ask for, the first find ends the search.
    """
    best = -1.0
    branches = np.empty(len(row.values), np.int64)
    depth = 0
    while row.steps[0] >= 0:
        row.steps[0] -= RELAXATION
        bound, split = _relax(row, goal)
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


@njit(cache=True, nogil=True)
def _relax(row: _Row, goal: float) -> tuple[float, int]:
    """Price the room by the linear relaxation; return a bound on all packs and the item to branch on.

    This is the dual simplex on bounded variables. Every basis is dual feasible for some choice of bounds, so the last
    one serves as a start, whatever has been fixed or freed since.
    """
    m, k = row.loads.shape
    if _room_left(row).min() < 0.0:
        return -1.0, -1
    is_basic = np.zeros(m + k, np.bool_)
    for i in range(k):
        is_basic[row.basis[i]] = True
    for item in range(m):
        if is_basic[item]:
            row.at_one[item] = False
        elif row.fixed[item] != FREE:
            row.at_one[item] = row.fixed[item] == IN
        elif abs(row.tableau[k, item]) > TIE:
            row.at_one[item] = row.tableau[k, item] > 0.0

    bound, split = _price(row), -1
    for _ in range(m + 5 * k):
        if bound < goal:
            break
        leaving, rises, split = _worst_row(row)
        entering = -1 if leaving < 0 else _cheapest_column(row, leaving, rises, is_basic)
        if entering < 0:
            break
        column = row.basis[leaving]
        row.basis[leaving] = entering
        is_basic[column], is_basic[entering] = False, True
        row.at_one[column], row.at_one[entering] = not rises and column < m, False
        _pivot(row.tableau, leaving, entering)
        bound = _price(row)

    if split < 0:
        cost = np.inf
        for item in range(m):
            if row.fixed[item] == FREE and abs(row.profits[item]) < cost:
                cost, split = abs(row.profits[item]), item
    return bound, split


@njit(cache=True, nogil=True)
def _pivot(tableau: FloatArray, leaving: int, entering: int) -> None:
    n_rows, n_columns = tableau.shape
    pivot = tableau[leaving, entering]
    for j in range(n_columns):
        tableau[leaving, j] /= pivot
    for i in range(n_rows):
        if i != leaving:
            factor = tableau[i, entering]
            for j in range(n_columns):
                tableau[i, j] -= factor * tableau[leaving, j]


@njit(cache=True, nogil=True)
def _price(row: _Row) -> float:
    """Take the tableau's prices, reduce the profits by them and return the bound that follows."""
    m, k = row.loads.shape
    for d in range(k):
        row.prices[d] = max(0.0, -row.tableau[k, m + d])
    bound = ROOM * row.prices.sum()
    for item in range(m):
        profit = row.values[item]
        for d in range(k):
            profit -= row.prices[d] * row.loads[item, d]
        row.profits[item] = profit
        if row.fixed[item] == IN or (row.fixed[item] == FREE and profit > 0.0):
            bound += profit
    return bound


@njit(cache=True, nogil=True)
def _worst_row(row: _Row) -> tuple[int, bool, int]:
    """Find the basic variable furthest outside its bounds (-1 if none is), whether it must rise, and the split item."""
    m, k = row.loads.shape
    leaving, rises, split = -1, False, -1
    worst, off_half = ROUNDING, 0.5 - ROUNDING
    for i in range(k):
        value = row.tableau[i, m + k]
        for item in range(m):
            if row.at_one[item]:
                value -= row.tableau[i, item]
        column = row.basis[i]
        lower, upper = 0.0, np.inf
        if column < m:
            lower = 1.0 if row.fixed[column] == IN else 0.0
            upper = 0.0 if row.fixed[column] == OUT else 1.0
            if row.fixed[column] == FREE and abs(value - 0.5) < off_half:
                off_half, split = abs(value - 0.5), column
        if max(lower - value, value - upper) > worst:
            worst = max(lower - value, value - upper)
            leaving, rises = i, value < lower
    return leaving, rises, split


@njit(cache=True, nogil=True)
def _cheapest_column(row: _Row, leaving: int, rises: bool, is_basic: BoolArray) -> int:
    """Choose the column that enters: the first whose reduced profit would change its sign."""
    m, k = row.loads.shape
    entering, ratio = -1, np.inf
    for column in range(m + k):
        if is_basic[column] or (column < m and row.fixed[column] != FREE):
            continue
        pivot = row.tableau[leaving, column] * (1.0 if rises == row.at_one[column] else -1.0)
        if pivot > ROUNDING and abs(row.tableau[k, column]) < ratio * pivot:
            entering, ratio = column, abs(row.tableau[k, column]) / pivot
    return entering


@njit(cache=True, nogil=True)
def _room_left(row: _Row) -> FloatArray:
    """Return the room beside the items that are in."""
    m, k = row.loads.shape
    room = np.full(k, ROOM)
    for item in range(m):
        if row.fixed[item] == IN:
            for d in range(k):
                room[d] -= row.loads[item, d]
    return room


@njit(cache=True, nogil=True)
def _dive(row: _Row, bound: float, goal: float, gain: float, pack: BoolArray) -> tuple[bool, float]:
    """Search the free items depth first at the present prices; return whether that settles them, and the best value."""
    m, k = row.loads.shape
    best = _fill(row, goal, pack)
    if best >= 0.0:
        goal = best + gain
        if gain == 0.0:
            return True, best

    items = np.empty(m, np.int64)
    n = 0
    size = np.empty(m)
    for item in range(m):
        size[item] = abs(row.profits[item])
    for item in _descending(size):
        if row.fixed[item] == FREE:
            items[n] = item
            n += 1
    rest = np.zeros((n + 1, k))  # the load of each item and of all that follow
    for level in range(n - 1, -1, -1):
        for d in range(k):
            rest[level, d] = rest[level + 1, d] + row.loads[items[level], d]
    room = np.empty((n + 1, k))
    room[0] = _room_left(row)
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
                for d in range(k):
                    left = room[level, d] - row.loads[item, d] * take[item]
                    is_open &= left >= 0.0
                    waste += row.prices[d] * max(0.0, left - rest[level + 1, d])
                    room[level + 1, d] = left
                is_open &= bounds[level + 1] - waste >= goal
            level += is_open
    return False, best


@njit(cache=True, nogil=True)
def _fill(row: _Row, goal: float, pack: BoolArray) -> float:
    """Add the free items that fit, the most profitable first; if that is worth the goal, keep it and return its value."""
    take = _taken(row)
    room = _room_left(row)
    for item in _descending(row.profits):
        if row.fixed[item] == FREE and _fits(row.loads[item], room):
            take[item] = True
            for d in range(len(room)):
                room[d] -= row.loads[item, d]
    value = _value(row, take)
    if value < goal:
        return -1.0
    _copy(take, pack)
    return value


@njit(cache=True, nogil=True)
def _descending(keys: FloatArray) -> IntArray:
    """Sort by insertion: for so few items as fast as any, and NumPy's argsort takes most of a minute to compile here."""
    order = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        place = i
        while place > 0 and keys[order[place - 1]] < keys[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
    return order


@njit(cache=True, nogil=True)
def _fits(load: FloatArray, room: FloatArray) -> bool:
    for d in range(len(room)):  # noqa: SIM110 (`all` does not compile)
        if load[d] > room[d]:
            return False
    return True


@njit(cache=True, nogil=True)
def _value(row: _Row, take: BoolArray) -> float:
    value = 0.0
    for item in range(len(take)):
        if take[item]:
            value += row.values[item]
    return value


@njit(cache=True, nogil=True)
def _taken(row: _Row) -> BoolArray:
    take = np.empty(len(row.fixed), np.bool_)
    for item in range(len(take)):
        take[item] = row.fixed[item] == IN
    return take


@njit(cache=True, nogil=True)
def _copy(take: BoolArray, pack: BoolArray) -> None:
    for item in range(len(take)):
        pack[item] = take[item]
