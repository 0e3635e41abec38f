"""HiGHS with one program in it, for one row of costs after another: what vertices and whole numbers have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from decidewise.checks import FloatArray
from decidewise.errors import SolverError
from decidewise.polyhedra.program import Highs, Program
from decidewise.scaling import unit_rows

if TYPE_CHECKING:
    from decidewise.polyhedra.highs import Solver

_BLOCK = 64  # rows that start from the vertices of the rows before them


class OneByOne(ABC):
    """HiGHS and what it remembers, in one thread at a time; rows come at unit length, so that scale changes nothing."""

    def __init__(self, owner: Solver, **options: Any) -> None:
        self.owner = owner
        self.highs = Highs(owner.program, time_limit=owner.time_limit, **options)

    def minimize(self, costs: FloatArray, bounds: Program | None, keep_going: bool) -> FloatArray:
        """Return a point for each row of costs, (r, n) -> (r, n); NaN where one fails, if `keep_going`."""
        units, points = np.ascontiguousarray(unit_rows(costs)), np.empty(costs.shape)
        # The first row by itself: from the vertex that it finds others can start.
        for start, stop in pairwise([0, *range(1, len(costs), _BLOCK), len(costs)]):
            block = slice(start, stop)
            for row in start + self.answer(units[block], points[block]):
                if bounds is not None:
                    self.set_bounds(bounds.take(row))
                try:
                    points[row] = self.solve(units[row], row)
                except SolverError:
                    if not keep_going:
                        raise
                    points[row] = np.nan
        return points

    def answer(self, units: FloatArray, points: FloatArray) -> Any:
        """Write the points that need no solver, and return the rows that do."""
        return np.arange(len(units))

    def set_bounds(self, program: Program) -> None:
        """Give the next row the bounds of a program."""
        self.highs.set_bounds(program)

    @abstractmethod
    def solve(self, unit: FloatArray, row: int) -> FloatArray:
        """Return the point for one row (n,), or raise a `SolverError`."""
