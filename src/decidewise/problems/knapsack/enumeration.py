"""The small knapsack: list all maximal packs once, then choose the best of them for each row.

A pack is maximal if no further item fits. Loads are weights divided by the capacities, one row per item, so a pack fits
if its loads sum to at most 1 in every dimension. If there are too many maximal packs to list, `search` finds the same
answers without a list.
"""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.rounding import EPS, is_tie, safe_unit

#: The capacity in every dimension, in units of loads. It exceeds 1 because decimal weights do not add up exactly.
ROOM = 1.0 + 1e-9
#: The listing gives up after this many steps for each pack that it may list: it may visit many packs not maximal.
STEPS_PER_PACK = 250
#: Two packs are tied if their values differ by at most this fraction of the sum of the values in which they differ.
TIE = 1e-12


def maximal_packs(loads: FloatArray, max_packs: int) -> FloatArray:
    """Return the maximal packs of the loads (items, dimensions) as zeros and ones (items, packs).

    The result has no columns if there are more than `max_packs` packs, or if listing them takes too many steps.
    """
    m, k = loads.shape
    packs = np.zeros((m, max_packs))
    room = np.full((m + 1, k), ROOM)  # the room left before each item
    rest = np.zeros((m + 1, k))  # the total load of each item and all items after it
    rest[:m] = np.cumsum(loads[::-1], axis=0)[::-1]
    tries = np.zeros(m, np.int64)  # 1: taken, 2: left out
    return packs[:, : _list_packs(loads, packs, room, rest, tries)].copy()


@kernel
def _list_packs(loads: FloatArray, packs: FloatArray, room: FloatArray, rest: FloatArray, tries: IntArray) -> int:
    """Write the maximal packs to the columns of `packs`; return their number, or 0 if there are too many."""
    m, k = loads.shape
    max_packs = packs.shape[1]
    count = item = 0
    for _ in range(STEPS_PER_PACK * max_packs):
        if item < 0:
            return count
        if item == m:
            if count == max_packs:
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
            is_open = True
            for d in range(k):
                room[item + 1, d] = room[item, d] - loads[item, d] * (tries[item] == 1)
                is_open &= room[item + 1, d] >= 0.0
            # If an item left out fits even with all the items that follow, no pack from here on is maximal.
            for i in range(item + 1):
                if is_open and tries[i] == 2:
                    fits = True
                    for d in range(k):
                        fits &= loads[i, d] <= room[item + 1, d] - rest[item + 1, d]
                    is_open = not fits
            item += is_open
    return 0


@kernel
def choose_packs(values: FloatArray, decisions: FloatArray, packs: FloatArray) -> None:
    """Mark the best of the packs (items, packs) for each row of values (n, items), without its items of no value.

    Among tied packs the lexicographically largest is chosen. Each row is summed in the order of the items, so that a
    batch equals a loop to the last bit. Packs whose totals differ by no more than rounding are compared by the items in
    which they differ.
    """
    n_items, n_packs = packs.shape
    totals = np.empty(n_packs)
    last = n_items - 1
    worth = np.zeros(n_items + 3)  # the last three stay zero
    terms = np.empty(n_items)
    for row in range(len(values)):
        largest = 0.0
        for item in range(n_items):
            largest = max(largest, values[row, item])
        if largest == 0.0:
            continue  # no item is worth packing
        unit = safe_unit(largest)
        total = 0.0
        for item in range(n_items):
            worth[item] = max(0.0, values[row, item] * unit)
            total += worth[item]
        for pack in range(n_packs):
            totals[pack] = 0.0
        for item in range(0, n_items, 4):  # four items in one pass over the totals, which is what takes the time
            i, j, k = min(item + 1, last), min(item + 2, last), min(item + 3, last)
            a, b, c, d = worth[item], worth[item + 1], worth[item + 2], worth[item + 3]
            for pack in range(n_packs):
                first = (totals[pack] + a * packs[item, pack]) + b * packs[i, pack]
                totals[pack] = (first + c * packs[j, pack]) + d * packs[k, pack]
        best, second = 0, -1.0
        for pack in range(1, n_packs):
            if totals[pack] > second:
                if totals[pack] > totals[best]:
                    best, second = pack, totals[best]
                else:
                    second = totals[pack]
        rounding = 2 * n_items * EPS * total
        if second >= totals[best] - rounding - TIE * total:
            best = _break_ties(packs, worth[:n_items], totals, best, rounding, TIE * total, terms)
        for item in range(n_items):
            if worth[item] > 0.0:
                decisions[row, item] = packs[item, best]


@kernel(inner=True)
def _break_ties(
    packs: FloatArray,
    worth: FloatArray,
    totals: FloatArray,
    largest: int,
    rounding: float,
    tie: float,
    terms: FloatArray,
) -> int:
    """Return the lexicographically largest pack that is tied with the best; `largest` is the pack of largest total."""
    best = largest
    for pack in range(len(totals)):
        if totals[pack] >= totals[largest] - rounding:
            count = _differences(worth, packs, best, pack, terms)
            if is_tie(terms, count, 0.0):
                best = pack
    first = best
    for pack in range(len(totals)):
        if totals[pack] >= totals[largest] - rounding - tie and _precedes(worth, packs, pack, first):
            count = _differences(worth, packs, best, pack, terms)
            if is_tie(terms, count, TIE):
                first = pack
    return first


@kernel(inner=True)
def _differences(worth: FloatArray, packs: FloatArray, best: int, other: int, terms: FloatArray) -> int:
    """Write the value that the other pack loses against the best, for each item in which they differ; count these."""
    count = 0
    for item in range(len(worth)):
        if packs[item, best] != packs[item, other]:
            terms[count] = worth[item] * (packs[item, best] - packs[item, other])
            count += 1
    return count


@kernel(inner=True)
def _precedes(worth: FloatArray, packs: FloatArray, pack: int, other: int) -> bool:
    """Return whether a pack is lexicographically larger than another one, on the items of positive value."""
    for item in range(len(worth)):
        if worth[item] > 0.0 and packs[item, pack] != packs[item, other]:
            return packs[item, pack] > packs[item, other]
    return False
