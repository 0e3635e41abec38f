"""The small knapsack: list the packs to which nothing can be added, once, and then choose among them row by row.

Loads are weights in units of the capacity, one row an item, so a pack fits when its loads sum to at most one in every
dimension. `knapsack_search` answers with the same packs where there are too many of them to list.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.kernels import kernel

IntArray = npt.NDArray[np.int64]

#: The room in every dimension. The excess is for decimal weights, which do not add up exactly in binary.
ROOM = 1.0 + 1e-9
#: Steps for each pack to be listed, after which the listing gives up: it may wade through packs that are not maximal.
STEPS_PER_PACK = 250
#: Two packs whose values differ by this fraction of the row's total value are tied, so that rounding cannot decide.
TIE = 1e-12


@kernel
def maximal_packs(loads: FloatArray, most: int) -> FloatArray:
    """List the maximal packs of the loads (items, dimensions) as zeros and ones (items, packs).

    There are no columns if there are more than `most` packs, or if finding them takes too many steps.
    """
    m, k = loads.shape
    packs = np.zeros((m, most))
    room = np.full((m + 1, k), ROOM)  # what is left of it before each item
    rest = np.zeros((m + 1, k))  # the load of each item and of all that follow
    for item in range(m - 1, -1, -1):
        for d in range(k):
            rest[item, d] = rest[item + 1, d] + loads[item, d]
    tries = np.zeros(m, np.int64)  # 1: taken, 2: left out
    count = item = 0
    for _ in range(STEPS_PER_PACK * most):
        if item < 0:
            return packs[:, :count].copy()
        if item == m:
            if count == most:
                break
            for i in range(m):
                packs[i, count] = tries[i] == 1
            count += 1
            item -= 1
        elif tries[item] == 2:
            tries[item] = 0
            item -= 1
        else:
            tries[item] += 1
            for d in range(k):
                room[item + 1, d] = room[item, d] - loads[item, d] * (tries[item] == 1)
            item += room[item + 1].min() >= 0.0 and not _misses_an_item(loads, tries, room, rest, item + 1)
    return np.zeros((m, 0))


@kernel
def _misses_an_item(loads: FloatArray, tries: IntArray, room: FloatArray, rest: FloatArray, item: int) -> bool:
    """Whether one left out before `item` fits beside all that can follow, so that no pack from here is maximal."""
    for i in range(item):
        if tries[i] == 2:
            fits = True
            for d in range(loads.shape[1]):
                fits &= loads[i, d] <= room[item, d] - rest[item, d]
            if fits:
                return True
    return False


@kernel
def choose_packs(values: FloatArray, packs: FloatArray, decisions: FloatArray) -> None:
    """Write the best of the packs (items, packs) for each row of values (n, items), less the items of no value.

    Among tied packs the lexicographically largest wins. Each row is summed in the order of the items, whatever the
    size of the batch, so that a batch equals a loop to the last bit.
    """
    n_items, n_packs = packs.shape
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


@kernel
def _precedes(pack: FloatArray, other: FloatArray, values: FloatArray) -> bool:
    """Whether a pack is lexicographically larger than another on the items of positive value."""
    for item in range(len(values)):
        if values[item] > 0.0 and pack[item] != other[item]:
            return pack[item] > other[item]
    return False
