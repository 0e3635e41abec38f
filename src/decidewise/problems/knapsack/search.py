"""The large knapsack: branch and bound, row by row.

For any prices `u >= 0` of the room, reduced profits `p = v - a u` with loads `a`, and any pack `x`,

    v·x = sum(u) + sum(p+) - loss(x),   loss(x) = sum of |p_i| where x differs from [p > 0] + u·(room that x leaves).

So a pack beats the best one so far exactly if its loss is smaller. Values that both packs have in common drop out, so
large values that force an item into the pack cause no rounding errors. Losses only grow as items are decided, so a
depth-first search in the order of decreasing `|p_i|` ends quickly if the prices are those of the linear relaxation. If
it does not end soon, the search branches on an item, solves the relaxation again and starts the depth-first search
again. Inexact prices only make the search slower.
"""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.knapsack.enumeration import ROOM, TIE
from decidewise.problems.knapsack.relaxation import State, make_state, relax
from decidewise.problems.rounding import common_divisor, is_tie

#: The most steps of a depth-first search before it is cheaper to branch and to solve the relaxation again.
DEPTH_FIRST_STEPS = 20_000
#: The cost of one relaxation, in steps of the depth-first search; pivots count beside it.
RELAXATION = 500
#: A value above this multiple of the sum of all smaller values exceeds their exact sum despite rounding.
MORE = 1.0 + 1e-9
#: The result of a depth-first search: no pack is left, a pack was found, or the search takes too long.
CLOSED, LEAF, OPEN = 0, 1, 2


def search_packs(
    values: FloatArray, loads: FloatArray, steps: IntArray, rooms: FloatArray | None = None
) -> tuple[FloatArray, int]:
    """Return the best pack for each row of values (n, items), and the first row that was not solved, or -1.

    The room of each row (n, dimensions) is `ROOM` by default, and never above it. All rows together may take `steps[0]`
    steps; the search counts `steps[0]` down.
    """
    m, k = loads.shape
    rooms = np.full((len(values), k), ROOM) if rooms is None else rooms
    decisions, values, rooms, caps = _pack_dominant(values, loads, rooms)
    return decisions, _search_rows(values, loads, rooms, caps, decisions, make_state(m, k, steps))


