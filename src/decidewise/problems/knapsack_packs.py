"""The small knapsack: list the packs to which nothing can be added, once, and then choose among them row by row.

Loads are weights in units of the capacity, one row an item, so a pack fits when its loads sum to at most one in every
dimension. `knapsack_search` answers with the same packs where there are too many of them to list.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from decidewise.checks import FloatArray

#: The room in every dimension. The excess is for decimal weights, which do not add up exactly in binary.
ROOM = 1.0 + 1e-9
#: Steps for each pack to be listed, after which the listing gives up: it may wade through packs that are not maximal.
STEPS_PER_PACK = 250
#: Two packs whose values differ by this fraction of the row's total value are tied, so that rounding cannot decide.
TIE = 1e-12


@njit(cache=True, nogil=True)
def maximal_packs(loads: FloatArray, most: int) -> FloatArray:
    """List the maximal packs of the loads (items, dimensions) as zeros and ones (items, packs).

    There are no columns if there are more than `most` packs, or if finding them takes too many steps.
    """
    n_items, n_dims = loads.shape
    packs = np.zeros((most, n_items))
    room = np.full((n_items + 1, n_dims), ROOM)  # what is left of it before each item
    rest = np.zeros((n_items + 1, n_dims))  # the load of each item and of all that follow
    for item in range(n_items - 1, -1, -1):
        rest[item] = rest[item + 1] + loads[item]
    tries = np.zeros(n_items, np.int64)  # 1: taken, 2: left out
    count = item = 0
    for _ in range(STEPS_PER_PACK * most):
        if item < 0:
            return packs[:count].T.copy()
        if item == n_items:
            if count == most:
                break
            packs[count] = tries == 1
            count += 1
            item -= 1
        elif tries[item] == 2:
            tries[item] = 0
            item -= 1
        else:
            tries[item] += 1
            room[item + 1] = room[item]
            if tries[item] == 1:
                room[item + 1] -= loads[item]
                is_open = room[item + 1].min() >= 0.0
            else:
                is_open = not _some_fits(loads, tries[: item + 1] == 2, room[item] - rest[item + 1])
            item += is_open
    return np.zeros((n_items, 0))


@njit(cache=True, nogil=True)
def _some_fits(loads: FloatArray, left_out: npt.NDArray[np.bool_], spare: FloatArray) -> bool:
    """Whether an item left out fits beside all that can still be taken, so that no pack from here is maximal."""
    for item in range(len(left_out)):
        if left_out[item] and np.all(loads[item] <= spare):
            return True
    return False


@njit(cache=True, nogil=True)
def choose_packs(values: FloatArray, packs: FloatArray) -> FloatArray:
    """Return the best of the packs (items, packs) for each row of values (n, items), less the items of no value.

    Among tied packs the lexicographically largest wins. Each row is summed in the order of the items, whatever the
    size of the batch, so that a batch equals a loop to the last bit.
    """
    n_items, n_packs = packs.shape
    decisions = np.zeros(values.shape)
    totals = np.empty(n_packs)
    for row in range(len(values)):
        largest = values[row].max()
        totals[:] = 0.0
        scale = 0.0
        for item in range(n_items):
            if values[row, item] > 0.0:
                value = values[row, item] / largest
                scale += value
                for pack in range(n_packs):
                    totals[pack] += value * packs[item, pack]
        threshold = totals.max() - TIE * scale
        best = -1
        for pack in range(n_packs):
            if totals[pack] >= threshold and (best < 0 or _precedes(packs[:, pack], packs[:, best], values[row])):
                best = pack
        for item in range(n_items):
            if values[row, item] > 0.0:
                decisions[row, item] = packs[item, best]
    return decisions


@njit(cache=True, nogil=True)
def _precedes(pack: FloatArray, other: FloatArray, values: FloatArray) -> bool:
    """Whether a pack is lexicographically larger than another on the items of positive value."""
    for item in range(len(values)):
        if values[item] > 0.0 and pack[item] != other[item]:
            return pack[item] > other[item]
    return False
