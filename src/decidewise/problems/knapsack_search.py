"""The compiled searches behind `Knapsack`: list every maximal pack once, or branch and bound row by row.

Loads are weights in units of the capacity, one row an item, so a pack fits when its loads sum to at most one in every
dimension. Values are in units of the largest of the row. Both searches answer a row with the same pack, the
lexicographically largest among the packs of worthwhile items whose value is within `TIE` of the best.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from decidewise.checks import FloatArray

#: A pack that is over a capacity by this fraction still fits: decimal weights do not add up exactly in binary.
SLACK = 1e-9
#: Two packs whose values differ by this fraction of the row's total value are tied, so that rounding cannot decide.
TIE = 1e-12


@njit(cache=True, nogil=True)
def maximal_packs(loads: FloatArray, most: int, nodes: int) -> FloatArray:
    """List the packs to which no item can be added: (items, packs), with no packs if there are more than `most`.

    The search also gives up after that many `nodes`, since it can wade through packs that are not maximal.
    """
    n_items, n_dims = loads.shape
    packs = np.zeros((most, n_items))
    left = np.zeros((n_items + 1, n_dims))  # capacity left before each item
    left[0] = 1.0 + SLACK
    rest = np.zeros((n_items + 1, n_dims))  # load of an item and of all that follow
    for i in range(n_items - 1, -1, -1):
        rest[i] = rest[i + 1] + loads[i]
    tried = np.zeros(n_items + 1, np.int64)  # 0: nothing, 1: taken, 2: left out
    count = item = 0
    while item >= 0:
        if item == n_items:
            if count == most:
                return packs[:0].T.copy()
            for i in range(n_items):
                packs[count, i] = 1.0 if tried[i] == 1 else 0.0
            count += 1
            item -= 1
        elif tried[item] == 2:
            tried[item] = 0
            item -= 1
        else:
            tried[item] += 1
            nodes -= 1
            if nodes < 0:
                return packs[:0].T.copy()
            left[item + 1] = left[item]
            if tried[item] == 1:
                left[item + 1] -= loads[item]
                open_branch = left[item + 1].min() >= 0.0
            else:
                # An item left out must be kept out by the others: it may not fit beside all that are still to come.
                open_branch = True
                spare = left[item] - rest[item + 1]
                for i in range(item + 1):
                    if tried[i] == 2 and np.all(loads[i] <= spare):
                        open_branch = False
            item += open_branch
    return packs[:count].T.copy()


@njit(cache=True, nogil=True)
def best_listed_packs(values: FloatArray, packs: FloatArray) -> FloatArray:
    """Choose among the packs (items, packs), for every row of values (n, items), and drop items of no value."""
    n_items, n_packs = packs.shape
    decisions = np.zeros(values.shape)
    totals = np.empty(n_packs)
    for row in range(len(values)):
        largest = values[row].max()
        if largest <= 0.0:
            continue
        totals[:] = 0.0
        scale = 0.0
        for i in range(n_items):
            if values[row, i] > 0.0:
                value = values[row, i] / largest
                scale += value
                for j in range(n_packs):
                    totals[j] += value * packs[i, j]
        threshold = totals.max() - TIE * scale
        best = -1
        for j in range(n_packs):
            if totals[j] >= threshold and (best < 0 or _precedes(packs[:, j], packs[:, best], values[row])):
                best = j
        for i in range(n_items):
            if values[row, i] > 0.0:
                decisions[row, i] = packs[i, best]
    return decisions


@njit(cache=True, nogil=True)
def _precedes(pack: FloatArray, other: FloatArray, values: FloatArray) -> bool:
    """Whether a pack is lexicographically larger than another on the items of positive value."""
    for i in range(len(values)):
        if values[i] > 0.0 and pack[i] != other[i]:
            return pack[i] > other[i]
    return False
