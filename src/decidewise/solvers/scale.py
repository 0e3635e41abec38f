"""Units in which the numbers of a program are near 1, so that the absolute tolerances of solvers are small beside them.

All factors are powers of two, so that nothing is rounded. A program of ordinary numbers keeps its units, and variables
in whole numbers always do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array

from decidewise.kit.checks import FloatArray
from decidewise.solvers.program import Program

#: Numbers between these are near 1: entries of constraints, and what bounds and sides leave to variables.
_ENTRIES = (2.0**-20, 2.0**20)
_REGION = (2.0**-4, 2.0**10)


@dataclass(frozen=True)
class Scale:
    """The units of variables, `columns` (n,), and factors of constraints, `rows` (m,), for one program.

    The region of each row of costs has one more unit, which all of it shares: see `unit`.
    """

    program: Program
    rows: FloatArray
    columns: FloatArray

    @classmethod
    def of(cls, program: Program) -> Scale:
        """Return the units of a program; bounds by row of costs are its widest."""
        A = program.A.tocoo()
        (i, j), sizes = A.coords, np.abs(A.data)
        m, n = A.shape
        reach = _reach(program, i, j, A.data)
        columns = _unit(reach, reach, (_REGION[0], np.inf))
        rows = 1.0 / _unit(*_range(sizes * columns[j], i, m), _ENTRIES)
        factor = _unit(*_range(sizes * rows[i] * columns[j], j, n), _ENTRIES)
        # A larger unit than what a variable can reach would make its bounds small.
        most = np.where(reach > 0, np.maximum(_power(reach) / columns, 1.0), np.inf)
        columns = columns * np.minimum(1.0 / factor, most)
        if program.integrality is not None:
            columns = np.where(program.integrality, 1.0, columns)
        return cls(program, rows, columns)

    @cached_property
    def matrix(self) -> csc_array:
        """The constraints in these units."""
        if self.is_trivial:
            return self.program.A
        A = self.program.A.copy()
        A.data = A.data * self.rows[A.indices] * np.repeat(self.columns, np.diff(A.indptr))
        return A

    @cached_property
    def is_trivial(self) -> bool:
        """Whether all units are 1."""
        return bool((self.columns == 1).all() and (self.rows == 1).all())

    @cached_property
    def _entries(self) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest entry of each constraint in these units, both (m,)."""
        return _range(np.abs(self.matrix.data), self.matrix.indices, self.matrix.shape[0])

    def unit(self, program: Program) -> FloatArray:
        """Return the unit of the region of each row of costs (..., 1)."""
        if program.integrality is not None:
            return np.ones((*program.lower.shape[:-1], 1))
        smallest, largest = self._entries
        with np.errstate(invalid="ignore", divide="ignore"):
            sides = self.rows * _size(program.row_lower, program.row_upper)
            bounds = _size(program.lower, program.upper) / self.columns
            high = np.concatenate([bounds, sides / smallest], axis=-1)
            low = np.concatenate([bounds, sides / largest], axis=-1)
        low[~(low > 0)], high[~np.isfinite(high)] = np.inf, 0.0
        return _unit(low.min(axis=-1, initial=np.inf), high.max(axis=-1, initial=0.0), _REGION)[..., np.newaxis]

    def scaled(self, program: Program, unit: FloatArray) -> Program:
        """Return a program in these units; the program itself if all are 1."""
        if self.is_trivial and (unit == 1).all():
            return program
        columns, rows = self.columns * unit, self.rows / unit
        return replace(
            program,
            A=self.matrix,
            row_lower=program.row_lower * rows,
            row_upper=program.row_upper * rows,
            lower=program.lower / columns,
            upper=program.upper / columns,
        )


def _reach(program: Program, i: npt.NDArray[np.int32], j: npt.NDArray[np.int32], a: FloatArray) -> FloatArray:
    """Return how far from zero bounds and single constraints let each variable go (n,); 0 where they tell nothing."""
    near = np.minimum(np.abs(program.lower), np.abs(program.upper))
    with np.errstate(invalid="ignore"):
        reach = np.maximum(np.abs(program.lower), np.abs(program.upper))
        ends = np.sort([a * program.lower[j], a * program.upper[j]], axis=0)  # of each term
        for side, end, sign in ((program.row_upper, ends[0], 1.0), (program.row_lower, ends[1], -1.0)):
            left = sign * (side - np.bincount(i, end, len(side)))  # what the other terms leave to one
            noise = _ENTRIES[0] * (np.abs(side) + np.bincount(i, np.abs(end), len(side)))
            np.minimum.at(reach, j, np.nan_to_num(near[j] + np.maximum(left, noise)[i] / np.abs(a), nan=np.inf))
    return np.where(np.isfinite(reach) & (reach > 0), reach, 0.0)


def _size(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the size of the larger of two bounds, of those that are finite."""
    return np.maximum(*(np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (lower, upper)))


def _range(values: FloatArray, places: npt.NDArray[np.int32], count: int) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest of the positive values at each place, both (count,)."""
    low, high = np.full(count, np.inf), np.zeros(count)
    np.minimum.at(low, places, values)
    np.maximum.at(high, places, values)
    return low, high


def _unit(low: FloatArray, high: FloatArray, near: tuple[float, float]) -> FloatArray:
    """Return the power of two that brings numbers from `low` to `high` nearest to 1; 1 if some of them are there."""
    unit = np.where(high < near[0], high, np.where(low > near[1], low, 1.0))
    return _power(np.where((high > 0) & np.isfinite(low), unit, 1.0))


def _power(values: FloatArray) -> FloatArray:
    """Return the largest power of two that is not above each value."""
    return np.ldexp(1.0, np.frexp(values)[1] - 1)
