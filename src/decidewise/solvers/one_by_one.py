"""HiGHS with one program in it, for one row of costs after another: what vertices and whole numbers have in common.

No answer of HiGHS leaves without a check against the program and against what HiGHS says to prove it. One that fails is
solved again in another way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csc_array, eye_array, hstack

from decidewise.kit.checks import BoolArray, FloatArray
from decidewise.kit.errors import SolverError
from decidewise.kit.scaling import unit_rows
from decidewise.solvers.program import Highs, Program

_BLOCK = 64  # rows that start from the vertices of the rows before them
#: What is missing may be this part of what a constraint adds up, or of 1 if that is more.
ROUNDING = 1e-7


class OneByOne(ABC):
    """HiGHS and what it remembers, in one thread at a time; rows come at unit length, so that scale changes nothing.

    Parameters
    ----------
    program : Program
    time_limit : float, optional
        Seconds for one row.
    by_row : bool
        Whether every row of costs has bounds of its own.
    row_name : callable, optional
        Returns the name of a constraint, for a warning where it is loosened. Without it there is none.
    options : dict
        HiGHS's own options.
    """

    def __init__(
        self,
        program: Program,
        *,
        time_limit: float | None,
        by_row: bool,
        row_name: Callable[[int], str] | None,
        **options: Any,
    ) -> None:
        self.program, self.bounds = program, program
        self.time_limit, self.by_row, self.row_name = time_limit, by_row, row_name
        self.highs = Highs(program, time_limit=time_limit, **options)
        self.loosened: dict[int, Program] = {}
        self.stopped: set[int] = set()  # rows that a limit stopped at a point

    def minimize(self, costs: FloatArray, bounds: Program | None, keep_going: bool) -> FloatArray:
        """Return a point for each row of costs, (r, n) -> (r, n); NaN where one fails, if `keep_going`."""
        units, points = np.ascontiguousarray(unit_rows(costs)), np.empty(costs.shape)
        proofs: dict[int, Any] = {}
        self.loosened.clear()
        self.stopped.clear()

        def attempt(row: int, solve: Callable[[FloatArray, int], tuple[FloatArray, Any]]) -> None:
            if bounds is not None:
                self.set_bounds(self.loosened.get(row) or bounds.take(row))
            try:
                points[row], proofs[row] = solve(units[row], row)
            except SolverError:
                if not keep_going:
                    raise
                points[row] = np.nan
                proofs.pop(row, None)

        # The first row by itself: from the vertex that it finds others can start.
        for start, stop in pairwise([0, *range(1, len(costs), _BLOCK), len(costs)]):
            block = slice(start, stop)
            for row in start + self.answer(units[block], points[block]):
                attempt(int(row), self.solve)
            again = self.wrong(units, points, proofs, bounds)
            for row in again:
                attempt(row, self.solve_again)
            for row in again and self.wrong(units, points, proofs, bounds):
                if not keep_going:
                    raise SolverError(_WRONG, row=row)
                points[row] = np.nan
            proofs.clear()  # each is as long as the program has constraints
        return points

    def wrong(self, units: FloatArray, points: FloatArray, proofs: dict[int, Any], bounds: Program | None) -> list[int]:
        """Return the rows whose points break a constraint, or are worse than their proofs allow."""
        rows = np.array(list(proofs), dtype=np.int64)
        if not len(rows):
            return []
        program = self.bounds if bounds is None else bounds.take(rows)
        if self.loosened:
            program = (self.bounds.take(np.newaxis).take(0 * rows) if bounds is None else program).put(
                {k: self.loosened[int(row)] for k, row in enumerate(rows) if int(row) in self.loosened}
            )
        values = program.values(points[rows])
        is_wrong = self.unproved(units[rows], values, np.array(list(proofs.values())), program)
        is_wrong &= ~np.isin(rows, list(self.stopped))
        is_wrong |= program.violated(values).any(axis=1)
        return [int(row) for row in rows[is_wrong]]

    def answer(self, units: FloatArray, points: FloatArray) -> Any:
        """Write the points that need no solver, and return the rows that do."""
        return np.arange(len(units))

    def set_bounds(self, program: Program) -> None:
        """Give the next row the bounds of a program."""
        self.highs.set_bounds(program)
        self.bounds = program

    @abstractmethod
    def solve(self, unit: FloatArray, row: int) -> tuple[FloatArray, Any]:
        """Return the point for one row (n,) and what proves it, or raise a `SolverError`."""

    @abstractmethod
    def solve_again(self, unit: FloatArray, row: int) -> tuple[FloatArray, Any]:
        """Return the same by another way, for a point that failed the check."""

    @abstractmethod
    def unproved(self, units: FloatArray, values: FloatArray, proofs: FloatArray, program: Program) -> BoolArray:
        """Return which values of columns and rows (r, n + m) their proofs do not prove optimal (r,)."""


_WRONG = (
    "HiGHS returned a decision that breaks a constraint, or that costs more than it proves, in two ways to solve it. "
    "The problem may be badly scaled: bring rows and costs to similar sizes."
)


def loosened(program: Program, time_limit: float | None = None) -> tuple[Program, FloatArray] | None:
    """Return the program with as little room added as one point needs, and the room as a part of the values (n + m,).

    None if some constraint would need more than rounding. Supplies and demands that were written with eight decimals,
    say, need not add up to the same.
    """
    m, n = program.A.shape
    lower, upper = program.lower.copy(), program.upper.copy()
    crossed = lower > upper
    lower[crossed] = upper[crossed] = (lower[crossed] + upper[crossed]) / 2
    if not (program.upper[crossed] + ROUNDING * (1.0 + np.abs(lower[crossed])) >= program.lower[crossed]).all():
        return None
    # Every row may be missed from below or from above, at a cost.
    elastic = Program(
        A=csc_array(hstack([program.A, eye_array(m), -eye_array(m)], format="csc")),
        row_lower=program.row_lower,
        row_upper=program.row_upper,
        lower=np.concatenate([lower, np.zeros(2 * m)]),
        upper=np.concatenate([upper, np.full(2 * m, np.inf)]),
    )
    sides = np.where(np.isfinite(program.row_upper), program.row_upper, program.row_lower)
    weights = 1.0 / (1.0 + np.abs(np.where(np.isfinite(sides), sides, 0.0)))
    highs = Highs(elastic, time_limit=time_limit, solver="simplex", primal_feasibility_tolerance=1e-10)
    if not highs.run(np.concatenate([np.zeros(n), weights, weights])):
        return None
    point = np.clip(highs.solver.getSolution().col_value[:n], lower, upper)
    values = program.values(point[np.newaxis])
    if program.violated(values, ROUNDING).any():
        return None
    values = values[0]
    room = np.maximum(0.0, np.maximum(program.all_lower - values, values - program.all_upper))
    wider = replace(
        program,
        lower=lower,
        upper=upper,
        row_lower=np.minimum(program.row_lower, values[n:]),
        row_upper=np.maximum(program.row_upper, values[n:]),
    )
    return wider, room / (1.0 + np.abs(values))
