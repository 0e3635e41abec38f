"""Optimal points of a linear program by HiGHS, for many rows of costs: vertices, or points in whole numbers.

An answer depends on its own row alone: on its costs and, where these differ by row, on its bounds. A linear program may
start from whatever basis is near, since of all optimal points one is chosen by a rule that the way there cannot change.
A program in whole numbers has the vertex of its linear relaxation as the answer if this vertex is whole; if not, it
starts anew for every row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.errors import SolverError
from decidewise.polyhedra.polyhedron import Polyhedron
from decidewise.polyhedra.program import Highs, Program
from decidewise.polyhedra.settled_vertex import Entries, IntArray, settled
from decidewise.polyhedra.vertex_walks import CLEAR, SMALL, VertexWalks
from decidewise.scaling import unit_rows

_BLOCK = 64  # rows that start from the vertices of the rows before them
_MOST_STARTS, _MOST_ENTRIES = 1024, 2**23
_PRIMAL, _DUAL = 4, 1  # strategies of HiGHS
_DRIFT = 1e-11
#: Reduced costs up to this count as zero where HiGHS itself breaks ties, for costs of unit length.
_ZERO = 2e-9
#: Costs are huge if they are this many times as large as the next smaller one; what replaces them is smaller.
_GAP, _CAP = 1e3, 1e2
#: Costs of programs in whole numbers have this length: HiGHS leaves improvements below 1e-6 undone.
_LENGTH = 1e3
#: How far from a whole number a variable of a vertex is whole: the error that the tolerances of its solver leave.
_WHOLE = 1e-9


def relaxed_vertices(polyhedron: Polyhedron, costs: FloatArray) -> FloatArray:
    """Return a vertex of the polyhedron that minimises each row of costs: (n, d) -> (n, d).

    Ties go as `Solver` says.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from scipy.sparse import csr_array
    >>> knapsack = SimpleNamespace(
    ...     A_ub=csr_array([[2.0, 3.0]]), b_ub=np.array([4.0]), A_eq=csr_array((0, 2)), b_eq=np.zeros(0),
    ...     lower=np.zeros(2), upper=np.ones(2),
    ... )
    >>> relaxed_vertices(knapsack, np.array([[-1.0, -3.0], [-3.0, -1.0], [-1.0, 1.0]])) + 0.0
    array([[0.5       , 1.        ],
           [1.        , 0.66666667],
           [1.        , 0.        ]])
    """
    return Solver(Program.of(polyhedron)).minimize(costs)


@dataclass
class Solver:
    """Optimal points of one program for rows of costs, from any number of threads.

    Ties in a linear program: of all optimal vertices the one with the least `r·w`, where `r` are fixed random numbers
    between 1 and 2; where there is no least, the one with the least `r·s`, where `s` are the distances of variables and
    constraints from their bounds. Where walks settle the vertex (see `VertexWalks`), costs are tied if rounding cannot
    tell them apart; where HiGHS does, if they differ by less than about 1e-9 of the length of the row. Where some costs
    are more than a thousand times as large as all others, and an optimal point need not pay them, the others decide at
    their own scale. Ties in a program in whole numbers: the same vertex if it is whole, and otherwise the point that
    HiGHS finds first.

    Parameters
    ----------
    program : Program
    time_limit : float, optional
        Seconds for one row.
    gap : float
        For whole numbers: how far the value may be from its bound, relative to the value, for HiGHS to stop.
    keep_going : bool
        Whether a row that fails becomes NaN. Otherwise it is a `SolverError`.
    by_row : bool
        Whether every row of costs has bounds of its own, which `minimize` is given.
    """

    program: Program
    time_limit: float | None = None
    gap: float = 0.0
    keep_going: bool = False
    by_row: bool = False
    _idle: list[_Rows] = field(default_factory=list, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": []}  # HiGHS stays in its process

    def minimize(self, costs: FloatArray, bounds: Program | None = None) -> FloatArray:
        """Return an optimal point for each row of costs, (r, n) -> (r, n), if `by_row` within the bounds of the row."""
        points, rows = np.empty(costs.shape), np.arange(len(costs))
        if (is_wide := _is_wide(costs)).any():
            done = self._minimize_capped(costs, bounds, points, rows[is_wide])
            rows = np.delete(rows, done)
        try:
            points[rows] = self._minimize(costs[rows], bounds and bounds.take(rows), self.keep_going)
        except SolverError as error:
            raise error.at(int(rows[error.row])) from error
        return points

    def _minimize_capped(
        self, costs: FloatArray, bounds: Program | None, points: FloatArray, rows: IntArray
    ) -> IntArray:
        """Write the points of those of the rows that need not pay their huge costs, and return these rows.

        Costs above a gap are replaced by a cap. A point that is optimal for the capped costs, and has the variables of
        all capped costs at the bound where they cost least, is optimal for the costs themselves: they add the same to
        this point, and at least as much to any other.
        """
        sizes = np.sort(np.abs(costs[rows]), axis=1)
        gaps = (sizes[:, 1:] / _GAP > sizes[:, :-1]) & (sizes[:, :-1] > 0)
        done = []
        while gaps.any():
            tried = np.flatnonzero(gaps.any(axis=1))
            ends = gaps[tried].argmax(axis=1)
            row_costs, largest = costs[rows[tried]], sizes[tried, ends][:, np.newaxis]
            capped = np.abs(row_costs) > largest
            within = bounds and bounds.take(rows[tried])
            found = self._minimize(np.where(capped, np.copysign(_CAP * largest, row_costs), row_costs), within, True)
            program = within or self.program
            cheapest = np.where(row_costs > 0, program.lower, program.upper)
            with np.errstate(invalid="ignore"):
                is_free = np.abs(found - cheapest) <= 1e-9 * (1.0 + np.abs(found))
            certified = (is_free | ~capped).all(axis=1) & np.isfinite(found).all(axis=1)
            points[rows[tried[certified]]] = found[certified]
            done.append(rows[tried[certified]])
            gaps[tried, ends] = False
            gaps[tried[certified]] = False
        return np.concatenate([rows[:0], *done])

    def _minimize(self, costs: FloatArray, bounds: Program | None, keep_going: bool) -> FloatArray:
        # Each thread takes a worker of its own. One that was interrupted does not come back.
        if self._idle:
            worker = self._idle.pop()
        else:
            worker = _Vertices(self) if self.program.integrality is None else _Integers(self)
        points = worker.minimize(costs, bounds, keep_going)
        self._idle.append(worker)
        return points


def _is_wide(costs: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which rows (r, n) have costs so far apart that there may be a gap."""
    sizes = np.abs(costs)
    return sizes.max(axis=1, initial=0.0) / _GAP > sizes.min(axis=1, initial=np.inf, where=sizes > 0)


