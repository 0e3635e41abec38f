"""The large knapsack: branch and bound, row by row.

For any prices `u >= 0` of the room, reduced profits `p = v - a u` with loads `a`, and any pack `x`,

    v·x = sum(u) + sum(p+) - loss(x),   loss(x) = sum of |p_i| where x differs from [p > 0] + u·(room that x leaves).

So a pack beats the best one so far exactly if it loses less, and what both have in common drops out: large values that
demand an item blur nothing. The losses only grow as items are decided, so a depth-first search, dearest deviation
first, closes quickly when the prices are those of the linear relaxation. Where it does not, the search branches on an
item that the relaxation splits, prices again and dives again. Prices that are off only slow the search down.
"""

from __future__ import annotations

import numpy as np

from decidewise.checks import FloatArray
from decidewise.problems.knapsack.enumeration import ROOM, TIE
from decidewise.problems.knapsack.relaxation import IntArray, State, make_state, relax
from decidewise.problems.rounding.common_divisor import common_divisor
from decidewise.problems.rounding.ties import is_tie
from decidewise.runtime.kernels import kernel

#: Steps of one dive before it is cheaper to branch and price again.
DIVE = 20_000
#: What one relaxation costs, in steps of a dive.
RELAXATION = 500
#: How much more than all smaller values together is more than any rounding of them.
MORE = 1.0 + 1e-9
#: What comes of a dive: no pack is left, a pack is in hand, or it takes too long.
CLOSED, LEAF, OPEN = 0, 1, 2


def search_packs(values: FloatArray, loads: FloatArray, steps: IntArray) -> tuple[FloatArray, int]:
    """Return the best pack of each row of values (n, items), and the first row that was not solved, or -1.

    All rows together may take `steps[0]` steps, which are counted down there.
    """
    decisions, values, rooms, caps = _settle(values, loads)
    m, k = loads.shape
    return decisions, _search_rows(values, loads, rooms, caps, decisions, make_state(m, k, steps))


def _settle(values: FloatArray, loads: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Pack what outweighs all the rest; return these packs, the other values, the room left and a cap on what matters.

    If the most valuable items are worth more, each, than all the others together, and fit, every best pack has them.
    So neither they nor what then has no room take part in the search. If they do not fit, but are worth the same, then
    tied packs have as many of them, and what matters are the others.
    """
    values = np.maximum(values, 0.0)
    decisions = np.zeros(values.shape)
    rooms = np.full((len(values), loads.shape[1]), ROOM)
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
    # In units in which the cap is near 1, as far as that is possible: powers of two, so that nothing is rounded.
    exponents = np.maximum(np.frexp(caps)[1], np.frexp(most)[1] - 300)
    return decisions, np.ldexp(values, -exponents[:, None]), rooms, np.ldexp(caps, -exponents)


@kernel(_nrt=False)
def _search_rows(
    values: FloatArray, loads: FloatArray, rooms: FloatArray, caps: FloatArray, decisions: FloatArray, row: State
) -> int:
    """Add the best pack of each row to its decisions; return the first row that was not solved, or -1."""
    low = row.low
    high = row.high
    steps = row.steps
    items = row.items
    branches = row.branches
    for i in range(len(values)):
        n, total = _open(values[i], loads, rooms[i], caps[i], row)
        # First the best pack, by improvements that matter. Then, item by item, a pack that is tied with it and has the
        # item too, if there is any.
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
                    count = _plan(row, n, loss)
                    while state == LEAF:
                        state, level = _dive(row, count, level, limit)
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
def _open(values: FloatArray, loads: FloatArray, room: FloatArray, cap: float, row: State) -> tuple[int, float]:
    """Start with the items of positive value free, the slacks as the basis; return their number and what matters."""
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
def _plan(row: State, n: int, loss: float) -> int:
    """Prepare a dive through the free items, dearest deviation first, and return their number."""
    order = row.order
    profits = row.profits
    for i in range(1, n):  # quick, since prices change little from one dive to the next
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
def _dive(row: State, count: int, level: int, limit: float) -> tuple[int, int]:
    """Search the free items depth first at the present prices, from a level on; return the state, and the level."""
    tries = row.tries
    for _ in range(DIVE):
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
            # First what the prices suggest, then the deviation from it.
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
    """Whether the pack in hand is tied with the best, or, without a tolerance, better."""
    count = np.int64(0)
    for item in range(n):
        difference = row.best[item] - row.take[item]
        if difference != 0.0:
            row.terms[count] = row.values[item] * difference if tolerance > 0.0 else row.values[item] * -difference
            count += 1
    return is_tie(row.terms, count, tolerance) == (tolerance > 0.0)
