"""Use a model written with gurobipy as a problem. Its matrices are read once; the model itself stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, as_choice
from decidewise.kit.errors import SolverError
from decidewise.kit.scaling import unit_rows
from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.quadratic_program import QuadraticProgram
from decidewise.problems.readers.translation import read_program, refused, sides
from decidewise.solvers.highs import Solver, rounded
from decidewise.solvers.program import Program

#: How far beyond a constraint an answer of Gurobi may be, in units of what is added up there: its own limit is 1e-9.
_FEASIBLE = 1e-8
#: The counts and flags of a model that are of what is translated, or change no solution.
_TRANSLATED = {
    *("NumVars", "NumConstrs", "NumNZs", "NumIntVars", "NumBinVars", "IsMIP", "NumObj", "NumObjPasses", "NumStart"),
    *("IsQP", "NumQNZs"),
}
#: All others, in words.
_REFUSED = {
    **dict.fromkeys(("IsQCP", "NumQConstrs", "NumQCNZs"), "quadratic constraints"),
    "NumSOS": "special ordered sets",
    "NumGenConstrs": "general constraints",
    "NumPWLObjVars": "piecewise linear costs",
    "IsMultiObj": "several objectives",
    "NumScenarios": "several scenarios",
}


def from_gurobi(
    model: Any, variables: Any = None, *, solver: Literal["highs", "gurobi"] = "highs", **options: Any
) -> LinearProgram:
    """Take the linear program of a `gurobipy.Model`, or the quadratic one, whose quadratic term is known.

    Where a variable has a predicted cost, that of the model is left out; its other costs are known costs, and its
    constant is the offset. The problem can be pickled, as a model cannot.

    Parameters
    ----------
    model : gurobipy.Model
        Of linear constraints, without special ordered sets and general constraints.
    variables : optional
        Which variables have predicted costs: a `Var`, a list, an `MVar` or a `tupledict` of them, or their names, or a
        pattern of names; see `LinearProgram`. By default all of them.
    solver : {"highs", "gurobi"}
        Who solves. Gurobi needs a licence wherever the problem goes. It solves every row from the beginning, and ties
        go to the decision that it finds first.
    options
        Others of `LinearProgram`: `time_limit`, `gap`, `on_error`.

    Examples
    --------
    >>> import gurobipy as gp
    >>> with gp.Env(params={"OutputFlag": 0}) as environment, gp.Model(env=environment) as model:
    ...     hours = model.addVars(3, ub=1.0, name="hours")
    ...     _ = model.addConstr(hours.sum() == 2)
    ...     problem = from_gurobi(model, hours)
    >>> problem.solve([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])  # by HiGHS, without a licence
    array([[0., 1., 1.],
           [1., 1., 0.]])
    """
    as_choice(solver, name="solver", choices=("highs", "gurobi"))
    if not all(hasattr(model, name) for name in ("getA", "getVars", "ModelSense")):
        raise TypeError(f"from_gurobi needs a gurobipy.Model; got {type(model).__name__}.")
    model.update()
    _check(model)
    columns, rows = model.getVars(), model.getConstrs()
    names = model.getAttr("VarName", columns)
    half = csr_array(model.getQ()) if model.IsQP else None
    problem = read_program(
        np.array(model.getAttr("Obj", columns)),
        model.getA(),
        sides(model.getAttr("Sense", rows), _infinite(model.getAttr("RHS", rows))),
        (_infinite(model.getAttr("LB", columns)), _infinite(model.getAttr("UB", columns))),
        model.getAttr("VType", columns),
        quadratic=None if half is None else half + half.T,
        costs=_places(variables, columns),
        names=names if len(set(names)) == len(names) else None,
        constraint_names=model.getAttr("ConstrName", rows),
        offset=model.ObjCon,
        sense="min" if model.ModelSense > 0 else "max",
        **options,
    )
    if solver == "gurobi":
        if isinstance(problem, QuadraticProgram):
            raise ValueError("the objective is quadratic, and DAQP and Clarabel solve it: leave out solver='gurobi'.")
        problem._solve_by(GurobiSolver)
    return problem


def _check(model: Any) -> None:
    """Refuse whatever the model counts that is not translated."""
    import gurobipy  # noqa: PLC0415  (an extra)

    counts = [name for name in dir(gurobipy.GRB.Attr) if name.startswith(("Num", "Is")) and name not in _TRANSLATED]
    found = [_REFUSED.get(name, name) for name in counts if model.getAttr(name)]
    if not {*model.getAttr("VType", model.getVars())} <= {*"CBI"}:
        found.append("semi-continuous variables")
    if found:
        raise ValueError(refused("the Gurobi model", " and ".join(dict.fromkeys(found))))
    if model.NumVars == 0:
        raise ValueError("the Gurobi model has no variables.")


def _places(variables: Any, columns: list[Any]) -> Any:
    """Return indices where Gurobi's own variables were given, and anything else as it is."""
    if variables is None or isinstance(variables, str):
        return variables
    if hasattr(variables, "sameAs") and not hasattr(variables, "tolist"):
        variables = [variables]
    elif hasattr(variables, "values"):  # a dictionary of variables
        variables = list(variables.values())
    elif hasattr(variables, "tolist"):  # a matrix variable, or an array
        variables = np.array(variables.tolist()).ravel().tolist()
    variables = list(variables)
    if not all(hasattr(variable, "sameAs") for variable in variables):
        return variables
    for variable in variables:
        if not 0 <= variable.index < len(columns) or not columns[variable.index].sameAs(variable):
            raise ValueError("variables has one that is not part of the model. Pass those of this model, or names.")
    return [variable.index for variable in variables]


