"""Optimal points of a linear program by HiGHS, for many rows of costs: vertices, or points in whole numbers.

An answer depends on its own row alone: on its costs and, where these differ by row, on its bounds. A linear program may
start from whatever basis is near, since of all optimal points one is chosen by a rule that the way there cannot change.
A program in whole numbers has the vertex of its linear relaxation as the answer if this vertex is whole; if not, it
starts anew for every row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.errors import InfeasibleError, at_rows
from decidewise.kit.gaps import note_gaps, noted_gaps, some_rows
from decidewise.kit.scaling import unit_largest, unit_rows
from decidewise.solvers.one_by_one import ROUNDING, OneByOne
from decidewise.solvers.program import FEASIBLE, Highs, Program
from decidewise.solvers.scale import Scale
from decidewise.solvers.vertices import Vertices

#: Costs are huge if they are this many times as large as the next smaller one; what replaces them is smaller.
_GAP, _CAP = 1e3, 1e2
#: Costs of programs in whole numbers have this length: HiGHS leaves improvements below 1e-6 undone.
_LENGTH = 1e3
#: How far from a whole number a variable of a vertex is whole: the error that the tolerances of its solver leave.
_WHOLE = 1e-9
#: How far above its bound a value may be, as a part of what is added up.
_UNPROVED = 1e-7
#: With how many points of other rows a point in whole numbers is compared.
_MOST_KNOWN = 256


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
    keep_best : bool
        Whether a row in whole numbers that reaches the time limit has the best point found so far. Otherwise it fails.
    keep_going : bool
        Whether a row that fails becomes NaN. Otherwise it is a `SolverError`.
    by_row : bool
        Whether every row of costs has bounds of its own, which `minimize` is given. Those of `program` are the widest.
    row_name : callable, optional
        Returns the name of a variable or, counted from n, of a constraint, for the warning where constraints contradict
        each other by rounding alone. Without it there is no warning.
    """

    program: Program
    time_limit: float | None = None
    gap: float = 0.0
    keep_best: bool = False
    keep_going: bool = False
    by_row: bool = False
    row_name: Callable[[int], str] | None = None
    _idle: list[OneByOne] = field(default_factory=list, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)} | {"_idle": []}  # HiGHS stays here

    @cached_property
    def _scale(self) -> Scale:
        return Scale.of(self.program)

    @cached_property
    def _unit(self) -> FloatArray:
        return np.ones(1) if self.by_row else self._scale.unit(self.program)

    @cached_property
    def _scaled(self) -> Program:
        """The program in units that suit HiGHS."""
        return self._scale.scaled(self.program, self._unit)

    def minimize(self, costs: FloatArray, bounds: Program | None = None) -> FloatArray:
        """Return an optimal point for each row of costs, (r, n) -> (r, n), if `by_row` within the bounds of the row.

        It notes the gap of each row (see `decidewise.kit.gaps`).
        """
        with noted_gaps() as noted:  # relative to the value
            points = self._minimize_in_units(costs, bounds)
        gaps, stopped = noted.by_row(len(costs))
        if gaps.any():
            with np.errstate(invalid="ignore"):
                gaps = np.where(gaps == 0, 0.0, gaps * np.abs((costs * points).sum(axis=1)))
        note_gaps(np.nan_to_num(gaps, nan=np.inf, posinf=np.inf), stopped)
        return points

    def _minimize_in_units(self, costs: FloatArray, bounds: Program | None) -> FloatArray:
        scale, unit = self._scale, self._unit
        if bounds is not None:
            bounds = replace(bounds, integrality=self.program.integrality)
            unit = scale.unit(bounds)
            bounds = scale.scaled(bounds, unit)
        if not scale.is_trivial:
            costs = unit_largest(costs) * scale.columns
        points = self._minimize_scaled(costs, bounds)
        return points if scale.is_trivial and (unit == 1).all() else points * (scale.columns * unit)

    def _minimize_scaled(self, costs: FloatArray, bounds: Program | None) -> FloatArray:
        points, rows = np.empty(costs.shape), np.arange(len(costs))
        if (is_wide := _is_wide(costs)).any():
            done = self._minimize_capped(costs, bounds, points, rows[is_wide])
            rows = np.delete(rows, done)
        with some_rows(rows, len(costs)):
            points[rows] = self._minimize(costs[rows], bounds and bounds.take(rows), self.keep_going)
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
            with noted_gaps() as noted:
                found = self._minimize(
                    np.where(capped, np.copysign(_CAP * largest, row_costs), row_costs), within, True
                )
            program = within or self._scaled
            cheapest = np.where(row_costs > 0, program.lower, program.upper)
            with np.errstate(invalid="ignore"):
                is_free = np.abs(found - cheapest) <= 1e-9 * (1.0 + np.abs(found))
            certified = (is_free | ~capped).all(axis=1) & np.isfinite(found).all(axis=1)
            certified &= noted.by_row(len(tried))[0] == 0
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
            options: dict[str, Any] = {"time_limit": self.time_limit, "by_row": self.by_row, "row_name": self.row_name}
            worker = (
                Vertices(self._scaled, self._scale.columns, **options)
                if self.program.integrality is None
                else _Integers(self._scaled, self._scale.columns, gap=self.gap, keep_best=self.keep_best, **options)
            )
        points = worker.minimize(costs, bounds, keep_going)
        self._idle.append(worker)
        return points


