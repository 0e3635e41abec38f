"""Gurobi, SCIP and CP-SAT in the place of HiGHS: optimal points of a program by a solver that the user names.

Each solves every row from the beginning, so that an answer depends on its own row alone; of optimal points it returns
the one that it finds first. An answer is checked against the program, and its value against the bound that the solver
proves.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.batches import check_time, seconds_left
from decidewise.kit.checks import FloatArray, as_choice
from decidewise.kit.errors import InfeasibleError, SolverError
from decidewise.kit.gaps import note_gaps
from decidewise.kit.lazy import require
from decidewise.kit.scaling import norms, unit_rows
from decidewise.solvers.conic import ConicRegion
from decidewise.solvers.highs import Solver, rounded
from decidewise.solvers.program import Program

#: How far beyond a constraint an answer may be, in units of what is added up there: the limit of the solvers is 1e-9.
_FEASIBLE = 1e-8
#: How far above its bound a value may be, as a part of what is added up: of a linear program, and of cones and squares.
_UNPROVED, _UNPROVED_CURVED = 1e-7, 1e-5
#: Costs of linear programs have this length: some tolerances are absolute.
_LENGTH = 1e3
#: The largest value of an objective in whole numbers, for CP-SAT: costs are rounded to this part of it.
_MOST = 2.0**52


class RowOutcome(NamedTuple):
    """What a solver says of one row: "optimal", "limit", "infeasible" or else its own word; a point, if it has one."""

    status: str
    point: FloatArray | None = None
    bound: float = -np.inf


_ADVICE = {
    "limit": "Time limit reached: give it a longer time_limit, allow a gap, or take the best found: on_limit='best'.",
    "infeasible": "No decision keeps all constraints.",
}


@dataclass
class OtherSolver(Solver):
    """Optimal points of one program by another solver; a subclass loads a program and runs a row of costs.

    Parameters
    ----------
    quadratic : csr_array of shape (n, n), optional
        `Q`, positive semidefinite: then `½ w'Qw` is part of the objective.
    cones : ConicRegion, optional
        Further constraints.
    """

    quadratic: csr_array | None = None
    cones: ConicRegion | None = None

    name: ClassVar[str]
    extra: ClassVar[str]

    def __post_init__(self) -> None:
        require(self.extra, by=f'solver="{self.extra}"')
        self._check()

    def _check(self) -> None:
        """Raise a `ValueError` if the solver cannot take such a program."""
        if self.cones is not None and not {kind for kind, *_ in self.cones.cones} <= _TAKEN:
            raise ValueError(
                f"{self.name} is given linear, quadratic and second-order constraints only, and the problem has others."
            )

    def minimize(self, costs: FloatArray, bounds: Program | None = None) -> FloatArray:
        """Return an optimal point for each row of costs, (r, n) -> (r, n), within the bounds of the row if given."""
        points, model = np.full(costs.shape, np.nan), None
        gaps, stopped = np.zeros(len(costs)), np.zeros(len(costs), dtype=bool)
        for row, scaled in enumerate(_LENGTH * unit_rows(costs) if self.quadratic is None else costs):
            check_time()
            program = self.program
            if bounds is not None:
                program = replace(bounds.take(row), integrality=program.integrality)
                model = self._load(program)
            elif model is None:
                # Each thread takes a model of its own. One that was interrupted does not come back.
                model = self._idle.pop() if self._idle else self._load(program)
            try:
                points[row], gaps[row], stopped[row] = self._solve(model, program, scaled, row)
            except SolverError:
                if not self.keep_going:
                    raise
        if bounds is None and model is not None:
            self._idle.append(model)
        if self.quadratic is None:
            gaps *= norms(costs) / _LENGTH
        note_gaps(gaps, stopped)
        return points

    def _solve(self, model: Any, program: Program, costs: FloatArray, row: int) -> tuple[FloatArray, float, bool]:
        """Return the point, the gap between its value and the bound, and whether a limit stopped the search."""
        seconds = min(np.inf if self.time_limit is None else self.time_limit, seconds_left())
        is_empty = (program.lower > program.upper).any()  # which some solvers call a mistake
        outcome = RowOutcome("infeasible") if is_empty else self._run(model, costs, seconds)
        check_time()
        is_stopped = outcome.status == "limit" and self.keep_best
        if outcome.point is None or not (is_stopped or outcome.status == "optimal"):
            kind = InfeasibleError if outcome.status == "infeasible" else SolverError
            advice = _ADVICE.get(outcome.status, "Bound the variables, or bring rows and costs to similar sizes.")
            raise kind(f"{self.name} ended with status {outcome.status!r}. {advice}", row=row)
        point = np.clip(rounded(outcome.point, program), program.lower, program.upper) + 0.0  # no -0.0
        values = program.values(point[np.newaxis])
        is_held = self.cones is None or self.cones.holds(point[np.newaxis]).all()
        if not is_held or program.violated(values, _FEASIBLE).any():
            raise SolverError(
                f"{self.name} returned a decision that breaks a constraint. Bring rows to similar sizes.", row=row
            )
        terms = [costs * point] if self.quadratic is None else [costs * point, point * (self.quadratic @ point) / 2]
        value, size = sum(term.sum() for term in terms), sum(np.abs(term).sum() for term in terms)
        is_curved = self.cones is not None or self.quadratic is not None
        allowed = (_UNPROVED_CURVED if is_curved else _UNPROVED) * (np.abs(costs).max() + size) + self.gap * abs(value)
        gap = max(value - outcome.bound, 0.0)
        if not (is_stopped or gap <= allowed):
            raise SolverError(
                f"{self.name} returned a decision that costs more than it proves. Bring rows and costs to similar "
                "sizes.",
                row=row,
            )
        return point, gap if is_stopped or self.gap else 0.0, is_stopped

    @abstractmethod
    def _load(self, program: Program) -> Any:
        """Return the solver with a program in it."""

    @abstractmethod
    def _run(self, model: Any, costs: FloatArray, seconds: float) -> RowOutcome:
        """Minimise from the beginning."""


class GurobiSolver(OtherSolver):
    """Gurobi, which needs a licence for more than 2,000 variables or constraints."""

    name, extra = "Gurobi", "gurobi"

    def _load(self, program: Program) -> Any:
        import gurobipy  # noqa: PLC0415  (an extra)

        settings = {"FeasibilityTol": 1e-9, "IntFeasTol": 1e-9, "MIPGap": self.gap, "MIPGapAbs": 0}
        if self.cones is not None:
            settings |= {"BarQCPConvTol": 1e-9, "MIQCPMethod": 0}
        try:
            model = gurobipy.Model(env=gurobipy.Env(params={"OutputFlag": 0, "Threads": 1, **settings}))
        except gurobipy.GurobiError as error:
            raise SolverError(f"{self.name} does not start: {error}. It needs a licence here.", row=0) from error
        kinds = "C" if program.integrality is None else np.where(program.integrality, "I", "C")
        variables = model.addMVar(len(program.lower), lb=program.lower, ub=program.upper, vtype=kinds)
        rows = program.A.tocsr()
        for sign, side in ((1.0, program.row_upper), (-1.0, -program.row_lower)):
            bounded = np.isfinite(side)
            if bounded.any():
                model.addMConstr(sign * rows[bounded], variables, "<", side[bounded])
        for A, b, kind in _parts(self.cones):
            if kind == "SecondOrderConeT":
                slacks = model.addMVar(len(b), lb=np.where(np.arange(len(b)) == 0, 0.0, -np.inf))
                model.addConstr(A @ variables + slacks == b)
                model.addConstr(slacks[1:] @ slacks[1:] <= slacks[0] * slacks[0])
            else:
                model.addMConstr(A, variables, "=" if kind == "ZeroConeT" else "<", b)
        return model, variables

    def _run(self, model: Any, costs: FloatArray, seconds: float) -> RowOutcome:
        import gurobipy  # noqa: PLC0415

        model, variables = model
        model.reset()
        if np.isfinite(seconds):
            model.Params.TimeLimit = max(seconds, 0.0)
        squares = 0.0 if self.quadratic is None else variables @ (self.quadratic / 2) @ variables
        model.setObjective(costs @ variables + squares, gurobipy.GRB.MINIMIZE)
        try:
            model.optimize()
        except gurobipy.GurobiError as error:
            raise SolverError(f"{self.name} does not solve it: {error}. It may need a licence.", row=0) from error
        codes = {2: "optimal", 3: "infeasible", 4: "infeasible or unbounded", 5: "unbounded", 9: "limit"}
        point = np.asarray(variables.X) if model.SolCount else None
        bound = model.ObjVal if model.Status == gurobipy.GRB.OPTIMAL and not model.IsMIP else None
        if bound is None:
            bound = model.ObjBound if model.IsMIP else -np.inf
        return RowOutcome(codes.get(model.Status, str(model.Status)), point, bound)


class ScipSolver(OtherSolver):
    """SCIP, by PySCIPOpt."""

    name, extra = "SCIP", "scip"

    def _load(self, program: Program) -> Any:
        from pyscipopt import Model  # noqa: PLC0415  (an extra)

        model = Model()
        model.hideOutput()
        # Where a region is curved, cuts come ever closer to it.
        is_curved = self.cones is not None or self.quadratic is not None
        gap = max(self.gap, 1e-7) if is_curved else self.gap
        model.setParams({"numerics/feastol": 1e-7 if is_curved else 1e-9, "limits/gap": gap, "limits/absgap": 0.0})
        whole = np.zeros(len(program.lower), bool) if program.integrality is None else program.integrality
        variables = [
            model.addVar(lb=_finite(lower), ub=_finite(upper), vtype="I" if is_whole else "C")
            for lower, upper, is_whole in zip(program.lower, program.upper, whole, strict=True)
        ]
        for terms, lower, upper in zip(
            _sums(program.A.tocsr(), variables), program.row_lower, program.row_upper, strict=True
        ):
            for side, is_upper in ((_finite(upper), True), (_finite(lower), False)):
                if side is not None:
                    model.addCons(terms <= side if is_upper else terms >= side)
        for A, b, kind in _parts(self.cones):
            slacks = [0.0] * len(b)
            if kind == "SecondOrderConeT":
                slacks = [model.addVar(lb=None if k else 0.0) for k in range(len(b))]
                model.addCons(_sum(slack * slack for slack in slacks[1:]) <= slacks[0] * slacks[0])
            for terms, slack, side in zip(_sums(A, variables), slacks, b.tolist(), strict=True):
                model.addCons(terms + slack <= side if kind == "NonnegativeConeT" else terms + slack == side)
        square = None
        if self.quadratic is not None:
            square = model.addVar(lb=None)
            bent = self.quadratic.tocoo()
            (i, j), values = bent.coords, bent.data
            model.addCons(
                _sum(a / 2 * variables[k] * variables[m] for k, m, a in zip(i, j, values, strict=True)) <= square
            )
        return model, variables, square

    def _run(self, model: Any, costs: FloatArray, seconds: float) -> RowOutcome:
        model, variables, square = model
        model.freeTransform()
        if np.isfinite(seconds):
            model.setParam("limits/time", max(seconds, 0.0))
        terms = [cost * variable for cost, variable in zip(costs.tolist(), variables, strict=True) if cost]
        model.setObjective(_sum([*terms, *([] if square is None else [square])]), "minimize")
        model.optimizeNogil()
        codes = {"gaplimit": "optimal", "timelimit": "limit"}
        status = codes.get(model.getStatus(), model.getStatus())
        point = np.array([model.getVal(variable) for variable in variables]) if model.getNSols() else None
        return RowOutcome(status, point, model.getDualbound())


class CpSatSolver(OtherSolver):
    """CP-SAT of OR-Tools, for programs in whole numbers alone.

    >>> from decidewise.problems import LinearProgram
    >>> pack = LinearProgram([[3, 4, 5]], [7], upper=1, integrality=1, sense="max", solver="cp-sat")
    >>> pack, pack.solve([2.0, 2.0, 3.0])
    (LinearProgram(n_costs=3, sense='max'), array([1., 1., 0.]))
    """

    name, extra = "CP-SAT", "cp-sat"

    def _check(self) -> None:
        program, why = self.program, ""
        if self.cones is not None or self.quadratic is not None:
            why = "it is not linear"
        elif program.integrality is None or not program.integrality.all():
            why = "some variables are not in whole numbers"
        elif not (np.isfinite(program.lower) & np.isfinite(program.upper)).all():
            why = "some variables have no bounds"
        elif (program.A.data % 1 != 0).any() or np.abs(program.A.data).max(initial=0.0) > _MOST:
            why = "some constraints have factors that are not whole numbers; multiply them by 10 or 100, say"
        if why:
            raise ValueError(f'CP-SAT cannot take the program: {why}. Leave out solver="cp-sat", or take "scip".')

    def _load(self, program: Program) -> Any:
        from ortools.sat.python import cp_model  # noqa: PLC0415  (an extra)

        model = cp_model.CpModel()
        variables = [
            model.new_int_var(int(lower), int(upper), "")
            for lower, upper in zip(program.lower, program.upper, strict=True)
        ]
        rows = program.A.tocsr()
        for k, (lower, upper) in enumerate(zip(program.row_lower, program.row_upper, strict=True)):
            entries = slice(rows.indptr[k], rows.indptr[k + 1])
            terms = cp_model.LinearExpr.weighted_sum(
                [variables[j] for j in rows.indices[entries]], rows.data[entries].astype(np.int64).tolist()
            )
            if np.isfinite(upper):
                model.add(terms <= int(np.floor(upper + _FEASIBLE * (1.0 + abs(upper)))))
            if np.isfinite(lower):
                model.add(terms >= int(np.ceil(lower - _FEASIBLE * (1.0 + abs(lower)))))
        return model, variables, np.maximum(np.abs(program.lower), np.abs(program.upper))

    def _run(self, model: Any, costs: FloatArray, seconds: float) -> RowOutcome:
        from ortools.sat.python import cp_model  # noqa: PLC0415

        model, variables, reach = model
        largest = float(np.abs(costs) @ reach)
        unit = 2.0 ** np.floor(np.log2(_MOST / largest)) if largest > 0 else 1.0
        model.minimize(cp_model.LinearExpr.weighted_sum(variables, np.rint(unit * costs).astype(np.int64).tolist()))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers, solver.parameters.random_seed = 1, 0
        solver.parameters.relative_gap_limit = self.gap
        if np.isfinite(seconds):
            solver.parameters.max_time_in_seconds = max(seconds, 0.0)
        code = solver.solve(model)
        if code not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return RowOutcome({cp_model.UNKNOWN: "limit"}.get(code, solver.status_name(code).lower()))
        point = np.array([solver.value(variable) for variable in variables], dtype=float)
        return RowOutcome("optimal" if code == cp_model.OPTIMAL else "limit", point, solver.best_objective_bound / unit)


#: The solvers that a user may name besides HiGHS.
OTHERS: dict[str, type[OtherSolver]] = {solver.extra: solver for solver in (GurobiSolver, ScipSolver, CpSatSolver)}


def solver_class(name: str | None, also: tuple[str, ...] = ()) -> type[OtherSolver] | None:
    """Return the solver of a name, and None for None and for the names in `also`, of what solves by default."""
    if name is None or as_choice(name, name="solver", choices=(*also, *OTHERS)) in also:
        return None
    return OTHERS[name]


#: The cones that they are given.
_TAKEN = {"ZeroConeT", "NonnegativeConeT", "SecondOrderConeT"}


def _parts(region: ConicRegion | None) -> Any:
    """Return `A`, `b` and the kind of each cone."""
    return [] if region is None else [(region.A.tocsr()[rows], region.b[rows], kind) for kind, _, rows in region.blocks]


def _finite(side: float) -> float | None:
    return float(side) if np.isfinite(side) else None


def _sum(terms: Any) -> Any:
    from pyscipopt import quicksum  # noqa: PLC0415  (an extra)

    return quicksum(terms)


def _sums(A: csr_array, variables: list[Any]) -> list[Any]:
    """Return the expression of each row."""
    return [
        _sum(a * variables[j] for j, a in zip(A.indices[part], A.data[part].tolist(), strict=True))
        for part in (slice(start, stop) for start, stop in zip(A.indptr, A.indptr[1:], strict=False))
    ]
