"""The steps of a walk from vertex to vertex of a linear program, compiled: see `decidewise.solvers.vertex_walks`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.solvers.settled_vertex import PIVOT, Entries

# Sums may be taken in any order, which lets the compiler use vector instructions.
SETTINGS: dict = {"error_model": "numpy", "fastmath": {"reassoc", "contract"}}
# Steps own no arrays: without counting references to those of the walk they take no time beside their work. The loop
# of steps is inlined, since nothing else calls it.
inlined = kernel(**SETTINGS, inline="always")
inner = kernel(**SETTINGS, inner=True, _nrt=False)

#: Reduced costs above this keep their sign through all that a solver leaves undone below its tolerance.
CLEAR = 1e-6
#: Where the costs that could break a tie are shorter than this, there is none: they decide at their own scale.
SMALL = 1e-3
#: Reduced costs up to this part of the terms that they are sums of count as zero: rounding leaves that much.
_NOISE = 1e-12
_LEAST = 1e-16  # smaller terms are rounding themselves, of costs of unit length
_ROUNDING = 1e-10
_MOST_ROUNDS = 4  # of pricing


class Walk(NamedTuple):
    """What a walk is made of: the program, the basis where it stands, and room to work in; for one row after another.

    Variables come first and rows after them, (n + m,); what belongs to the basis has its order, (m,).
    """

    matrix: Entries
    lower: FloatArray  # (n + m,), as all up to `is_basic`
    upper: FloatArray
    x: FloatArray
    costs: FloatArray
    reduced: FloatArray
    weights: FloatArray  # of Devex pricing
    along: FloatArray  # the row of the leaving variable
    held: BoolArray  # at its value in every optimal point
    is_basic: BoolArray
    basic: IntArray  # (m,), as the next three
    column: FloatArray  # of the entering variable, in the basis
    priced: FloatArray
    terms: FloatArray  # the sizes of what duals are sums of
    inverse: FloatArray  # (m, m), transposed


@inlined
def descend(walk, steps, has_moved):  # type: ignore[no-untyped-def]
    """Walk to an optimal vertex; return whether it is one, the steps so far, and whether a vertex was left."""
    m, n = len(walk.basic), len(walk.x) - len(walk.basic)
    x, lower, upper = walk.x, walk.lower, walk.upper
    for j in range(n + m):
        walk.weights[j] = 1.0
    is_exact, is_fresh = _price(walk), True
    while True:
        entering = _steepest(walk)
        if entering < 0:
            if is_fresh:
                return is_exact, steps, has_moved
            is_exact, is_fresh = _price(walk), True
            continue
        _fill_column(walk, entering)
        sign = 1.0 if walk.reduced[entering] < 0.0 else -1.0
        length, leaving = _ratio_test(walk, entering, sign)
        steps += 1
        is_unsafe = leaving >= 0 and abs(walk.column[leaving]) < PIVOT
        if not np.isfinite(length) or is_unsafe or steps > 4 * m + 50:
            return False, steps, has_moved
        has_moved |= length > 0.0
        _move(walk, entering, sign, length)
        if leaving < 0:
            x[entering] = upper[entering] if sign > 0.0 else lower[entering]
        else:
            j = walk.basic[leaving]
            x[j] = lower[j] if sign * walk.column[leaving] > 0.0 else upper[j]
            walk.is_basic[j], walk.is_basic[entering], is_fresh = False, True, False
            _exchange(walk, entering, leaving)


@inner
def _price(walk):  # type: ignore[no-untyped-def]
    """Write the reduced costs (n + m,) as the program defines them; return whether those of the basis are zero.

    That of a row is its dual, and `terms` (m,) are the sizes of what it is a sum of. Each round takes away what
    rounding left in the one before.
    """
    matrix, inverse, basic, costs = walk.matrix, walk.inverse, walk.basic, walk.costs
    priced, reduced, terms = walk.priced, walk.reduced, walk.terms
    m = len(basic)
    n = len(reduced) - m
    for k in range(m):
        priced[k] = costs[basic[k]]
    for i in range(m):
        reduced[n + i] = terms[i] = 0.0
        for k in range(m):
            terms[i] += abs(priced[k] * inverse[i, k])
    for _ in range(_MOST_ROUNDS):
        for i in range(m):
            total = 0.0
            for k in range(m):
                total += priced[k] * inverse[i, k]
            reduced[n + i] += total
        for j in range(n):
            slope = costs[j]
            for entry in range(matrix.column_starts[j], matrix.column_starts[j + 1]):
                slope -= matrix.column_values[entry] * reduced[n + matrix.column_rows[entry]]
            reduced[j] = slope
        is_exact = True
        for k in range(m):
            priced[k] = reduced[basic[k]]
            if priced[k] != 0.0 and is_exact:
                is_exact = abs(priced[k]) <= 0.1 * _noise(walk, basic[k])
        if is_exact:
            return True
    return False


@inner
def _noise(walk, j):  # type: ignore[no-untyped-def]
    """Return up to which size the reduced cost of a variable or row `j` counts as zero."""
    matrix, terms = walk.matrix, walk.terms
    n = len(walk.costs) - len(terms)
    if j >= n:
        return _NOISE * (_LEAST + terms[j - n])
    size = _LEAST + abs(walk.costs[j])
    for entry in range(matrix.column_starts[j], matrix.column_starts[j + 1]):
        size += abs(matrix.column_values[entry]) * terms[matrix.column_rows[entry]]
    return _NOISE * size


@inner
def _steepest(walk):  # type: ignore[no-untyped-def]
    """Return the variable or row along which the cost falls fastest, by Devex weights; -1 if there is none."""
    x, reduced, weights = walk.x, walk.reduced, walk.weights
    entering, steepest = -1, 0.0
    for j in range(len(x)):
        slope = reduced[j]
        if walk.is_basic[j] or walk.held[j] or slope * slope <= steepest * weights[j]:
            continue
        if not ((slope < 0.0 and x[j] < walk.upper[j]) or (slope > 0.0 and x[j] > walk.lower[j])):
            continue
        if abs(slope) > CLEAR or abs(slope) > _noise(walk, j):
            entering, steepest = j, slope * slope / weights[j]
    return entering


@inner
def _fill_column(walk, entering):  # type: ignore[no-untyped-def]
    """Write the column of the entering variable or row in the basis."""
    matrix, inverse, column = walk.matrix, walk.inverse, walk.column
    m, n = len(column), len(walk.x) - len(column)
    if entering >= n:
        for k in range(m):
            column[k] = -inverse[entering - n, k]
        return
    for k in range(m):
        column[k] = 0.0
    for entry in range(matrix.column_starts[entering], matrix.column_starts[entering + 1]):
        i = matrix.column_rows[entry]
        for k in range(m):
            column[k] += matrix.column_values[entry] * inverse[i, k]


@inner
def _ratio_test(walk, entering, sign):  # type: ignore[no-untyped-def]
    """Return how far the entering variable can go, and the place of the basic one that stops it, -1 if none does.

    Of several that stop it at once, the one with the largest pivot.
    """
    x, lower, upper = walk.x, walk.lower, walk.upper
    length, leaving, pivot = upper[entering] - lower[entering], -1, 0.0
    for k in range(len(walk.basic)):
        rate = sign * walk.column[k]
        if abs(rate) <= _ROUNDING:
            continue
        j = walk.basic[k]
        room = max(0.0, (x[j] - lower[j]) / rate if rate > 0.0 else (x[j] - upper[j]) / rate)
        if room < length or (room == length and abs(rate) > pivot):
            length, leaving, pivot = room, k, abs(rate)
    return length, leaving


@inner
def _move(walk, entering, sign, length):  # type: ignore[no-untyped-def]
    """Move the entering variable, and with it the basic ones."""
    for k in range(len(walk.basic)):
        walk.x[walk.basic[k]] -= length * sign * walk.column[k]
    walk.x[entering] += sign * length


@inner
def _exchange(walk, entering, leaving):  # type: ignore[no-untyped-def]
    """Exchange the basic variable at place `leaving`: update the inverse, the reduced costs and the weights."""
    matrix, inverse, basic, column = walk.matrix, walk.inverse, walk.basic, walk.column
    along, reduced, weights = walk.along, walk.reduced, walk.weights
    m = len(basic)
    n = len(reduced) - m
    pivot = column[leaving]
    for j in range(n):
        along[j] = 0.0
    for i in range(m):
        factor = inverse[i, leaving]
        along[n + i] = -factor
        if factor != 0.0:
            for entry in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
                along[matrix.row_columns[entry]] += factor * matrix.row_values[entry]
            factor /= pivot
            for k in range(m):
                inverse[i, k] -= factor * column[k]
            inverse[i, leaving] = factor
    slope, weight = reduced[entering] / pivot, weights[entering] / (pivot * pivot)
    for j in range(n + m):
        reduced[j] -= slope * along[j]
        weights[j] = max(weights[j], along[j] * along[j] * weight)
    out = basic[leaving]
    reduced[entering], reduced[out] = 0.0, -slope
    weights[out] = max(weight, 1.0)
    basic[leaving] = entering


@inner
def hold(walk):  # type: ignore[no-untyped-def]
    """Hold what every optimal point has at its value, and return whether anything is tied."""
    is_tied, reduced, held = False, walk.reduced, walk.held
    for j in range(len(walk.x)):
        if not walk.is_basic[j] and not held[j]:
            slope = abs(reduced[j])
            held[j] = walk.lower[j] == walk.upper[j] or slope > CLEAR or slope > _noise(walk, j)
            is_tied |= not held[j]
    return is_tied


@inner
def next_costs(walk, preference):  # type: ignore[no-untyped-def]
    """Let the costs of what is not held decide at their own scale; if they have none, let the preference: return so."""
    costs, held, n, left = walk.costs, walk.held, len(preference), 0.0
    for j in range(n):
        left += 0.0 if held[j] else costs[j] * costs[j]
    is_last = left == 0.0 or left >= SMALL * SMALL
    for j in range(n):
        costs[j] = preference[j] if is_last else 0.0 if held[j] else costs[j] / np.sqrt(left)
    return is_last


@inner
def is_feasible(walk):  # type: ignore[no-untyped-def]
    """Return whether the values of rows are those of the variables, and all are within their bounds."""
    matrix, x = walk.matrix, walk.x
    m, n, holds = len(walk.basic), len(x) - len(walk.basic), True
    for i in range(m):
        total, scale = 0.0, 1.0
        for entry in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
            term = matrix.row_values[entry] * x[matrix.row_columns[entry]]
            total += term
            scale += abs(term)
        holds &= abs(total - x[n + i]) <= _ROUNDING * scale
    for j in range(n + m):
        near = _ROUNDING * (1.0 + abs(x[j]))
        holds &= walk.lower[j] - x[j] <= near and x[j] - walk.upper[j] <= near
    return holds