def _is_wide(costs: FloatArray) -> BoolArray:
    """Return which rows (r, n) have costs so far apart that there may be a gap."""
    sizes = np.abs(costs)
    return sizes.max(axis=1, initial=0.0) / _GAP > sizes.min(axis=1, initial=np.inf, where=sizes > 0)


def rounded(point: FloatArray, program: Program) -> FloatArray:
    """Return points (..., n) with whole numbers where a solver came within its tolerance of them."""
    return point if program.integrality is None else np.where(program.integrality, point.round() + 0.0, point)


class _Integers(OneByOne):
    """Points in whole numbers: the vertex of the linear relaxation if it is whole; if not, HiGHS starts anew.

    In many programs, such as schedules and assignments, nearly all vertices are whole, and a vertex takes a hundredth
    of the time. The rule for ties does not look at where the search began, so an answer depends on its row alone.
    """

    def __init__(self, program: Program, units: FloatArray, *, gap: float, keep_best: bool, **options: Any) -> None:
        self.gap, self.keep_best, self.units = gap, keep_best, units
        self.proved: dict[int, float] = {}  # the bound on the value of each row
        self.whole = np.empty((0, len(units)))  # some points of other rows
        self.settings: dict[str, Any] = {
            "mip_rel_gap": gap,
            "mip_abs_gap": 0.0,
            "mip_feasibility_tolerance": FEASIBLE,
            # In small programs this heuristic takes 25 times as long as all the rest; in large ones it gains nothing.
            "mip_heuristic_run_feasibility_jump": False,
        }
        super().__init__(program, **options, **self.settings)
        self.relaxed = Vertices(replace(program, integrality=None), units, **(options | {"row_name": None}))

    def minimize(self, costs: FloatArray, bounds: Program | None, keep_going: bool) -> FloatArray:
        points = self.relaxed.minimize(costs, bounds, keep_going=True)
        whole = rounded(points, self.program)
        is_whole = np.all(np.abs(points - whole) <= _WHOLE, axis=1)  # NaN where there is no vertex
        moved = np.flatnonzero(is_whole & ((points != whole).any(axis=1) | self.relaxed.is_loose))
        program = self.program if bounds is None else bounds.take(moved)
        is_whole[moved[program.violated(program.values(whole[moved])).any(axis=1)]] = False
        broken = np.flatnonzero(~is_whole)
        self.whole = whole[is_whole][:_MOST_KNOWN]
        with at_rows(broken):
            whole[broken] = super().minimize(costs[broken], bounds and bounds.take(broken), keep_going)
        self.note_gaps(costs, whole, points, broken)
        return whole

    def note_gaps(self, costs: FloatArray, points: FloatArray, relaxed: FloatArray, rows: IntArray) -> None:
        """Note how far, relative to their values, the points of rows that HiGHS solved may be from their bounds.

        A row that stopped before HiGHS had a bound has that of the linear relaxation.
        """
        gaps, stopped = np.zeros(len(costs)), np.zeros(len(costs), dtype=bool)
        if self.gap or self.stopped:
            unit = unit_rows(costs[rows])
            values = (unit * points[rows]).sum(axis=1)
            bounds = np.array([self.proved.get(row, np.nan) for row in range(len(rows))])
            bounds = np.fmax(bounds, (unit * relaxed[rows]).sum(axis=1))
            with np.errstate(divide="ignore", invalid="ignore"):
                gaps[rows] = np.maximum(values - bounds, 0.0) / np.abs(values)
            stopped[rows[list(self.stopped)]] = True
        note_gaps(np.where(np.isfinite(points).all(axis=1), gaps, 0.0), stopped)

    def solve(self, unit: FloatArray, row: int) -> tuple[FloatArray, float]:
        """Return the point for one row (n,), and the bound on its value."""
        self.highs.solver.clearSolver()
        if self.run(self.highs, unit, row):
            return self.read(self.highs, row)
        error = self.highs.error(row)
        if not isinstance(error, InfeasibleError):
            raise error
        # Constraints may contradict each other by rounding alone: whole numbers from a wider region may do.
        room = [ROUNDING * (1.0 + np.abs(side)) for side in (self.bounds.row_lower, self.bounds.row_upper)]
        wider = replace(
            self.bounds, row_lower=self.bounds.row_lower - room[0], row_upper=self.bounds.row_upper + room[1]
        )
        try:
            return self.solve_within(wider, unit, row)
        except InfeasibleError:
            raise error from None

    def solve_again(self, unit: FloatArray, row: int) -> tuple[FloatArray, float]:
        """Return the same by the other presolve, with the rest of the variables solved for once more."""
        return self.solve_within(self.bounds, unit, row)

    def solve_within(self, program: Program, unit: FloatArray, row: int) -> tuple[FloatArray, float]:
        """Take the whole numbers of a solution of a program, and solve for the rest within the bounds that hold."""
        highs = Highs(program, time_limit=self.time_limit, presolve="on", **self.settings)
        if not self.run(highs, unit, row):
            raise highs.error(row)
        point, bound = self.read(highs, row)
        whole, bounds = np.asarray(self.program.integrality), replace(self.bounds, integrality=None)
        fixed = replace(bounds, lower=np.where(whole, point, bounds.lower), upper=np.where(whole, point, bounds.upper))
        rest = Vertices(fixed, self.units, time_limit=self.time_limit, row_name=self.row_name)
        point = rest.minimize(unit[np.newaxis], None, keep_going=False)[0]
        if rest.bounds is not fixed:  # loosened
            self.loosened[row] = replace(self.bounds, row_lower=rest.bounds.row_lower, row_upper=rest.bounds.row_upper)
        return rounded(point, self.program), bound

    def run(self, highs: Highs, unit: FloatArray, row: int) -> bool:
        """Return whether HiGHS finds an optimum or, if a limit comes first and that will do, any point."""
        self.stopped.discard(row)
        if highs.run(_LENGTH * unit):
            return True
        if self.keep_best and highs.stopped_at_a_point():
            self.stopped.add(row)
        return row in self.stopped

    def read(self, highs: Highs, row: int) -> tuple[FloatArray, float]:
        """Return the point of a run, and the bound on its value."""
        point = np.array(highs.solver.getSolution().col_value)
        self.proved[row] = bound = highs.solver.getInfo().mip_dual_bound / _LENGTH
        return rounded(point, self.program), bound

    def unproved(self, units: FloatArray, values: FloatArray, proofs: FloatArray, program: Program) -> BoolArray:
        """Return where the value is above its bound, or above that of another point, by more than the gap allowed."""
        points = values[:, : units.shape[1]]
        terms = units * points
        own = terms.sum(axis=1)
        allowed = _UNPROVED * (1.0 + np.abs(terms).sum(axis=1)) + self.gap * np.abs(own)
        if not self.by_row:
            kept = points[~program.violated(values).any(axis=1)]
            self.whole = np.vstack([kept, self.whole])[:_MOST_KNOWN]
            proofs = np.minimum(proofs, (units @ self.whole.T).min(axis=1, initial=np.inf))
        return np.asarray(~(own - proofs <= allowed))
