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
from decidewise.solvers.settled_vertex import Entries, settle
from decidewise.solvers.walk_steps import SETTINGS, Walk, descend, hold, inner, is_feasible, next_costs

_MOST_VERTICES = 1024
_MOST_ENTRIES = 2**23  # of all inverses
_MOST_ROWS, _MOST_NONZEROS = 400, 2**17  # beyond this a solver that keeps sparse factors takes a step in less time
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


@kernel(**SETTINGS)
def _walk(  # type: ignore[no-untyped-def]
    units, matrix, lower, upper, preference, inverses, bases, points, count, vertices, solved, first
):
    """Minimise each row (r, n), from the known vertex `first` or, if that is negative, from the best known one.

    Start: stand at the cheapest known vertex (`_best_known`, `_stand_at`).
    Price: reduced costs without rounding, steepest enters (`_price`, `_steepest`).
    Ratio test and pivot: what stops it leaves (`_fill_column`, `_ratio_test`, `_move`, `_exchange`).
    Ties: hold what is clear, decide the rest at its scale (`hold`, `next_costs`).
    Verify and remember: settle, check against the program, keep (`settle`, `is_feasible`, `_remember`).
    """
    m, n = bases.shape[1], units.shape[1]
    size = n + m
    x, reduced, weights, along = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    held, is_basic, basic = np.empty(size, np.bool_), np.empty(size, np.bool_), np.empty(m, np.int64)
    column, priced, terms, inverse = np.empty(m), np.empty(m), np.empty(m), np.empty((m, m))
    walk = Walk(
        matrix, lower, upper, x, np.zeros(size), reduced, weights, along, held, is_basic, basic, column, priced, terms,
        inverse,
    )  # fmt: skip
    values, system = np.empty(len(bases)), np.empty((m, m + 1))
    tight, place_of = np.empty(m, np.int64), np.empty(size, np.int64)
    for row in range(len(units)):
        start = first if first >= 0 else _best_known(units[row], points, count[0], values)
        _stand_at(walk, start, units[row], inverses, bases, points)
        steps, has_moved, is_last, is_done = 0, False, False, False
        for _ in range(_MOST_SCALES):
            is_optimal, steps, has_moved = descend(walk, steps, has_moved)
            is_done = is_optimal and (is_last or not hold(walk))
            if is_done or not is_optimal:
                break
            is_last = next_costs(walk, preference)
        if is_done and steps > 0:
            is_done = settle(matrix, lower, upper, x, system, tight, place_of)
        if is_done and is_feasible(walk):
            solved[row] = True
            for j in range(n):
                vertices[row, j] = x[j]
            if steps > 0:
                _remember(walk, start, has_moved, inverses, bases, points, count)


@inner
def _best_known(unit, points, known, values):  # type: ignore[no-untyped-def]
    """Return the vertex of least cost; `values` are room for those of all."""
    values[:known] = 0.0
    for j in range(len(unit)):
        cost = unit[j]
        if cost != 0.0:
            for k in range(known):
                values[k] += cost * points[j, k]
    best = 0
    for k in range(known):
        if values[k] < values[best]:
            best = k
    return best


@inner
def _stand_at(walk, start, unit, inverses, bases, points):  # type: ignore[no-untyped-def]
    """Take the basis of a known vertex, and the costs of a row."""
    m, size = len(walk.basic), len(walk.x)
    for i in range(m):
        walk.basic[i] = bases[start, i]
        for k in range(m):
            walk.inverse[i, k] = inverses[start, i, k]
    for j in range(size):
        walk.x[j] = points[j, start]
        walk.is_basic[j] = walk.held[j] = False
    for i in range(m):
        walk.is_basic[walk.basic[i]] = True
    for j in range(size - m):
        walk.costs[j] = unit[j]


@inner
def _remember(walk, start, has_moved, inverses, bases, points, count):  # type: ignore[no-untyped-def]
    """Keep the vertex; another basis of the same vertex replaces the one that was not optimal."""
    place = start
    if has_moved:
        place = count[1]
        count[0], count[1] = min(count[0] + 1, len(bases)), (place + 1) % len(bases)
    for i in range(len(walk.basic)):
        bases[place, i] = walk.basic[i]
        for k in range(len(walk.basic)):
            inverses[place, i, k] = walk.inverse[i, k]
    for j in range(len(walk.x)):
        points[j, place] = walk.x[j]