def rounded(point: FloatArray, program: Program) -> FloatArray:
    """Return points (..., n) with whole numbers where a solver came within its tolerance of them."""
    return point if program.integrality is None else np.where(program.integrality, point.round() + 0.0, point)


class _Rows(ABC):
    """HiGHS and what it remembers, in one thread at a time; rows come at unit length, so that scale changes nothing."""

    def __init__(self, owner: Solver, **options: Any) -> None:
        self.owner = owner
        self.highs = Highs(owner.program, time_limit=owner.time_limit, **options)

    def minimize(self, costs: FloatArray, bounds: Program | None, keep_going: bool) -> FloatArray:
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


class _Integers(_Rows):
    """Points in whole numbers: the vertex of the linear relaxation if it is whole; if not, HiGHS starts anew.

    In many programs, such as schedules and assignments, nearly all vertices are whole, and a vertex takes a hundredth
    of the time. The rule for ties does not look at where the search began, so an answer depends on its row alone.
    """

    def __init__(self, owner: Solver) -> None:
        super().__init__(owner, mip_rel_gap=owner.gap, mip_abs_gap=0.0)
        relaxation = replace(owner.program, integrality=None)
        self.relaxed = _Vertices(Solver(relaxation, owner.time_limit, by_row=owner.by_row))
        if self.highs.solver.version().startswith("1.14."):
            # Its presolve calls decisions optimal that are not (ERGO-Code/HiGHS#2957), in programs of two variables.
            self.highs.solver.setOptionValue("presolve", "off")

    def minimize(self, costs: FloatArray, bounds: Program | None, keep_going: bool) -> FloatArray:
        points = self.relaxed.minimize(costs, bounds, keep_going=True)
        whole = rounded(points, self.owner.program)
        broken = np.flatnonzero(~(np.abs(points - whole) <= _WHOLE).all(axis=1))  # NaN where there is no vertex
        try:
            whole[broken] = super().minimize(costs[broken], bounds and bounds.take(broken), keep_going)
        except SolverError as error:
            raise error.at(int(broken[error.row])) from error
        return whole

    def solve(self, unit: FloatArray, row: int) -> FloatArray:
        self.highs.solver.clearSolver()
        if not self.highs.run(_LENGTH * unit):
            raise self.highs.error(row)
        point = np.array(self.highs.solver.getSolution().col_value)
        return rounded(point, self.owner.program)


