"""Optimal vertices of a linear program from those known already: a walk from vertex to vertex, compiled.

Predictions of a model change little from row to row and from epoch to epoch, so the optimum of a row is a known vertex,
or some steps of the simplex method away from the best of them. Each vertex is kept with the inverse of its basis, from
which a walk starts at once. Where a walk ends is checked against the program itself, so that rounding on the way cannot
make an answer wrong: what fails the check is left to another solver. The vertex is then computed once more from the
bounds that it touches, so that it is the same to the last bit, whatever the way.
"""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.solvers.program import Program
from decidewise.solvers.settled_vertex import PIVOT, Entries, settle

# Sums may be taken in any order, which lets the compiler use vector instructions.
_settings: dict = {"error_model": "numpy", "fastmath": {"reassoc", "contract"}}

#: Reduced costs above this keep their sign through all that a solver leaves undone below its tolerance.
CLEAR = 1e-6
#: Where the costs that could break a tie are shorter than this, there is none: they decide at their own scale.
SMALL = 1e-3
#: Reduced costs up to this part of the terms that they are sums of count as zero: rounding leaves that much.
_NOISE = 1e-12
_LEAST = 1e-16  # smaller terms are rounding themselves, of costs of unit length
_MOST_VERTICES = 1024
_MOST_ENTRIES = 2**23  # of all inverses
_MOST_ROWS, _MOST_NONZEROS = 400, 2**17  # beyond this a solver that keeps sparse factors takes a step in less time
_ROUNDING = 1e-10
_MOST_ROUNDS = 4  # of pricing
_MOST_SCALES = 8


