"""The linear relaxation of a knapsack, from which its search has its prices and its bounds.

It is solved by the dual simplex on bounded variables. A bound is always recomputed from the prices, whatever they are,
so that no answer depends on the simplex's rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.kernels import kernel
from decidewise.problems.knapsack_packs import ROOM, TIE

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

FREE, OUT, IN = -1, 0, 1
#: The error that the simplex tolerates; the bounds do not.
ROUNDING = 1e-9


class Row(NamedTuple):
    """One row's items, what is decided of them, and a simplex tableau of what is not."""

    values: FloatArray  # (m,) positive, in units of the largest
    loads: FloatArray  # (m, k)
    fixed: IntArray  # (m,) FREE, OUT or IN
    tableau: FloatArray  # (k + 1, m + k + 1): columns are items, slacks and the right-hand side; last the profits
    basis: IntArray  # (k,) the column that is basic in each row
    at_one: BoolArray  # (m + k,) the columns that are not basic and stand at their upper bound
    prices: FloatArray  # (k,)
    profits: FloatArray  # (m,) reduced by the prices
    steps: IntArray  # (1,) how many are left, for this row and those after it


@kernel
def open_row(values: FloatArray, loads: FloatArray, items: IntArray, steps: IntArray) -> Row:
    """Start with all of the given items free, and the slacks as the basis."""
    m, k = len(items), loads.shape[1]
    row = Row(
        np.empty(m),
        np.empty((m, k)),
        np.full(m, FREE),
        np.zeros((k + 1, m + k + 1)),
        np.arange(m, m + k),
        np.zeros(m + k, np.bool_),
        np.zeros(k),
        np.zeros(m),
        steps,
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


@kernel
def relax(row: Row, goal: float) -> tuple[float, int]:
    """Price the room by the linear relaxation; return a bound on all packs and the item to branch on.

    This is the dual simplex on bounded variables. Every basis is dual feasible for some choice of bounds, so the last
    one serves as a start, whatever has been fixed or freed since.
    """
    m, k = row.loads.shape
    if room_left(row).min() < 0.0:
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


@kernel
def _price(row: Row) -> float:
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


@kernel
def _worst_row(row: Row) -> tuple[int, bool, int]:
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


@kernel
def _cheapest_column(row: Row, leaving: int, rises: bool, is_basic: BoolArray) -> int:
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


@kernel
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


@kernel
def room_left(row: Row) -> FloatArray:
    """Return the room beside the items that are in."""
    m, k = row.loads.shape
    room = np.full(k, ROOM)
    for item in range(m):
        if row.fixed[item] == IN:
            for d in range(k):
                room[d] -= row.loads[item, d]
    return room
