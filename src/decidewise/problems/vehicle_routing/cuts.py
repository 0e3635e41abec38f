"""Tours and routes with a bound: good routes to begin with, then HiGHS, with constraints that are added where broken.

A set `S` of customers has at most `|S| - k(S)` edges inside, where `k(S)` is the number of vehicles that its demand
needs: neither subtours nor routes with too large a load are left (Laporte, Nobert and Desrochers, "Optimal Routing
under Capacity and Distance Restrictions", Operations Research 33, 1985). They are added to the linear relaxation while
its bound rises, and then to a program in whole numbers, of the edges that a better decision can have.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from decidewise.kit.checks import BoolArray, FloatArray
from decidewise.kit.errors import InfeasibleError, SolverError
from decidewise.kit.gaps import note_gaps
from decidewise.kit.scaling import unit_largest
from decidewise.problems.contract import Problem
from decidewise.problems.hard_rows import SECONDS
from decidewise.problems.vehicle_routing.fleet import Fleet
from decidewise.problems.vehicle_routing.good_routes import good_routes
from decidewise.solvers.program import Highs, Program

#: HiGHS sees costs of this size: it leaves improvements below 1e-6 undone.
LENGTH = 1e3
#: Values are equal if they differ by less, in units of the largest cost and the number of nodes.
EQUAL = 1e-8
#: The linear relaxation has enough constraints if `ROUNDS` rounds raised its bound by less than this part of the gap.
RISE, ROUNDS = 0.01, 10
#: The part of the time that looking for good routes may take.
FIRST_PART = 0.3


def routes_with_bound(problem: Problem, fleet: Fleet, costs: FloatArray) -> FloatArray:
    """Return decisions for rows of costs (n, m) within the limits of a problem; they note their gaps."""
    seconds = SECONDS if problem.time_limit is None else problem.time_limit
    decisions, gaps, stopped = np.full(costs.shape, np.nan), np.zeros(len(costs)), np.zeros(len(costs), np.bool_)
    for row, unit in enumerate(unit_largest(costs)):
        try:
            found, bound = cheapest_routes(unit, fleet, seconds, problem.gap)
            value = float(unit @ found)
            gap = max(0.0, value - bound - EQUAL * (len(fleet.demands) + 1))
            stopped[row] = gap > problem.gap * abs(value)
            if stopped[row] and problem.on_limit == "raise":
                raise SolverError(
                    f"no routes were proved to be the cheapest within {seconds:g} s. Give it a longer time_limit, "
                    "allow a gap, or take the best found: on_limit='best'.",
                    row=row,
                )
        except SolverError as error:
            if problem.on_error == "raise":
                raise error.at(row) from None
            continue
        decisions[row], gaps[row] = found, gap * np.abs(costs[row]).max()
    note_gaps(gaps, stopped)
    return decisions


def cheapest_routes(costs: FloatArray, fleet: Fleet, seconds: float, gap: float) -> tuple[FloatArray, float]:
    """Return the best decision found within some seconds (m,), and a bound that no decision is below.

    It stops as soon as the decision is within the gap of the bound, relative to its value. Costs are of size at most 1.
    """
    search = _Search(fleet, costs, gap, perf_counter() + seconds)
    search.take(good_routes(costs, fleet, FIRST_PART * seconds))
    search.relax()
    if not search.is_done:
        search.branch()
    if search.best is None:
        raise SolverError(
            f"no routes that serve all customers were found within {seconds:g} s. Give it a longer time_limit, more "
            "vehicles, or a larger capacity.",
            row=0,
        )
    return search.best, search.bound


class _Search:
    """The best decision so far, the bound, and the constraints that have been added."""

    best: FloatArray | None = None
    value = np.inf

    def __init__(self, fleet: Fleet, costs: FloatArray, gap: float, stop: float) -> None:
        self.fleet, self.costs, self.gap, self.stop = fleet, costs, gap, stop
        self.bound = fleet.least(costs)
        self.objective = np.append(LENGTH * costs, 0.0)
        self.program = fleet.program
        self.A, self.b = fleet.cuts(np.zeros((0, len(fleet.demands)), np.bool_))
        self.kept = np.ones(len(self.objective), np.bool_)

    @property
    def is_done(self) -> bool:
        close = max(EQUAL * (len(self.fleet.demands) + 1), self.gap * abs(self.value))
        return self.value - self.bound <= close

    @property
    def seconds_left(self) -> float:
        return max(1e-3, self.stop - perf_counter())

    def take(self, edges: FloatArray) -> None:
        """Keep a decision if it is feasible and the best so far."""
        point = self.point(edges)
        is_feasible = not self.program.violated(self.program.values(point[np.newaxis])).any()
        if is_feasible and not len(self.fleet.broken(edges)) and self.costs @ edges < self.value:
            self.best, self.value = edges, float(self.costs @ edges)

    def point(self, edges: FloatArray) -> FloatArray:
        """Return edges and the number of vehicles."""
        return np.append(edges, edges[: len(self.fleet.demands)].sum() / 2)

    def add(self, sets: BoolArray) -> tuple[csr_array, FloatArray]:
        """Add the constraints of some sets, and return them."""
        rows, sides = self.fleet.cuts(sets)
        self.A, self.b = csr_array(vstack([self.A, rows])), np.append(self.b, sides)
        return rows, sides

    def relax(self) -> None:
        """Raise the bound by constraints on the linear relaxation; keep those that bind, and edges of better decisions.

        An edge whose reduced cost is above the gap is in no better decision.
        """
        highs = Highs(self.program, time_limit=self.seconds_left)
        bounds: list[float] = []
        while highs.run(self.objective):
            solution = highs.solver.getSolution()
            edges, reduced, duals = (
                np.array(part) for part in (solution.col_value[:-1], solution.col_dual[:-1], solution.row_dual)
            )
            relaxed = highs.solver.getInfo().objective_function_value / LENGTH
            self.bound = max(self.bound, relaxed)
            bounds.append(self.bound)
            sets = self.fleet.broken(edges)
            is_slow = len(bounds) > ROUNDS and self.bound - bounds[-1 - ROUNDS] < RISE * (self.value - self.bound)
            if not len(sets) or is_slow or self.is_done or perf_counter() > self.stop:
                # Reduced costs are those of this relaxation, which the first bound may be above.
                close = self.value - relaxed + EQUAL * len(edges)
                self.kept[:-1] = reduced / LENGTH <= close
                if self.best is not None:
                    self.kept[:-1] |= self.best > 0
                binds = duals[len(duals) - len(self.b) :] != 0
                self.A, self.b = self.A[binds], self.b[binds]
                return
            highs.add_rows(*self.add(sets))
            highs.time_limit = self.seconds_left
        self.check(highs)

    def branch(self) -> None:
        """Solve in whole numbers, adding constraints, until nothing is broken or the time is up."""
        program, kept = self.program, self.kept
        while not self.is_done and perf_counter() < self.stop:
            whole = Program(
                A=csc_array(vstack([program.A, self.A]))[:, kept],
                row_lower=np.append(program.row_lower, np.full(len(self.b), -np.inf)),
                row_upper=np.append(program.row_upper, self.b),
                lower=program.lower[kept],
                upper=program.upper[kept],
                integrality=np.ones(kept.sum(), np.bool_),
            )
            options = {"mip_rel_gap": self.gap, "mip_abs_gap": 0.0, "mip_heuristic_run_feasibility_jump": False}
            highs = Highs(whole, time_limit=self.seconds_left, **options)
            if self.best is not None:
                highs.start_at(self.point(self.best)[kept])
            is_optimal = highs.run(self.objective[kept])
            bound = highs.solver.getInfo().mip_dual_bound / LENGTH
            self.bound = max(self.bound, min(self.value, bound))
            if not is_optimal and not highs.stopped_at_a_point():
                return self.check(highs)
            found = np.zeros(len(kept))
            found[kept] = np.round(highs.solver.getSolution().col_value) + 0.0  # no -0.0
            self.take(found[:-1])
            sets = self.fleet.broken(found[:-1])
            if not len(sets):
                return None
            self.add(sets)
        return None

    def check(self, highs: Highs) -> None:
        """Raise if HiGHS ended for another reason than the time."""
        error = highs.error(0)
        if isinstance(error, InfeasibleError) and self.best is None:
            raise InfeasibleError(
                "no routes serve all customers: allow more vehicles, or a larger capacity.", row=0
            ) from None
