"""The linear relaxation of a knapsack, which gives its search prices and limits.

It is solved by the dual simplex method on bounded variables. Each limit is computed from the prices alone and includes
a bound on its own rounding. It is valid for any prices, so errors of the simplex method do not affect the answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.rounding import EPS

#: The error that the simplex method tolerates; the limits do not depend on it.
ROUNDING = 1e-9


class State(NamedTuple):
    """The search of one row: its `n` items of positive value, the decisions on them and a simplex tableau.

    The arrays are allocated once, for `m` items and `k` dimensions, and reused for each row. A pack is an array of
    zeros and ones. The columns of the tableau are the items, the slacks and the right-hand side; its last row holds the
    profits.
    """

    steps: IntArray  # (1,) the number of steps left, for this row and those after it
    items: IntArray  # (m,) the indices of the items, ascending
    values: FloatArray  # (m,)
    loads: FloatArray  # (m, k)
    room: FloatArray  # (k,)
    best: FloatArray  # (m,) the best pack so far
    left: FloatArray  # (k,) the room that the best pack leaves
    low: FloatArray  # (m + k,) lower bounds of the columns: 0 for a free item
    high: FloatArray  # (m + k,) upper bounds: 1 for a free item, equal to `low` for a decided one
    tableau: FloatArray  # (k + 1, m + k + 1)
    basis: IntArray  # (k,) the column that is basic in each row
    at: FloatArray  # (m + k,) the values of the nonbasic columns, each at one of its bounds
    prices: FloatArray  # (k,)
    profits: FloatArray  # (m,) reduced by the prices
    branches: IntArray  # (m,) the items that the search has branched on
    order: IntArray  # (m,) all items, largest absolute profit first
    free: IntArray  # (m,) the free items in this order, one per level of the depth-first search
    tries: IntArray  # (m + 1,) the number of choices tried at each level
    losses: FloatArray  # (m + 1,) the loss of the choices above each level
    rooms: FloatArray  # (m + 1, k) the room that these choices leave
    rests: FloatArray  # (m + 1, k) the total load of the items below each level
    take: FloatArray  # (m,) the current pack
    terms: FloatArray  # (m,) the values in which two packs differ


def make_state(m: int, k: int, steps: IntArray) -> State:
    """Allocate the arrays for rows of up to `m` items in `k` dimensions."""
    return State(
        steps=steps,
        items=np.zeros(m, np.int64),
        values=np.zeros(m),
        loads=np.zeros((m, k)),
        room=np.zeros(k),
        best=np.zeros(m),
        left=np.zeros(k),
        low=np.zeros(m + k),
        high=np.zeros(m + k),
        tableau=np.zeros((k + 1, m + k + 1)),
        basis=np.zeros(k, np.int64),
        at=np.zeros(m + k),
        prices=np.zeros(k),
        profits=np.zeros(m),
        branches=np.zeros(m, np.int64),
        order=np.zeros(m, np.int64),
        free=np.zeros(m, np.int64),
        tries=np.zeros(m + 1, np.int64),
        losses=np.zeros(m + 1),
        rooms=np.zeros((m + 1, k)),
        rests=np.zeros((m + 1, k)),
        take=np.zeros(m),
        terms=np.zeros(m),
    )


@kernel(inner=True, _nrt=False)
def relax(row: State, n: int, ease: float) -> tuple[float, float, int]:
    """Price the room by the linear relaxation; return the loss of the decided items, its limit, the item to branch on.

    This is the dual simplex method on bounded variables. Every basis is dual feasible for some choice of bounds, so
    each call starts from the last basis, whatever items have been decided or freed since. `ease` is how much value a
    pack may lose against the best one, negative if it must gain.

    Start: bounds by the signs of profits; room left.
    Price: loss and limit; stop if above.
    Leave: the variable furthest outside its bounds.
    Enter: the first profit to change sign.
    Pivot: divide and eliminate. Split: smallest profit.
    """
    low = row.low
    high = row.high
    at = row.at
    basis = row.basis
    tableau = row.tableau
    k = len(basis)
    for item in range(n):
        at[item] = 1.0 if tableau[k, item] > 0.0 else 0.0
        if low[item] == high[item]:
            at[item] = low[item]
    for d in range(k):
        at[basis[d]] = 0.0
        left = row.room[d]
        for item in range(n):
            left -= row.loads[item, d] * low[item]
        row.rooms[0, d] = left
        if left < 0.0:
            return np.inf, 0.0, -1

    loss = limit = 0.0
    for _ in range(n + 5 * k):
        row.steps[0] -= (n + k) * (k + 1) // 4  # what a pivot takes: ties among 1,000 items need hundreds of them
        loss, limit = _price(row, n, ease)
        if loss > limit:
            break

        # The basic variable furthest outside its bounds leaves the basis, to the bound that it violates.
        leaving = -1
        worst, direction = ROUNDING, 1.0
        for i in range(k):
            value = tableau[i, n + k]
            for item in range(n):
                value -= tableau[i, item] * at[item]
            below = low[basis[i]] - value
            above = value - high[basis[i]]
            if below > worst:
                leaving, worst, direction = i, below, 1.0
            if above > worst:
                leaving, worst, direction = i, above, -1.0
        if leaving < 0:
            break
        left_by = basis[leaving]

        # The column whose profit is the first to change its sign enters.
        entering, ratio = -1, np.inf
        for column in range(n + k):
            if low[column] < high[column] and column != left_by:
                pivot = direction * tableau[leaving, column] * (2.0 * at[column] - 1.0)
                if pivot > ROUNDING and abs(tableau[k, column]) < ratio * pivot:
                    entering, ratio = column, abs(tableau[k, column]) / pivot
        if entering < 0:
            break
        basis[leaving] = entering
        at[left_by] = low[left_by] if direction > 0.0 else high[left_by]
        at[entering] = 0.0
        pivot = tableau[leaving, entering]
        for j in range(n + k + 1):
            tableau[leaving, j] /= pivot
        for i in range(k + 1):
            factor = tableau[i, entering]
            if i != leaving:
                for j in range(n + k + 1):
                    tableau[i, j] -= factor * tableau[leaving, j]

    split, least = -1, np.inf
    for item in range(n):
        if low[item] < high[item] and abs(row.profits[item]) < least:
            split, least = item, abs(row.profits[item])
    return loss, limit, split


@kernel(inner=True, _nrt=False)
def _price(row: State, n: int, ease: float) -> tuple[float, float]:
    """Read the prices from the tableau and set the reduced profits; return the loss of the decided items and its limit.

    The limit is the loss of the best pack, plus `ease` and the rounding of both. Neither loss contains the values that
    two packs have in common, however large.
    """
    prices = row.prices
    k = len(prices)
    gap = weight = loss = size = 0.0
    for d in range(k):
        price = -row.tableau[k, n + d]
        prices[d] = price if price > 0.0 else 0.0
        gap += prices[d] * row.left[d]
        weight += prices[d]
    for item in range(n):
        value = row.values[item]
        profit = value
        for d in range(k):
            profit -= prices[d] * row.loads[item, d]
        row.profits[item] = profit
        size += 2.0 * value - profit
        suggestion = 1.0 if profit > 0.0 else 0.0
        deviation = abs(profit)
        if row.best[item] != suggestion:
            gap += deviation
        if row.low[item] > suggestion or row.high[item] < suggestion:
            loss += deviation
    # The rounding of a profit grows with its k + 1 terms; that of the total load of a pack, near 1, with its n items.
    return loss, gap + ease + EPS * (2 * (k + 1) * size + n * (gap + 2.0 * weight))
