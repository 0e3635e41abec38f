"""The linear relaxation of a knapsack, from which its search has its prices and its limits.

It is solved by the dual simplex on bounded variables. A limit is always recomputed from the prices, whatever they are,
with a bound on its own rounding, so that no answer depends on the simplex's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.problems.rounding.ties import EPS
from decidewise.runtime.kernels import kernel

IntArray = npt.NDArray[np.int64]

#: The error that the simplex tolerates; the limits do not.
ROUNDING = 1e-9


class State(NamedTuple):
    """One row's `n` open items, what is decided of them, and a simplex tableau of what is not.

    The arrays are made once, for `m` items and `k` dimensions, and serve one row after the other. A pack is an array
    of zeros and ones. The columns of the tableau are items, slacks and the right-hand side; its last row, the profits.
    """

    steps: IntArray  # (1,) how many are left, for this row and those after it
    items: IntArray  # (m,) their numbers, ascending
    values: FloatArray  # (m,)
    loads: FloatArray  # (m, k)
    room: FloatArray  # (k,)
    best: FloatArray  # (m,) the best pack so far
    left: FloatArray  # (k,) the room that it leaves
    low: FloatArray  # (m + k,) bounds of the columns: 0 and 1 for a free item, and equal for one that is decided
    high: FloatArray  # (m + k,)
    tableau: FloatArray  # (k + 1, m + k + 1)
    basis: IntArray  # (k,) the column that is basic in each row
    at: FloatArray  # (m + k,) where the others stand, at one of their bounds
    prices: FloatArray  # (k,)
    profits: FloatArray  # (m,) reduced by the prices
    branches: IntArray  # (m,) the items that the search has branched on
    order: IntArray  # (m,) all items, dearest deviation first
    free: IntArray  # (m,) those that are free: one a level of a dive
    tries: IntArray  # (m + 1,) how many choices each level has tried
    losses: FloatArray  # (m + 1,) by the choices above each level
    rooms: FloatArray  # (m + 1, k) that they leave
    rests: FloatArray  # (m + 1, k) the load of all levels below each
    take: FloatArray  # (m,) the pack in hand
    terms: FloatArray  # (m,) in which two packs differ


def make_state(m: int, k: int, steps: IntArray) -> State:
    """Return the arrays for rows of up to `m` items in `k` dimensions."""
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
    """Price the room by the linear relaxation; return the loss of what is decided, its limit and the item to branch on.

    This is the dual simplex on bounded variables. Every basis is dual feasible for some choice of bounds, so the last
    one serves as a start, whatever has been decided or freed since.
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
        loss, limit = _price(row, n, ease)
        if loss > limit:
            break

        # The basic variable furthest outside its bounds leaves, for the nearer one.
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

        # The first column whose profit would change its sign enters.
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
    """Take the tableau's prices and reduce the profits by them; return the loss of what is decided, and its limit.

    Both leave out what the best pack and the pack in question have in common, however large.
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
    # Each profit rounds by its k + 1 terms, and the loads of a pack, near 1, by its up to n items.
    return loss, gap + ease + EPS * (2 * (k + 1) * size + n * (gap + 2.0 * weight))
