"""Vertices of a linear program for many rows of costs, by walks where it is small and otherwise by HiGHS."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.errors import FeasibilityWarning, InfeasibleError
from decidewise.solvers.one_by_one import OneByOne, loosened
from decidewise.solvers.program import Highs, Program
from decidewise.solvers.settled_vertex import Entries, settled
from decidewise.solvers.vertex_walks import VertexWalks
from decidewise.solvers.walk_steps import CLEAR, SMALL

_MOST_STARTS, _MOST_ENTRIES = 1024, 2**23
_PRIMAL, _DUAL = 4, 1  # strategies of HiGHS
_FORGET = 0.99  # what is left of the pivots of the other strategy after each row
_PRIMAL_ERROR = 1e-10
_DRIFT = 1e-11
#: Reduced costs up to this count as zero where HiGHS itself breaks ties, for costs of unit length.
_ZERO = 2e-9
#: A gap to what duals prove is one above this part of what is added up; reduced costs up to it are rounding.
_UNPROVED = 1e-7
#: Where costs are further apart than this, and HiGHS leaves a tie, a walk settles it in programs of up to so many rows.
_FAR_APART, _MOST_ROWS_TO_SETTLE = 1e-7, 1000


class Vertices(OneByOne):
    """Vertices: by walks where the program is small, and otherwise by HiGHS from the best vertex known.

    Parameters are those of `OneByOne`, and the units of the variables (n,), in which the rule for ties does not count.
    """

    def __init__(
        self,
        program: Program,
        units: FloatArray,
        *,
        time_limit: float | None = None,
        by_row: bool = False,
        row_name: Callable[[int], str] | None = None,
    ) -> None:
        super().__init__(
            program, time_limit=time_limit, by_row=by_row, row_name=row_name, solver="simplex", presolve="off",
            primal_feasibility_tolerance=_PRIMAL_ERROR, dual_feasibility_tolerance=_ZERO / 2,
        )  # fmt: skip
        self.n, self.numbers = len(program.lower), np.arange(sum(program.A.shape))
        self.preference = np.random.default_rng(0).uniform(1.0, 2.0, self.n) * units / units.max()
        self.matrix = Entries.of(program) if VertexWalks.fits(program) else None
        self.keep_bounds(program)
        self.can_settle = VertexWalks.fits(program, _MOST_ROWS_TO_SETTLE)
        size = max(1, min(_MOST_STARTS, _MOST_ENTRIES // self.n))
        self.count, self.vertices = 0, np.empty((0 if by_row else size, self.n))
        self.starts: list[Any] = [None] * size
        self.pivots = {_PRIMAL: 0.0, _DUAL: 0.0}  # lately, for a row from a known vertex
        self.is_loose = False
        self.starts_within: dict[int, Any] = {}  # by bounds, where every row has its own
        self.last_start: Any = None

    @cached_property
    def one_walk(self) -> VertexWalks:
        """Walks that remember nothing, for rows with bounds of their own and for large programs."""
        return VertexWalks(self.program, self.matrix or Entries.of(self.program), self.preference, most=1)

    def set_bounds(self, program: Program) -> None:
        """Give the next row the bounds of a program."""
        super().set_bounds(program)
        self.keep_bounds(program)

    def keep_bounds(self, program: Program) -> None:
        """Keep the bounds that hold, which a tie changes for a while, and what follows from them."""
        self.lower, self.upper = program.all_lower, program.all_upper
        self.movable = self.lower < self.upper
        with np.errstate(invalid="ignore"):  # what has no bound at all is at neither
            self.middle = (self.lower + self.upper) / 2
        self.walks = None
        if self.matrix is not None:
            self.walks = self.one_walk if self.by_row else VertexWalks(program, self.matrix, self.preference)

    def answer(self, units: FloatArray, points: FloatArray) -> Any:
        """Write the vertices that walks find, and return the rows that are left."""
        if self.walks is None or self.by_row:
            return super().answer(units, points)
        return self.walks.minimize(units, points)

    def solve(self, unit: FloatArray, row: int) -> tuple[FloatArray, FloatArray]:
        """Return the vertex for one row (n,): that of HiGHS if it is clear, and otherwise what a walk makes of it.

        The proof are the duals (m,) of HiGHS.
        """
        start = self.start(unit)
        if start is None or not self.run_from(unit, start):
            try:
                self.run_anew(unit, row)
            except InfeasibleError:
                if not self.count:
                    raise
                return self.solve_again(unit, row)  # a vertex is known, so there are decisions
        point, duals = self.read(unit)
        basic, settled_point = self.basic(), self.settle(point)
        self.remember(point)
        is_free = ~self.held(point, duals, CLEAR)
        is_free[basic] = False
        if not is_free.any():
            if self.walks is not None and not self.by_row:
                self.walks.add(settled_point, basic)
            return settled_point[: self.n], duals[self.n :]
        # HiGHS leaves improvements below its tolerance undone; a walk ends where rounding does.
        if self.walks is not None or (self.can_settle and 0.0 < _least(unit) < _FAR_APART):
            walks = self.walks or self.one_walk
            vertex = walks.minimize_from(unit, settled_point, basic, self.lower, self.upper)
            if vertex is not None:
                return vertex, duals[self.n :]
        return self.settle(self.break_tie(unit, point, duals, row))[: self.n], duals[self.n :]

    def solve_again(self, unit: FloatArray, row: int) -> tuple[FloatArray, FloatArray]:
        """Return the vertex and the duals of another HiGHS, which knows nothing of the rows before."""
        highs = Highs(
            self.bounds, time_limit=self.time_limit, presolve="on", primal_feasibility_tolerance=_PRIMAL_ERROR
        )
        if not highs.run(unit):
            raise highs.error(row)
        solution = highs.solver.getSolution()
        return np.array(solution.col_value), np.array(solution.row_dual)

    def unproved(self, units: FloatArray, values: FloatArray, proofs: FloatArray, program: Program) -> BoolArray:
        """Return where the duals leave a gap to the value, or let the cost fall without end."""
        slopes = np.concatenate([units - (self.program.A.T @ proofs.T).T, proofs], axis=1)
        with np.errstate(invalid="ignore"):
            gaps = np.abs(slopes) * np.where(slopes > 0, values - program.all_lower, program.all_upper - values)
        gaps[np.abs(slopes) <= _UNPROVED] = 0.0
        sizes = np.abs(units * values[:, : self.n]).sum(axis=1)
        return np.asarray(~(gaps.sum(axis=1) <= _UNPROVED * (1.0 + sizes)))

    def start(self, unit: FloatArray) -> Any:
        """Return a basis to start from, or None.

        A new cost leaves a basis feasible, so that the primal simplex can go on from the best vertex known. New bounds
        do not, so that a row with bounds of its own goes on from the last vertex within the same bounds, or else from
        the last one at all: that takes two thirds of the time of a start without any.
        """
        if self.by_row:
            return self.starts_within.get(self.key(), self.last_start)
        known = min(self.count, len(self.starts))
        return self.starts[int(np.argmin(self.vertices[:known] @ unit))] if known else None

    def remember(self, point: FloatArray) -> None:
        """Keep a vertex and its basis, where others can start; the oldest gives way."""
        if self.by_row:
            if len(self.starts_within) > _MOST_ENTRIES // len(self.numbers):
                self.starts_within.pop(next(iter(self.starts_within)))
            self.starts_within[self.key()] = self.last_start = self.highs.solver.getBasis()
            return
        place = self.count % len(self.starts)
        self.vertices[place], self.starts[place] = point[: self.n], self.highs.solver.getBasis()
        self.count += 1

    def key(self) -> int:
        """Return a hash of the bounds that hold; where two are the same by chance, one row starts further away."""
        bounds = self.bounds
        return hash(tuple(side.tobytes() for side in (bounds.lower, bounds.upper, bounds.row_lower, bounds.row_upper)))

    def settle(self, point: FloatArray) -> FloatArray:
        """Return a vertex (n + m,) as its bounds define it, where the program is small."""
        return point if self.matrix is None else settled(self.matrix, self.lower, self.upper, point)

    def run_from(self, costs: FloatArray, start: Any) -> bool:
        """Go on from a basis; return whether that found an optimum.

        The primal simplex gains from a near vertex, the dual simplex hardly does: where rows have little in common, it
        is the faster one. A pivot takes about as long in both, so that the one that took fewer lately goes on. What the
        other took is forgotten bit by bit, until it has its turn.
        """
        strategy = _PRIMAL if self.by_row else min(self.pivots, key=self.pivots.__getitem__)
        self.highs.solver.setOptionValue("simplex_strategy", strategy)
        self.highs.solver.setBasis(start)
        is_optimal = self.highs.run(costs)
        known, pivots = self.pivots[strategy], float(self.highs.solver.getInfo().simplex_iteration_count)
        if not is_optimal:  # the row begins anew
            pivots += max(self.pivots.values()) + 1.0
        self.pivots = {way: _FORGET * count for way, count in self.pivots.items()}
        self.pivots[strategy] = (known + pivots) / 2 if known else pivots
        return is_optimal

    def run_anew(self, costs: FloatArray, row: int) -> None:
        """Start from the beginning, by the dual simplex; raise a `SolverError` if that finds no optimum."""
        if not self.run_cold(costs):
            error = self.highs.error(row)
            if not isinstance(error, InfeasibleError) or self.count:
                raise error
            self.loosen(error)
            if not self.run_cold(costs):
                raise self.highs.error(row)

    def run_cold(self, costs: FloatArray) -> bool:
        """Start from the beginning, by the dual simplex; return whether that found an optimum."""
        self.highs.solver.clearSolver()
        self.highs.solver.setOptionValue("simplex_strategy", _DUAL)
        return self.highs.run(costs)

    def loosen(self, error: InfeasibleError) -> None:
        """Add the room that rounding has taken from the region, with a warning, or raise the error."""
        found = loosened(self.bounds, self.time_limit)
        if found is None:
            raise error
        program, room = found
        self.is_loose = True
        if self.by_row:
            self.loosened[error.row] = program
        self.set_bounds(program)
        if self.row_name is not None:
            worst = int(room.argmax())
            warnings.warn(
                f"no decision keeps all constraints exactly: {self.row_name(worst)} is missed by "
                f"{room[worst]:.0e} of its size, and counts as kept. Write its numbers with more digits.",
                FeasibilityWarning,
                stacklevel=2,
            )

    def read(self, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values and the duals of columns, then of rows, both (n + m,), of a run with these costs."""
        solver, program = self.highs.solver, self.program
        solution = solver.getSolution()
        drift = np.abs(program.A @ np.array(solution.col_value) - solution.row_value).max(initial=0.0)
        if drift > _DRIFT * (
            1 + np.abs(solution.row_value).max(initial=0.0)
        ):  # rounding of hundreds of steps: HiGHS computes the basis anew where it only starts there
            basis = solver.getBasis()
            solver.clearSolver()
            solver.setBasis(basis)
            self.highs.run(costs)
            solution = solver.getSolution()
        return np.array(solution.col_value + solution.row_value), np.array(solution.col_dual + solution.row_dual)

    def basic(self) -> IntArray:
        """Return the columns, and the rows counted from n, that form the basis."""
        if self.highs.solver.getNumNz() == 0:  # HiGHS needs no basis then, and crashes if asked for one: it is the rows
            return self.n + np.arange(self.program.A.shape[0])
        basic = self.highs.solver.getBasicVariables()[1].astype(np.int64)
        return np.where(basic < 0, self.n - 1 - basic, basic)

    def held(self, point: FloatArray, duals: FloatArray, least: float) -> BoolArray:
        """Return which columns and rows (n + m,) cannot move, or a reduced cost holds in every optimal point."""
        return ~self.movable | (np.where(point <= self.middle, duals, -duals) > least)

    def break_tie(self, unit: FloatArray, point: FloatArray, duals: FloatArray, row: int) -> FloatArray:
        """Return the vertex that the rule chooses among the optimal ones.

        Whatever a reduced cost holds at its bound is there in every optimal point. So it is fixed there, and the solver
        goes on with the preference instead of the costs: or, where the costs of all else are small, first with those.
        """
        self.highs.solver.setOptionValue("simplex_strategy", _PRIMAL)
        costs = unit
        try:
            while True:
                held = self.held(point, duals, CLEAR)
                rest = np.where(held[: self.n], 0.0, costs)
                length = np.linalg.norm(rest)
                if not 0 < length < SMALL:
                    break
                self.fix(held, point)
                costs = rest / length
                if not self.highs.run(costs):
                    break
                point, duals = self.read(costs)
            self.fix(self.held(point, duals, _ZERO), point)
            # Along a variable without a bound the optimal points may go on without end; distances from bounds do not.
            for preference in (self.preference, self.bounded_preference()):
                if self.highs.run(preference):
                    return self.read(preference)[0]
        finally:
            self.highs.set_bounds(self.bounds)
        self.run_anew(unit, row)
        return self.read(unit)[0]

    def bounded_preference(self) -> FloatArray:
        """Return costs (n,) that add up random multiples of the distances of all variables and rows from a bound."""
        weights = np.random.default_rng(1).uniform(1.0, 2.0, len(self.numbers))
        weights *= np.where(np.isfinite(self.lower), 1.0, np.where(np.isfinite(self.upper), -1.0, 0.0))
        costs = weights[: self.n] + self.program.A.T @ weights[self.n :]
        return costs / max(np.abs(costs).max(initial=0.0), 1.0)

    def fix(self, fixed: Any, point: FloatArray) -> None:
        """Fix columns and rows at their values."""
        columns = np.flatnonzero(fixed[: self.n]).astype(np.int32)
        rows = np.flatnonzero(fixed[self.n :]).astype(np.int32)
        values = point[columns], point[self.n + rows]
        self.highs.solver.changeColsBounds(len(columns), columns, values[0], values[0])
        self.highs.solver.changeRowsBounds(len(rows), rows, values[1], values[1])


def _least(unit: FloatArray) -> float:
    """Return the size of the smallest cost that is not zero."""
    sizes = np.abs(unit)
    return float(sizes.min(initial=np.inf, where=sizes > 0))