class VertexWalks:
    """The vertices known so far, and walks from them.

    Ties: of all optimal vertices the one with the least `preference·w`. A reduced cost counts as zero if it is at most
    1e-12 of the terms that it is a sum of, and not if it is merely small beside the largest cost: so the vertex does
    not depend on where a walk starts, however far apart the costs of a row are.

    Parameters
    ----------
    program : Program
        Which is not too large: see `fits`.
    matrix : Entries
        Those of the program.
    preference : ndarray of shape (n,)
    most : int
        How many vertices to keep, if there is room.
    """

    def __init__(
        self, program: Program, matrix: Entries, preference: FloatArray, *, most: int = _MOST_VERTICES
    ) -> None:
        m, n = program.A.shape
        size = max(1, min(most, _MOST_ENTRIES // max(m * m, n + m)))
        self._matrix = matrix
        self._columns = program.A
        self._lower = np.concatenate([program.lower, program.row_lower])
        self._upper = np.concatenate([program.upper, program.row_upper])
        self._preference = preference
        self._inverses, self._bases = np.empty((size, m, m)), np.empty((size, m), np.int64)  # inverses are transposed
        self._points = np.empty((n + m, size))  # one column per vertex, so that all are priced in one pass
        self._count = np.zeros(2, np.int64)  # vertices known, and the place of the next

    @staticmethod
    def fits(program: Program, most_rows: int = _MOST_ROWS) -> bool:
        """Whether a program is small enough for steps with a dense inverse."""
        m, n = program.A.shape
        return 0 < m <= most_rows and program.A.nnz + n + m <= _MOST_NONZEROS

    def minimize(self, units: FloatArray, vertices: FloatArray) -> IntArray:
        """Write the optimal vertices (r, n) of rows of unit length (r, n), and return the rows that are left."""
        return self._walk(units, vertices, -1) if self._count[0] else np.arange(len(units))

    def minimize_from(
        self, unit: FloatArray, point: FloatArray, basic: IntArray, lower: FloatArray, upper: FloatArray
    ) -> FloatArray | None:
        """Return the optimal vertex (n,) of one row (n,) within the bounds (n + m,), or None if the walk fails.

        It starts from a settled vertex, as for `add`. Where bounds change, the vertices known are of no more use.
        """
        self._lower, self._upper = lower, upper
        place = self.add(point, basic)
        vertex = np.empty((1, len(unit)))
        return vertex[0] if place >= 0 and not len(self._walk(unit[np.newaxis], vertex, place)) else None

    def _walk(self, units: FloatArray, vertices: FloatArray, start: int) -> IntArray:
        solved = np.zeros(len(units), np.bool_)
        _walk(
            units, self._matrix, self._lower, self._upper, self._preference,
            self._inverses, self._bases, self._points, self._count, vertices, solved, start,
        )  # fmt: skip
        return np.flatnonzero(~solved)

    def add(self, point: FloatArray, basic: IntArray) -> int:
        """Add a settled vertex (n + m,), with the variables and rows that form its basis (m,).

        Return its place, or -1 if the basis has no inverse.
        """
        m, n = self._columns.shape
        basis = np.zeros((m, m))
        is_row = basic >= n
        basis[basic[is_row] - n, np.flatnonzero(is_row)] = -1.0
        basis[:, ~is_row] = self._columns[:, basic[~is_row]].toarray()
        try:
            inverse = np.linalg.inv(basis)
        except np.linalg.LinAlgError:
            return -1
        known, place = map(int, self._count)
        self._inverses[place], self._bases[place], self._points[:, place] = inverse.T, basic, point
        self._count[:] = min(known + 1, len(self._bases)), (place + 1) % len(self._bases)
        return place


@kernel(**_settings, inner=True)
def _price(matrix, inverse, basic, costs, priced, reduced, terms):  # type: ignore[no-untyped-def]
    """Write the reduced costs (n + m,) as the program defines them; return whether those of the basis are zero.

    That of a row is its dual, and `terms` (m,) are the sizes of what it is a sum of. Each round takes away what
    rounding left in the one before.
    """
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
                is_exact = abs(priced[k]) <= 0.1 * _noise(matrix, costs, terms, basic[k])
        if is_exact:
            return True
    return False


@kernel(**_settings, inner=True)
def _noise(matrix, costs, terms, j):  # type: ignore[no-untyped-def]
    """Return up to which size the reduced cost of a variable or row `j` counts as zero."""
    n = len(costs) - len(terms)
    if j >= n:
        return _NOISE * (_LEAST + terms[j - n])
    size = _LEAST + abs(costs[j])
    for entry in range(matrix.column_starts[j], matrix.column_starts[j + 1]):
        size += abs(matrix.column_values[entry]) * terms[matrix.column_rows[entry]]
    return _NOISE * size


@kernel(**_settings, inner=True)
def _exchange(matrix, inverse, basic, entering, leaving, column, along, reduced, weights):  # type: ignore[no-untyped-def]
    """Exchange the basic variable at place `leaving`, given the `column` (m,) of the entering one in the basis.

    `along` (n + m,) is room for the row of the leaving variable. The weights are those of Devex pricing.
    """
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


@kernel(**_settings)
def _walk(  # type: ignore[no-untyped-def]
    units, matrix, lower, upper, preference, inverses, bases, points, count, vertices, solved, first
):
    m, n = bases.shape[1], units.shape[1]
    size = n + m
    inverse, basic, column = np.empty((m, m)), np.empty(m, np.int64), np.empty(m)
    priced, terms = np.empty(m), np.empty(m)
    x, costs, reduced, along, weights = np.empty(size), np.zeros(size), np.empty(size), np.empty(size), np.empty(size)
    held, is_basic = np.empty(size, np.bool_), np.empty(size, np.bool_)
    values, system = np.empty(len(bases)), np.empty((m, m + 1))
    tight, place_of = np.empty(m, np.int64), np.empty(size, np.int64)
    for row in range(len(units)):
        known, start = count[0], first
        if first < 0:
            start = 0
            values[:known] = 0.0
            for j in range(n):
                cost = units[row, j]
                if cost != 0.0:
                    for k in range(known):
                        values[k] += cost * points[j, k]
            for k in range(known):
                if values[k] < values[start]:
                    start = k
        for i in range(m):
            basic[i] = bases[start, i]
            for k in range(m):
                inverse[i, k] = inverses[start, i, k]
        for j in range(size):
            x[j] = points[j, start]
            is_basic[j] = held[j] = False
        for i in range(m):
            is_basic[basic[i]] = True
        for j in range(n):
            costs[j] = units[row, j]
        steps, has_moved, is_last, done = 0, False, False, False
        for _ in range(_MOST_SCALES):
            for j in range(size):
                weights[j] = 1.0
            is_exact = _price(matrix, inverse, basic, costs, priced, reduced, terms)
            is_fresh, stuck = True, False
            while True:
                entering, steepest = -1, 0.0
                for j in range(size):
                    slope = reduced[j]
                    if is_basic[j] or held[j] or slope * slope <= steepest * weights[j]:
                        continue
                    if not ((slope < 0.0 and x[j] < upper[j]) or (slope > 0.0 and x[j] > lower[j])):
                        continue
                    if abs(slope) > CLEAR or abs(slope) > _noise(matrix, costs, terms, j):
                        entering, steepest = j, slope * slope / weights[j]
                if entering < 0:
                    if is_fresh:
                        break
                    is_exact = _price(matrix, inverse, basic, costs, priced, reduced, terms)
                    is_fresh = True
                    continue
                if entering < n:
                    for k in range(m):
                        column[k] = 0.0
                    for entry in range(matrix.column_starts[entering], matrix.column_starts[entering + 1]):
                        i = matrix.column_rows[entry]
                        for k in range(m):
                            column[k] += matrix.column_values[entry] * inverse[i, k]
                else:
                    for k in range(m):
                        column[k] = -inverse[entering - n, k]
                sign = 1.0 if reduced[entering] < 0.0 else -1.0
                length, leaving, pivot = upper[entering] - lower[entering], -1, 0.0
                for k in range(m):
                    rate = sign * column[k]
                    if abs(rate) <= _ROUNDING:
                        continue
                    j = basic[k]
                    room = max(0.0, (x[j] - lower[j]) / rate if rate > 0.0 else (x[j] - upper[j]) / rate)
                    if room < length or (room == length and abs(rate) > pivot):
                        length, leaving, pivot = room, k, abs(rate)
                steps += 1
                if not np.isfinite(length) or (leaving >= 0 and pivot < PIVOT) or steps > 4 * m + 50:
                    stuck = True
                    break
                has_moved |= length > 0.0
                for k in range(m):
                    x[basic[k]] -= length * sign * column[k]
                x[entering] += sign * length
                if leaving < 0:
                    x[entering] = upper[entering] if sign > 0.0 else lower[entering]
                    continue
                j = basic[leaving]
                x[j] = lower[j] if sign * column[leaving] > 0.0 else upper[j]
                is_basic[j], is_basic[entering], is_fresh = False, True, False
                _exchange(matrix, inverse, basic, entering, leaving, column, along, reduced, weights)
            if stuck or not is_exact:
                break
            if is_last:
                done = True
                break
            is_tied, left = False, 0.0
            for j in range(size):
                if not is_basic[j] and not held[j]:
                    slope = abs(reduced[j])
                    held[j] = lower[j] == upper[j] or slope > CLEAR or slope > _noise(matrix, costs, terms, j)
                    is_tied |= not held[j]
            if not is_tied:
                done = True
                break
            for j in range(n):
                left += 0.0 if held[j] else costs[j] * costs[j]
            is_last = left == 0.0 or left >= SMALL * SMALL
            for j in range(n):
                costs[j] = preference[j] if is_last else 0.0 if held[j] else costs[j] / np.sqrt(left)
        if done and steps > 0:
            done = settle(matrix, lower, upper, x, system, tight, place_of)
        if not done:
            continue
        for i in range(m):
            total, scale = 0.0, 1.0
            for entry in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
                term = matrix.row_values[entry] * x[matrix.row_columns[entry]]
                total += term
                scale += abs(term)
            done &= abs(total - x[n + i]) <= _ROUNDING * scale
        for j in range(size):
            near = _ROUNDING * (1.0 + abs(x[j]))
            done &= lower[j] - x[j] <= near and x[j] - upper[j] <= near
        if not done:
            continue
        solved[row] = True
        for j in range(n):
            vertices[row, j] = x[j]
        if steps > 0:
            place = start  # another basis of the same vertex replaces the one that was not optimal
            if has_moved:
                place = count[1]
                count[0], count[1] = min(known + 1, len(bases)), (place + 1) % len(bases)
            for i in range(m):
                bases[place, i] = basic[i]
                for k in range(m):
                    inverses[place, i, k] = inverse[i, k]
            for j in range(size):
                points[j, place] = x[j]
