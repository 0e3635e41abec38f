"""Optimal vertices of a small linear program from those known already: a walk from vertex to vertex, compiled.

Predictions of a model change little from row to row and from epoch to epoch, so the optimum of a row is a known vertex,
or a few steps of the simplex method away from the best of them. Each vertex is kept with the whole tableau of its
basis, from which a walk starts at once. Where a walk ends is checked against the program itself, so that rounding on
the way cannot make an answer wrong: what fails the check is left to another solver. The vertex is then computed once
more from the bounds that it touches, so that it is the same to the last bit, whatever the way.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array

from decidewise.checks import FloatArray
from decidewise.polyhedra.program import Program
from decidewise.runtime.kernels import kernel

IntArray = npt.NDArray[np.int64]

#: Reduced costs up to this count as zero, for costs of unit length.
ZERO = 2e-9
#: Reduced costs above this keep their sign through all that a solver leaves undone below its tolerance.
CLEAR = 1e-6
#: Where the costs that could break a tie are shorter than this, there is none: they decide at their own scale.
SMALL = 1e-3
_MOST_VERTICES = 1024
_MOST_ENTRIES = 2**23  # of all tableaus
_LARGEST_TABLEAU = 2**15  # beyond this a solver that keeps factors takes a step in less time
_PIVOT = 1e-7  # the smallest number to divide a row by
_ROUNDING = 1e-10
_TOUCH = 1e-9  # a bound that is as near as this is touched


class VertexWalks:
    """The vertices known so far, and walks from them.

    Ties: of all optimal vertices the one with the least `preference·w`.

    Parameters
    ----------
    program : Program
        Whose tableau is small: see `fits`.
    preference : ndarray of shape (n,)
    """

    def __init__(self, program: Program, preference: FloatArray) -> None:
        m, n = program.A.shape
        size = min(_MOST_VERTICES, _MOST_ENTRIES // (m * (n + m)))
        self._A = csc_array(program.A).toarray()
        self._columns = columns_of(program)
        self._lower = np.concatenate([program.lower, program.row_lower])
        self._upper = np.concatenate([program.upper, program.row_upper])
        self._preference = preference
        self._tableaus, self._bases = np.empty((size, m, n + m)), np.empty((size, m), np.int64)
        self._points = np.empty((n + m, size))  # one column a vertex, so that all are priced in one pass
        self._count = np.zeros(2, np.int64)  # vertices known, and the place of the next

    @staticmethod
    def fits(program: Program) -> bool:
        """Whether a program is small enough."""
        m, n = program.A.shape
        return 0 < m * (n + m) <= _LARGEST_TABLEAU

    def minimize(self, units: FloatArray, vertices: FloatArray) -> IntArray:
        """Write the optimal vertices (r, n) of rows of unit length (r, n), and return the rows that are left."""
        if self._count[0] == 0:
            return np.arange(len(units))
        solved = np.zeros(len(units), np.bool_)
        _walk(
            units, self._A, self._columns, self._lower, self._upper, self._preference,
            self._tableaus, self._bases, self._points, self._count, vertices, solved,
        )  # fmt: skip
        return np.flatnonzero(~solved)

    def add(self, point: FloatArray, basic: IntArray) -> None:
        """Add a settled vertex (n + m,), with the variables and rows that form its basis (m,)."""
        try:
            tableau = np.linalg.solve(self._columns[:, basic], self._columns)
        except np.linalg.LinAlgError:
            return
        known, place = map(int, self._count)
        self._tableaus[place], self._bases[place], self._points[:, place] = tableau, basic, point
        self._count[:] = min(known + 1, len(self._bases)), (place + 1) % len(self._bases)


def columns_of(program: Program) -> FloatArray:
    """Return the columns of the variables, then of the rows, (m, n + m), that `settled` needs."""
    return np.hstack([csc_array(program.A).toarray(), -np.eye(program.A.shape[0])])


def settled(columns: FloatArray, lower: FloatArray, upper: FloatArray, point: FloatArray) -> FloatArray:
    """Return a vertex, variables and rows (n + m,), as the bounds that it touches define it."""
    point = point.copy()
    _settle(columns, lower, upper, point, *_workspace(columns))
    return point


def _workspace(columns: FloatArray) -> tuple[FloatArray, IntArray]:
    m = len(columns)
    return np.empty((m, m + 1)), np.empty(m, np.int64)


@kernel(error_model="numpy")
def _settle(columns, lower, upper, x, system, free):  # type: ignore[no-untyped-def]
    """Put what touches a bound on it, and compute the rest of `columns x = 0` by elimination; return whether it can."""
    m, size = columns.shape
    count = 0
    for j in range(size):
        near = _TOUCH * (1.0 + abs(x[j]))
        if x[j] - lower[j] <= near:
            x[j] = lower[j]
        elif upper[j] - x[j] <= near:
            x[j] = upper[j]
        elif count == m:
            return False
        else:
            free[count] = j
            count += 1
    for i in range(m):
        for k in range(count):
            system[i, k] = columns[i, free[k]]
    for i in range(m):
        side = 0.0
        k = 0
        for j in range(size):
            if k < count and free[k] == j:
                k += 1
            elif columns[i, j] != 0.0:
                side -= columns[i, j] * x[j]
        system[i, count] = side
    for k in range(count):
        best = k
        for i in range(k + 1, m):
            if abs(system[i, k]) > abs(system[best, k]):
                best = i
        if abs(system[best, k]) <= _PIVOT:
            return False
        for j in range(k, count + 1):
            system[k, j], system[best, j] = system[best, j], system[k, j]
        for i in range(k + 1, m):
            factor = system[i, k] / system[k, k]
            if factor != 0.0:
                for j in range(k, count + 1):
                    system[i, j] -= factor * system[k, j]
    for k in range(count - 1, -1, -1):
        value = system[k, count]
        for j in range(k + 1, count):
            value -= system[k, j] * x[free[j]]
        x[free[k]] = value / system[k, k]
    return True


@kernel(error_model="numpy")
def _walk(  # type: ignore[no-untyped-def]
    units, A, columns, lower, upper, preference, tableaus, bases, points, count, vertices, solved
):
    m, n = A.shape
    size = n + m
    tableau, basic, x = np.empty((m, size)), np.empty(m, np.int64), np.empty(size)
    costs, reduced, held, is_basic = np.zeros(size), np.empty(size), np.empty(size, np.bool_), np.empty(size, np.bool_)
    values, system, free = np.empty(len(bases)), np.empty((m, m + 1)), np.empty(m, np.int64)
    for row in range(len(units)):
        known = count[0]
        values[:known] = 0.0
        for j in range(n):
            cost = units[row, j]
            if cost != 0.0:
                for k in range(known):
                    values[k] += cost * points[j, k]
        start = 0
        for k in range(known):
            if values[k] < values[start]:
                start = k
        for i in range(m):
            basic[i] = bases[start, i]
            for j in range(size):
                tableau[i, j] = tableaus[start, i, j]
        for j in range(size):
            x[j] = points[j, start]
            is_basic[j] = held[j] = False
        for i in range(m):
            is_basic[basic[i]] = True
        steps, has_moved, done = 0, False, False
        for stage in range(2):
            for j in range(n):
                costs[j] = preference[j] if stage == 1 else units[row, j]
            for j in range(size):
                reduced[j] = costs[j]
            for i in range(m):
                price = costs[basic[i]]
                if price != 0.0:
                    for j in range(size):
                        reduced[j] -= price * tableau[i, j]
            walking = True
            while walking:
                entering, steepest = -1, 0.5 * ZERO
                for j in range(size):
                    slope = reduced[j]
                    if is_basic[j] or held[j] or abs(slope) <= steepest:
                        continue
                    if (slope < 0.0 and x[j] < upper[j]) or (slope > 0.0 and x[j] > lower[j]):
                        entering, steepest = j, abs(slope)
                if entering < 0:
                    break
                sign = 1.0 if reduced[entering] < 0.0 else -1.0
                length, leaving, pivot = upper[entering] - lower[entering], -1, 0.0
                for i in range(m):
                    rate = sign * tableau[i, entering]
                    j = basic[i]
                    if abs(rate) <= _ROUNDING:
                        continue
                    room = max(0.0, (x[j] - lower[j]) / rate if rate > 0.0 else (x[j] - upper[j]) / rate)
                    if room < length or (room == length and abs(rate) > pivot):
                        length, leaving, pivot = room, i, abs(rate)
                steps += 1
                if not np.isfinite(length) or (leaving >= 0 and pivot < _PIVOT) or steps > 4 * m + 50:
                    walking = False
                    break
                has_moved |= length > 0.0
                for i in range(m):
                    x[basic[i]] -= length * sign * tableau[i, entering]
                x[entering] += sign * length
                if leaving < 0:
                    x[entering] = upper[entering] if sign > 0.0 else lower[entering]
                    continue
                j = basic[leaving]
                x[j] = lower[j] if sign * tableau[leaving, entering] > 0.0 else upper[j]
                is_basic[j], is_basic[entering], basic[leaving] = False, True, entering
                scale = 1.0 / tableau[leaving, entering]
                for k in range(size):
                    tableau[leaving, k] *= scale
                for i in range(m):
                    factor = tableau[i, entering]
                    if i != leaving and factor != 0.0:
                        for k in range(size):
                            tableau[i, k] -= factor * tableau[leaving, k]
                factor = reduced[entering]
                for k in range(size):
                    reduced[k] -= factor * tableau[leaving, k]
            if not walking:
                break
            # The reduced costs of the rows are the duals: with them those of the columns follow from the program.
            exact = True
            for j in range(n):
                slope = costs[j]
                for i in range(m):
                    slope -= A[i, j] * reduced[n + i]
                exact &= abs(slope - reduced[j]) <= _ROUNDING
            if not exact:
                break
            if stage == 1:
                done = True
                break
            is_tied, is_clear, left = False, True, 0.0
            for j in range(size):
                held[j] = abs(reduced[j]) > ZERO
                if not is_basic[j] and lower[j] < upper[j]:
                    is_tied |= not held[j]
                    is_clear &= abs(reduced[j]) > CLEAR
                if j < n and abs(reduced[j]) <= CLEAR:
                    left += costs[j] * costs[j]
            if not is_clear and 0.0 < left < SMALL * SMALL:
                break
            if not is_tied:
                done = True
                break
        if done and steps > 0:
            done = _settle(columns, lower, upper, x, system, free)
        if not done:
            continue
        for i in range(m):
            total, scale = 0.0, 1.0
            for j in range(n):
                total += A[i, j] * x[j]
                scale += abs(A[i, j] * x[j])
            done &= abs(total - x[n + i]) <= _ROUNDING * scale
        for j in range(size):
            done &= lower[j] - x[j] <= _ROUNDING * (1.0 + abs(x[j])) and x[j] - upper[j] <= _ROUNDING * (
                1.0 + abs(x[j])
            )
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
                for j in range(size):
                    tableaus[place, i, j] = tableau[i, j]
            for j in range(size):
                points[j, place] = x[j]