class _Vertices(_Rows):
    """Vertices: by walks where the program is small, and otherwise by HiGHS from the best vertex known."""

    def __init__(self, owner: Solver) -> None:
        tolerances = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": _ZERO / 2}
        super().__init__(owner, solver="simplex", presolve="off", **tolerances)
        program = owner.program
        self.n, self.numbers = len(program.lower), np.arange(sum(program.A.shape))
        self.keep_bounds(program)
        self.preference = np.random.default_rng(0).uniform(1.0, 2.0, self.n)
        is_small = VertexWalks.fits(program)
        self.matrix = Entries.of(program) if is_small else None
        self.walks = None
        if self.matrix:
            self.walks = VertexWalks(program, self.matrix, self.preference, **({"most": 1} if owner.by_row else {}))
        size = max(1, min(_MOST_STARTS, _MOST_ENTRIES // self.n))
        self.count, self.vertices = 0, np.empty((0 if owner.by_row else size, self.n))
        self.starts: list[Any] = [None] * size
        self.starts_within: dict[int, Any] = {}  # by bounds, where every row has its own

    def set_bounds(self, program: Program) -> None:
        super().set_bounds(program)
        self.keep_bounds(program)

    def keep_bounds(self, program: Program) -> None:
        """Keep the bounds that hold, which a tie changes for a while, and what follows from them."""
        self.bounds = program
        self.lower = np.concatenate([program.lower, program.row_lower])
        self.upper = np.concatenate([program.upper, program.row_upper])
        self.movable = self.lower < self.upper
        with np.errstate(invalid="ignore"):  # what has no bound at all is at neither
            self.middle = (self.lower + self.upper) / 2

    def answer(self, units: FloatArray, points: FloatArray) -> Any:
        if self.walks is None or self.owner.by_row:
            return super().answer(units, points)
        return self.walks.minimize(units, points)

    def solve(self, unit: FloatArray, row: int) -> FloatArray:
        start = self.start(unit)
        if start is None or not self.run_from(unit, start):
            self.run_anew(unit, row)
        point, duals = self.read(unit)
        basic, settled_point = self.basic(), self.settle(point)
        self.remember(point)
        if not (self.movable & ~self.held(point, duals, CLEAR) & ~np.isin(self.numbers, basic)).any():
            if self.walks is not None and not self.owner.by_row:
                self.walks.add(settled_point, basic)
            return settled_point[: self.n]
        if self.walks is not None:
            # HiGHS leaves improvements below its tolerance undone; a walk ends where rounding does.
            vertex = self.walks.minimize_from(unit, settled_point, basic, self.lower, self.upper)
            if vertex is not None:
                return vertex
        return self.settle(self.break_tie(unit, point, duals, row))[: self.n]

    def start(self, unit: FloatArray) -> Any:
        """Return a basis to start from, or None.

        A new cost leaves a basis feasible, so that the primal simplex can go on from the best vertex known. New bounds
        do not, so that a row with bounds of its own goes on from the last vertex within the same bounds, if any.
        """
        if self.owner.by_row:
            return self.starts_within.get(self.key())
        known = min(self.count, len(self.starts))
        return self.starts[int(np.argmin(self.vertices[:known] @ unit))] if known else None

    def remember(self, point: FloatArray) -> None:
        """Keep a vertex and its basis, where others can start; the oldest gives way."""
        if self.owner.by_row:
            if len(self.starts_within) > _MOST_ENTRIES // len(self.numbers):
                self.starts_within.pop(next(iter(self.starts_within)))
            self.starts_within[self.key()] = self.highs.solver.getBasis()
            return
        place = self.count % len(self.starts)
        self.vertices[place], self.starts[place] = point[: self.n], self.highs.solver.getBasis()
        self.count += 1

    def key(self) -> int:
        """Return a hash of the bounds that hold; where two are the same by chance, one row starts further away."""
        bounds = self.bounds
        return hash(tuple(side.tobytes() for side in (bounds.lower, bounds.upper, bounds.row_lower, bounds.row_upper)))

    def settle(self, point: FloatArray) -> FloatArray:
        return point if self.matrix is None else settled(self.matrix, self.lower, self.upper, point)

    def run_from(self, costs: FloatArray, start: Any) -> bool:
        """Go on from a basis by the primal simplex; return whether that found an optimum."""
        self.highs.solver.setOptionValue("simplex_strategy", _PRIMAL)
        self.highs.solver.setBasis(start)
        return self.highs.run(costs)

    def run_anew(self, costs: FloatArray, row: int) -> None:
        self.highs.solver.clearSolver()
        self.highs.solver.setOptionValue("simplex_strategy", _DUAL)
        if not self.highs.run(costs):
            raise self.highs.error(row)

    def read(self, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values and the duals of columns, then of rows, both (n + m,), of a run with these costs."""
        solver, program = self.highs.solver, self.owner.program
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
        A = self.owner.program.A
        if A.nnz == 0:  # HiGHS needs no basis then, and crashes if asked for one: the rows are its basis
            return self.n + np.arange(A.shape[0])
        basic = self.highs.solver.getBasicVariables()[1].astype(np.int64)
        return np.where(basic < 0, self.n - 1 - basic, basic)

    def held(self, point: FloatArray, duals: FloatArray, least: float) -> npt.NDArray[np.bool_]:
        """Return which columns and rows a reduced cost holds at their bound (n + m,), in every optimal point."""
        return np.where(point <= self.middle, duals, -duals) > least

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
        costs = weights[: self.n] + self.owner.program.A.T @ weights[self.n :]
        return costs / max(np.abs(costs).max(initial=0.0), 1.0)

    def fix(self, fixed: Any, point: FloatArray) -> None:
        """Fix columns and rows at their values."""
        columns = np.flatnonzero(fixed[: self.n]).astype(np.int32)
        rows = np.flatnonzero(fixed[self.n :]).astype(np.int32)
        values = point[columns], point[self.n + rows]
        self.highs.solver.changeColsBounds(len(columns), columns, values[0], values[0])
        self.highs.solver.changeRowsBounds(len(rows), rows, values[1], values[1])