def _pack_dominant(
    values: FloatArray, loads: FloatArray, rooms: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Pack the items that outweigh all others; return these packs, the other values, the room left and a cap on values.

    If each of the most valuable items is worth more than all the other items together, and they fit, every best pack
    has them. So these items are left out of the search, and so are those that then do not fit. If they do not fit but
    all have the same value, tied packs have equally many of them; then the cap is the largest of the other values. Only
    values up to the cap count in the tolerance for ties.
    """
    values = np.maximum(values, 0.0)
    decisions = np.zeros(values.shape)
    with np.errstate(over="ignore"):
        while True:
            values[(loads > rooms[:, None, :]).any(axis=2)] = 0.0
            ranked = np.sort(values, axis=1)
            outweighs = ranked > MORE * (np.cumsum(ranked, axis=1) - ranked)
            bars = np.where(outweighs, ranked, 0.0).max(axis=1, keepdims=True)
            top = (values >= bars) & (bars > 0.0)
            left = rooms - (top[:, :, None] * loads).sum(axis=1)
            packed = top & (left >= 0.0).all(axis=1, keepdims=True)
            if not packed.any():
                break
            decisions[packed], values[packed] = 1.0, 0.0
            rooms = np.where(packed.any(axis=1, keepdims=True), left, rooms)
        rest = np.where(top, 0.0, values)
        most = ranked[:, -1]
        alike = (most == bars[:, 0]) & (most > 2.0 * rest.sum(axis=1)) & rest.any(axis=1)
    caps = np.where(alike, rest.max(axis=1), most)
    # Scale values so that the cap is near 1, if that is possible, by powers of two, which round nothing.
    exponents = np.maximum(np.frexp(caps)[1], np.frexp(most)[1] - 300)
    return decisions, np.ldexp(values, -exponents[:, None]), rooms, np.ldexp(caps, -exponents)


@kernel(_nrt=False)
def _search_rows(
    values: FloatArray, loads: FloatArray, rooms: FloatArray, caps: FloatArray, decisions: FloatArray, row: State
) -> int:
    """Add the best pack of each row to its decisions; return the first row that was not solved, or -1.

    Ask: the best pack, then a tie with each item.
    Relax: prices, loss, limit, item to branch on.
    Depth first: a pack, none, or too long.
    Branch: take the item, later leave it.
    Fix: what the answer says of the item.
    """
    low = row.low
    high = row.high
    steps = row.steps
    items = row.items
    branches = row.branches
    for i in range(len(values)):
        n, total = _start_row(values[i], loads, rooms[i], caps[i], row)
        # First find the best pack, by improvements above rounding. Then, item by item, look for a pack that is tied
        # with it and also has this item.
        ease, tolerance = -TIE / 10 * total, 0.0
        divisor = common_divisor(row.terms)
        if divisor > -ease:
            ease = -0.999 * divisor
        for item in range(-1, n):
            if item >= 0:
                low[item] = 1.0
                if decisions[i, items[item]] > 0.0:
                    continue
                ease, tolerance = TIE * total, TIE
            depth = 0
            state = OPEN
            while steps[0] >= 0:
                steps[0] -= RELAXATION
                loss, limit, split = relax(row, n, ease)
                state = CLOSED
                if loss <= limit:
                    state = LEAF
                    level = np.int64(0)
                    count = _prepare_depth_first(row, n, loss)
                    while state == LEAF:
                        state, level = _search_depth_first(row, count, level, limit)
                        if state == LEAF and _accept(row, n, tolerance):
                            break
                if state == LEAF:
                    for j in range(n):
                        decisions[i, items[j]] = row.take[j]
                    if item >= 0:
                        break
                    for j in range(n):
                        row.best[j] = row.take[j]
                    for d in range(len(row.left)):
                        row.left[d] = row.rooms[count, d]
                elif state == OPEN:
                    low[split] = 1.0
                    branches[depth] = split
                    depth += 1
                else:
                    while depth > 0 and high[branches[depth - 1]] == 0.0:
                        depth -= 1
                        high[branches[depth]] = 1.0
                    if depth == 0:
                        break
                    low[branches[depth - 1]] = high[branches[depth - 1]] = 0.0
            for j in range(depth):
                low[branches[j]] = 0.0
                high[branches[j]] = 1.0
            if item >= 0 and state != LEAF:
                low[item] = high[item] = 0.0
        if steps[0] < 0:
            return i
    return -1


@kernel(inner=True, _nrt=False)
def _start_row(values: FloatArray, loads: FloatArray, room: FloatArray, cap: float, row: State) -> tuple[int, float]:
    """Set the state of a new row: all items of positive value are free, the slacks are the basis.

    Return the number of these items, and the sum of the values up to the cap.
    """
    tableau = row.tableau
    m, k = loads.shape
    n = 0
    total = 0.0
    for item in range(m):
        value = values[item]
        row.terms[item] = value if value <= cap else 0.0
        total += row.terms[item]
        if value > 0.0:
            row.items[n] = item
            row.values[n] = tableau[k, n] = value
            row.best[n] = 0.0
            row.order[n] = n
            for d in range(k):
                row.loads[n, d] = tableau[d, n] = loads[item, d]
            n += 1
    for column in range(n + k):
        row.at[column] = row.low[column] = 0.0
        row.high[column] = 1.0 if column < n else np.inf
    for d in range(k):
        for i in range(k + 1):
            tableau[i, n + d] = 1.0 if i == d else 0.0
        row.basis[d] = n + d
        row.room[d] = row.left[d] = tableau[d, n + k] = room[d]
    tableau[k, n + k] = 0.0
    return n, total


@kernel(inner=True, _nrt=False)
def _prepare_depth_first(row: State, n: int, loss: float) -> int:
    """Order the free items by decreasing absolute profit for the depth-first search, and return their number."""
    order = row.order
    profits = row.profits
    for i in range(1, n):  # insertion sort: fast, since the prices change little from one call to the next
        item = order[i]
        place = i
        while place > 0 and abs(profits[order[place - 1]]) < abs(profits[item]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = item
    count = 0
    for j in range(n):
        item = order[j]
        row.take[item] = row.low[item]
        row.tries[j] = 0
        if row.low[item] < row.high[item]:
            row.free[count] = item
            count += 1
    row.tries[n] = 0
    row.losses[0] = loss
    for d in range(len(row.room)):
        rest = 0.0
        for level in range(count - 1, -1, -1):
            row.rests[level, d] = rest
            rest += row.loads[row.free[level], d]
    return count


@kernel(inner=True, _nrt=False)
def _search_depth_first(row: State, count: int, level: int, limit: float) -> tuple[int, int]:
    """Search the free items depth first at the current prices, starting at a level; return the result and the level."""
    tries = row.tries
    for _ in range(DEPTH_FIRST_STEPS):
        row.steps[0] -= 1
        if level < 0:
            return CLOSED, level
        attempt = tries[level]
        if attempt == 2:
            tries[level] = 0
            level -= 1
        elif level == count:
            tries[level] = 2
            return LEAF, level
        else:
            # First try the choice that the prices suggest, then the other one.
            tries[level] = attempt + 1
            item = row.free[level]
            profit = row.profits[item]
            take = 1.0 if (profit > 0.0) == (attempt == 0) else 0.0
            loss = row.losses[level] + abs(profit) * attempt
            row.take[item] = take
            row.losses[level + 1] = loss
            for d in range(len(row.prices)):
                left = row.rooms[level, d] - row.loads[item, d] * take
                row.rooms[level + 1, d] = left
                waste = left - row.rests[level, d]
                if left < 0.0:
                    loss = np.inf
                elif waste > 0.0:
                    loss += row.prices[d] * waste
            level += loss <= limit
    return OPEN, level


@kernel(inner=True, _nrt=False)
def _accept(row: State, n: int, tolerance: float) -> bool:
    """Return whether the current pack is tied with the best one or, if the tolerance is 0, better."""
    count = np.int64(0)
    for item in range(n):
        difference = row.best[item] - row.take[item]
        if difference != 0.0:
            row.terms[count] = row.values[item] * difference if tolerance > 0.0 else row.values[item] * -difference
            count += 1
    return is_tie(row.terms, count, tolerance) == (tolerance > 0.0)
