"""Optimal vertices of a linear program from those known already: a walk from vertex to vertex, compiled.

Predictions of a model change little from row to row and from epoch to epoch, so the optimum of a row is a known vertex,
or some steps of the simplex method away from the best of them. Each vertex is kept with the inverse of its basis, from
which a walk starts at once. Where a walk ends is checked against the program itself, so that rounding on the way cannot
make an answer wrong: what fails the check is left to another solver. The vertex is then computed once more from the
bounds that it touches, so that it is the same to the last bit, whatever the way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.polyhedra.program import Program
from decidewise.polyhedra.settled_vertex import PIVOT, Entries, IntArray, settle
from decidewise.runtime.kernels import kernel

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


class _Region(NamedTuple):
    """The constraints, and the bounds of variables and rows (n + m,)."""

    matrix: Entries
    lower: FloatArray
    upper: FloatArray


class _Known(NamedTuple):
    """The vertices known: transposed inverses (size, m, m), bases (size, m) and points (n + m, size).

    A vertex is a column of the points, so that all are priced in one pass. `count` has how many are known, and the
    place of the next.
    """

    inverses: FloatArray
    bases: IntArray
    points: FloatArray
    count: IntArray


class _State(NamedTuple):
    """Where a walk stands, and room to work; over variables and rows (n + m,), or over the places of a basis (m,)."""

    inverse: FloatArray  # (m, m), transposed
    basic: IntArray  # (m,)
    is_basic: npt.NDArray[np.bool_]
    held: npt.NDArray[np.bool_]  # by a reduced cost of a larger scale, in every optimal point
    x: FloatArray
    costs: FloatArray  # of the present scale, those of rows zero
    reduced: FloatArray
    terms: FloatArray  # (m,), the sizes of what the dual of a row is a sum of
    weights: FloatArray  # of Devex pricing
    column: FloatArray  # (m,), of the entering variable in the basis
    along: FloatArray  # the row of the leaving variable
    priced: FloatArray  # (m,), the costs of the basis that are not yet in the duals


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
        self._columns = program.A
        self._region = _Region(matrix, program.all_lower, program.all_upper)
        self._preference = preference
        self._known = _Known(
            np.empty((size, m, m)), np.empty((size, m), np.int64), np.empty((n + m, size)), np.zeros(2, np.int64)
        )

    @staticmethod
    def fits(program: Program, most_rows: int = _MOST_ROWS) -> bool:
        """Whether a program is small enough for steps with a dense inverse."""
        m, n = program.A.shape
        return 0 < m <= most_rows and program.A.nnz + n + m <= _MOST_NONZEROS

    def minimize(self, units: FloatArray, vertices: FloatArray) -> IntArray:
        """Write the optimal vertices (r, n) of rows of unit length (r, n), and return the rows that are left."""
        return self._walk(units, vertices, -1) if self._known.count[0] else np.arange(len(units))

    def minimize_from(
        self, unit: FloatArray, point: FloatArray, basic: IntArray, lower: FloatArray, upper: FloatArray
    ) -> FloatArray | None:
        """Return the optimal vertex (n,) of one row (n,) within the bounds (n + m,), or None if the walk fails.

        It starts from a settled vertex, as for `add`. Where bounds change, the vertices known are of no more use.
        """
        self._region = self._region._replace(lower=lower, upper=upper)
        place = self.add(point, basic)
        vertex = np.empty((1, len(unit)))
        return vertex[0] if place >= 0 and not len(self._walk(unit[np.newaxis], vertex, place)) else None

    def _walk(self, units: FloatArray, vertices: FloatArray, start: int) -> IntArray:
        solved = np.zeros(len(units), np.bool_)
        _walk(units, self._region, self._preference, self._known, vertices, solved, start)
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
        known, (count, place) = self._known, map(int, self._known.count)
        known.inverses[place], known.bases[place], known.points[:, place] = inverse.T, basic, point
        known.count[:] = min(count + 1, len(known.bases)), (place + 1) % len(known.bases)
        return place


@kernel(**_settings)
def _walk(units, region, preference, known, vertices, solved, first):  # type: ignore[no-untyped-def]
    """Write the optimal vertex of each row of unit length, and which rows are solved.

    The steps, for each row: start from the best vertex known, or from place `first` if that is not negative. Descend to
    an optimal vertex (price, ratio test, move, exchange). Hold what its reduced costs hold, and descend again with the
    costs that are left at their own scale, at last with the preference, until nothing is tied. Settle the vertex, which
    gives its last bits; verify it against the program; remember it with its basis.
    """
    m, n = known.bases.shape[1], units.shape[1]
    size = n + m
    at = _State(
        np.empty((m, m)), np.empty(m, np.int64), np.empty(size, np.bool_), np.empty(size, np.bool_), np.empty(size),
        np.zeros(size), np.empty(size), np.empty(m), np.empty(size), np.empty(m), np.empty(size), np.empty(m),
    )  # fmt: skip
    values, system = np.empty(len(known.bases)), np.empty((m, m + 1))
    tight, place_of = np.empty(m, np.int64), np.empty(size, np.int64)
    for row in range(len(units)):
        start = first if first >= 0 else _best_known(units[row], known, values)
        _start(units[row], known, start, at)
        steps, has_moved, done = _descend_all_scales(region, preference, at)
        if done and steps > 0:
            done = settle(region.matrix, region.lower, region.upper, at.x, system, tight, place_of)
        if done and _is_kept(region, at.x):
            solved[row] = True
            for j in range(n):
                vertices[row, j] = at.x[j]
            if steps > 0:
                _remember(known, at, start, has_moved)


@kernel(**_settings, inner=True)
def _best_known(unit, known, values):  # type: ignore[no-untyped-def]
    """Return the place of the vertex known that costs least; `values` is room for what each costs."""
    best, count = 0, known.count[0]
    values[:count] = 0.0
    for j in range(len(unit)):
        cost = unit[j]
        if cost != 0.0:
            for k in range(count):
                values[k] += cost * known.points[j, k]
    for k in range(count):
        if values[k] < values[best]:
            best = k
    return best


@kernel(**_settings, inner=True)
def _start(unit, known, place, at):  # type: ignore[no-untyped-def]
    """Go to a vertex known, with the costs of a row."""
    m = len(at.basic)
    for j in range(len(at.x)):
        at.x[j] = known.points[j, place]
        at.is_basic[j] = at.held[j] = False
    for i in range(m):
        at.basic[i] = known.bases[place, i]
        at.is_basic[at.basic[i]] = True
        for k in range(m):
            at.inverse[i, k] = known.inverses[place, i, k]
    for j in range(len(unit)):
        at.costs[j] = unit[j]


@kernel(**_settings, inner=True)
def _descend_all_scales(region, preference, at):  # type: ignore[no-untyped-def]
    """Descend with the costs, then with what may break ties; return the steps, whether one moved, and if all is done."""
    steps, has_moved, is_last = 0, False, False
    for _ in range(_MOST_SCALES):
        steps, moved, is_optimal = _descend(region, at, steps)
        has_moved |= moved
        if not is_optimal:
            return steps, has_moved, False
        if is_last or not _hold(region, at):
            return steps, has_moved, True
        is_last = _set_next_costs(preference, at)
    return steps, has_moved, False


@kernel(**_settings, inner=True)
def _descend(region, at, steps):  # type: ignore[no-untyped-def]
    """Go from vertex to vertex until no reduced cost improves; return the steps, whether one moved, and if that ended.

    It does not if a step would have no end or too small a pivot, after too many steps, or where the reduced costs of
    the last basis are not exact.
    """
    m = len(at.basic)
    has_moved, is_fresh = False, True
    for j in range(len(at.x)):
        at.weights[j] = 1.0
    is_exact = _price(region.matrix, at)
    while True:
        entering = _entering(region, at)
        if entering < 0:
            if is_fresh:
                return steps, has_moved, is_exact
            is_exact = _price(region.matrix, at)  # what an exchange updates has rounding in it
            is_fresh = True
            continue
        _set_column(region.matrix, at, entering)
        sign = 1.0 if at.reduced[entering] < 0.0 else -1.0
        length, leaving, pivot = _ratio_test(region, at, entering, sign)
        steps += 1
        if not np.isfinite(length) or (leaving >= 0 and pivot < PIVOT) or steps > 4 * m + 50:
            return steps, has_moved, False
        has_moved |= length > 0.0
        _move(region, at, entering, leaving, sign, length)
        if leaving >= 0:
            _exchange(region.matrix, at, entering, leaving)
            is_fresh = False


@kernel(**_settings, inner=True)
def _price(matrix, at):  # type: ignore[no-untyped-def]
    """Set the reduced costs as the program defines them; return whether those of the basis are zero.

    That of a row is its dual. Each round takes away what rounding left in the one before.
    """
    inverse, basic, costs, reduced, terms, priced = at.inverse, at.basic, at.costs, at.reduced, at.terms, at.priced
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
def _entering(region, at):  # type: ignore[no-untyped-def]
    """Return the variable or row with the steepest reduced cost that improves and is not noise, or -1."""
    entering, steepest = -1, 0.0
    for j in range(len(at.x)):
        slope = at.reduced[j]
        if at.is_basic[j] or at.held[j] or slope * slope <= steepest * at.weights[j]:
            continue
        if not ((slope < 0.0 and at.x[j] < region.upper[j]) or (slope > 0.0 and at.x[j] > region.lower[j])):
            continue
        if abs(slope) > CLEAR or abs(slope) > _noise(region.matrix, at.costs, at.terms, j):
            entering, steepest = j, slope * slope / at.weights[j]
    return entering


@kernel(**_settings, inner=True)
def _set_column(matrix, at, entering):  # type: ignore[no-untyped-def]
    """Set `column` to that of the entering variable or row in the basis."""
    m = len(at.basic)
    n = len(at.x) - m
    if entering >= n:
        for k in range(m):
            at.column[k] = -at.inverse[entering - n, k]
        return
    for k in range(m):
        at.column[k] = 0.0
    for entry in range(matrix.column_starts[entering], matrix.column_starts[entering + 1]):
        i = matrix.column_rows[entry]
        for k in range(m):
            at.column[k] += matrix.column_values[entry] * at.inverse[i, k]


@kernel(**_settings, inner=True)
def _ratio_test(region, at, entering, sign):  # type: ignore[no-untyped-def]
    """Return the longest step, the place in the basis of what it takes to a bound, or -1, and the size of the pivot."""
    length, leaving, pivot = region.upper[entering] - region.lower[entering], -1, 0.0
    for k in range(len(at.basic)):
        rate = sign * at.column[k]
        if abs(rate) <= _ROUNDING:
            continue
        j = at.basic[k]
        room = max(0.0, (at.x[j] - region.lower[j]) / rate if rate > 0.0 else (at.x[j] - region.upper[j]) / rate)
        if room < length or (room == length and abs(rate) > pivot):
            length, leaving, pivot = room, k, abs(rate)
    return length, leaving, pivot


@kernel(**_settings, inner=True)
def _move(region, at, entering, leaving, sign, length):  # type: ignore[no-untyped-def]
    """Take a step; what leaves the basis, or goes from one bound to the other, is exactly at its bound."""
    for k in range(len(at.basic)):
        at.x[at.basic[k]] -= length * sign * at.column[k]
    at.x[entering] += sign * length
    if leaving < 0:
        at.x[entering] = region.upper[entering] if sign > 0.0 else region.lower[entering]
    else:
        j = at.basic[leaving]
        at.x[j] = region.lower[j] if sign * at.column[leaving] > 0.0 else region.upper[j]


@kernel(**_settings, inner=True)
def _exchange(matrix, at, entering, leaving):  # type: ignore[no-untyped-def]
    """Exchange the basic variable at place `leaving`, and update the inverse, reduced costs and weights."""
    inverse, column, along, reduced, weights = at.inverse, at.column, at.along, at.reduced, at.weights
    m = len(at.basic)
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
    out = at.basic[leaving]
    reduced[entering], reduced[out] = 0.0, -slope
    weights[out] = max(weight, 1.0)
    at.basic[leaving] = entering
    at.is_basic[out], at.is_basic[entering] = False, True


@kernel(**_settings, inner=True)
def _hold(region, at):  # type: ignore[no-untyped-def]
    """Hold what a reduced cost keeps at its bound in every optimal point; return whether anything is left to choose."""
    is_tied = False
    for j in range(len(at.x)):
        if not at.is_basic[j] and not at.held[j]:
            slope = abs(at.reduced[j])
            at.held[j] = (
                region.lower[j] == region.upper[j]
                or slope > CLEAR
                or slope > _noise(region.matrix, at.costs, at.terms, j)
            )
            is_tied |= not at.held[j]
    return is_tied


@kernel(**_settings, inner=True)
def _set_next_costs(preference, at):  # type: ignore[no-untyped-def]
    """Set what breaks the tie: the costs of what is not held if they are small, or the preference; return if it is."""
    left, costs = 0.0, at.costs
    for j in range(len(preference)):
        left += 0.0 if at.held[j] else costs[j] * costs[j]
    is_last = left == 0.0 or left >= SMALL * SMALL
    for j in range(len(preference)):
        costs[j] = preference[j] if is_last else 0.0 if at.held[j] else costs[j] / np.sqrt(left)
    return is_last


@kernel(**_settings, inner=True)
def _is_kept(region, x):  # type: ignore[no-untyped-def]
    """Return whether a vertex keeps all bounds, and rows have the values of their variables."""
    matrix, is_kept = region.matrix, True
    m = len(matrix.row_starts) - 1
    n = len(x) - m
    for i in range(m):
        total, scale = 0.0, 1.0
        for entry in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
            term = matrix.row_values[entry] * x[matrix.row_columns[entry]]
            total += term
            scale += abs(term)
        is_kept &= abs(total - x[n + i]) <= _ROUNDING * scale
    for j in range(n + m):
        near = _ROUNDING * (1.0 + abs(x[j]))
        is_kept &= region.lower[j] - x[j] <= near and x[j] - region.upper[j] <= near
    return is_kept


@kernel(**_settings, inner=True)
def _remember(known, at, start, has_moved):  # type: ignore[no-untyped-def]
    """Keep a vertex with its basis; the oldest gives way."""
    m, size = len(at.basic), len(known.bases)
    place = start  # another basis of the same vertex replaces the one that was not optimal
    if has_moved:
        place = known.count[1]
        known.count[0], known.count[1] = min(known.count[0] + 1, size), (place + 1) % size
    for i in range(m):
        known.bases[place, i] = at.basic[i]
        for k in range(m):
            known.inverses[place, i, k] = at.inverse[i, k]
    for j in range(len(at.x)):
        known.points[j, place] = at.x[j]