def _infinite(bounds: Any) -> FloatArray:
    """Return bounds with what is infinite for Gurobi, from 1e20 on, as ours."""
    values = np.array(bounds, dtype=float)
    return np.where(np.abs(values) >= 1e20, np.copysign(np.inf, values), values)


@dataclass
class GurobiSolver(Solver):
    """Optimal points by Gurobi, every row from the beginning."""

    _idle: list[Any] = field(default_factory=list, repr=False, compare=False)

    def minimize(self, costs: FloatArray, bounds: Program | None = None) -> FloatArray:
        """Return an optimal point for each row of costs: (r, n) -> (r, n). There are no bounds by row."""
        import gurobipy  # noqa: PLC0415  (an extra)

        model, variables = self._idle.pop() if self._idle else self._load()
        points = np.empty(costs.shape)
        for row, unit in enumerate(unit_rows(costs)):
            check_time()
            model.reset()
            variables.Obj = 1e3 * unit
            model.optimize()
            if model.Status == gurobipy.GRB.OPTIMAL:
                points[row] = rounded(np.asarray(variables.X), self.program)
            elif self.keep_going:
                points[row] = np.nan
            else:
                advice = {3: "No decision keeps all constraints.", 9: "Give it a longer time_limit, or allow a gap."}
                text = advice.get(model.Status, "Bound the variables, or bring rows and costs to similar sizes.")
                raise SolverError(f"Gurobi ended with status {model.Status}. {text}", row=row)
        self._idle.append((model, variables))
        solved = np.flatnonzero(~np.isnan(points[:, 0]))
        broken = solved[self.program.violated(self.program.values(points[solved]), _FEASIBLE).any(axis=1)]
        if len(broken) and not self.keep_going:
            raise SolverError(
                "Gurobi returned a decision that breaks a constraint. Bring rows to similar sizes.", row=int(broken[0])
            )
        points[broken] = np.nan
        return points

    def _load(self) -> tuple[Any, Any]:
        import gurobipy  # noqa: PLC0415

        program = self.program
        tolerances = {"FeasibilityTol": 1e-9, "IntFeasTol": 1e-9, "MIPGap": self.gap, "MIPGapAbs": 0}
        quiet = gurobipy.Env(params={"OutputFlag": 0, "Threads": 1, **tolerances})
        model = gurobipy.Model(env=quiet)
        if self.time_limit is not None:
            model.Params.TimeLimit = self.time_limit
        kinds = "C" if program.integrality is None else np.where(program.integrality, "I", "C")
        variables = model.addMVar(len(program.lower), lb=program.lower, ub=program.upper, vtype=kinds)
        rows = program.A.tocsr()
        for sign, side in ((1.0, program.row_upper), (-1.0, -program.row_lower)):
            bounded = np.isfinite(side)
            if bounded.any():
                model.addMConstr(sign * rows[bounded], variables, "<", side[bounded])
        return model, variables
