"""A vertex computed from the bounds that it touches, so that it is the same to the last bit, whatever the way to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.solvers.program import Program

#: The smallest number to divide by.
PIVOT = 1e-7
_TOUCH = 1e-9  # a bound that is as near as this is touched


class Entries(NamedTuple):
    """The entries of the constraints of a program (m, n), by row and by column, as kernels read them.

    The entries of row `i` are those from `row_starts[i]` up to `row_starts[i + 1]`, and likewise of a column.
    """

    row_starts: IntArray
    row_columns: IntArray
    row_values: FloatArray
    column_starts: IntArray
    column_rows: IntArray
    column_values: FloatArray

    @classmethod
    def of(cls, program: Program) -> Entries:
        """Return the entries of a program."""
        by_row, by_column = csr_array(program.A), csc_array(program.A)
        return cls(*_parts(by_row), *_parts(by_column))


def _parts(matrix: csr_array | csc_array) -> tuple[IntArray, IntArray, FloatArray]:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float64)


def settled(matrix: Entries, lower: FloatArray, upper: FloatArray, point: FloatArray) -> FloatArray:
    """Return a vertex, variables and rows (n + m,), as the bounds that it touches define it."""
    point = point.copy()
    m = len(matrix.row_starts) - 1
    settle(matrix, lower, upper, point, np.empty((m, m + 1)), np.empty(m, np.int64), np.empty(len(point), np.int64))
    return point


@kernel(error_model="numpy")
def settle(matrix, lower, upper, x, system, tight, place):  # type: ignore[no-untyped-def]
    """Put what touches a bound on it, and compute the rest of `x` (n + m,) by elimination; return whether it can.

    A row at none of its bounds only defines its own value. The other rows define the variables at none of theirs.

    Touch: put on bounds, number the rest.
    System: one equation per tight row.
    Eliminate with pivots, substitute back.
    Rows: the values of those at no bound.
    """
    m = len(matrix.row_starts) - 1
    n = len(x) - m
    count = n_tight = 0
    for j in range(n + m):
        near = _TOUCH * (1.0 + abs(x[j]))
        place[j] = -1
        if x[j] - lower[j] <= near:
            x[j] = lower[j]
        elif upper[j] - x[j] <= near:
            x[j] = upper[j]
        else:
            place[j] = count
            count += j < n
        if j >= n and place[j] < 0:
            tight[n_tight] = j - n
            n_tight += 1
    if count > n_tight:
        return False
    for k in range(n_tight):
        i = tight[k]
        for j in range(count):
            system[k, j] = 0.0
        side = x[n + i]
        for entry in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
            j = matrix.row_columns[entry]
            if place[j] >= 0:
                system[k, place[j]] = matrix.row_values[entry]
            else:
                side -= matrix.row_values[entry] * x[j]
        system[k, count] = side
    for k in range(count):
        best = k
        for i in range(k + 1, n_tight):
            if abs(system[i, k]) > abs(system[best, k]):
                best = i
        if abs(system[best, k]) <= PIVOT:
            return False
        if best != k:
            for j in range(k, count + 1):
                system[k, j], system[best, j] = system[best, j], system[k, j]
        for i in range(k + 1, n_tight):
            factor = system[i, k] / system[k, k]
            if factor != 0.0:
                for j in range(k, count + 1):
                    system[i, j] -= factor * system[k, j]
    for k in range(count - 1, -1, -1):
        value = system[k, count]
        for j in range(k + 1, count):
            value -= system[k, j] * system[j, count]
        system[k, count] = value / system[k, k]
    for j in range(n):
        if place[j] >= 0:
            x[j] = system[place[j], count]
    for i in range(m):
        if place[n + i] >= 0:
            value = 0.0
            for entry in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
                value += matrix.row_values[entry] * x[matrix.row_columns[entry]]
            x[n + i] = value
    return True
