"""Use a model written with gurobipy as a problem. Its matrices are read once; the model itself stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.checks import FloatArray
from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.readers.switches import Indicator, OrderedSet
from decidewise.problems.readers.translation import read_program, refused, sides

#: The counts and flags of a model that are of what is translated, or change no solution.
_TRANSLATED = {
    *("NumVars", "NumConstrs", "NumNZs", "NumIntVars", "NumBinVars", "IsMIP", "NumObj", "NumObjPasses", "NumStart"),
    *("IsQP", "NumQNZs", "NumSOS", "NumGenConstrs"),  # of these, indicators: see `_indicators`
}
#: All others, in words.
_REFUSED = {
    **dict.fromkeys(("IsQCP", "NumQConstrs", "NumQCNZs"), "quadratic constraints"),
    "NumPWLObjVars": "piecewise linear costs",
    "IsMultiObj": "several objectives",
    "NumScenarios": "several scenarios",
}


def from_gurobi(model: Any, variables: Any = None, **options: Any) -> LinearProgram:
    """Take the linear program of a `gurobipy.Model`, or the quadratic one, whose quadratic term is known.

    Where a variable has a predicted cost, that of the model is left out; its other costs are known costs, and its
    constant is the offset. The problem can be pickled, as a model cannot.

    Parameters
    ----------
    model : gurobipy.Model
        Of linear constraints. Semi-continuous variables, special ordered sets and indicators become constraints with
        binary variables, if the variables have bounds; other general constraints are refused.
    variables : optional
        Which variables have predicted costs: a `Var`, a list, an `MVar` or a `tupledict` of them, or their names, or a
        pattern of names; see `LinearProgram`. By default all of them.
    options
        Others of `LinearProgram`: `solver` (Gurobi needs a licence wherever the problem goes), `time_limit`, `gap`,
        `on_error`.

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
    if not all(hasattr(model, name) for name in ("getA", "getVars", "ModelSense")):
        raise TypeError(f"from_gurobi needs a gurobipy.Model; got {type(model).__name__}.")
    model.update()
    _check(model)
    columns, rows = model.getVars(), model.getConstrs()
    names = model.getAttr("VarName", columns)
    half = csr_array(model.getQ()) if model.IsQP else None
    return read_program(
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
        indicators=_indicators(model, len(columns)),
        sets=[_set(*model.getSOS(found)) for found in model.getSOSs()],
        sense="min" if model.ModelSense > 0 else "max",
        **options,
    )


def _check(model: Any) -> None:
    """Refuse whatever the model counts that is not translated."""
    import gurobipy  # noqa: PLC0415  (an extra)

    counts = [name for name in dir(gurobipy.GRB.Attr) if name.startswith(("Num", "Is")) and name not in _TRANSLATED]
    found = [_REFUSED.get(name, name) for name in counts if model.getAttr(name)]
    kinds = {constraint.GenConstrType for constraint in model.getGenConstrs()}
    if kinds - {gurobipy.GRB.GENCONSTR_INDICATOR}:
        found.append("general constraints other than indicators")
    if found:
        raise ValueError(refused("the Gurobi model", " and ".join(dict.fromkeys(found))))
    if model.NumVars == 0:
        raise ValueError("the Gurobi model has no variables.")


def _indicators(model: Any, n: int) -> list[Indicator]:
    found = []
    for constraint in model.getGenConstrs():
        switch, value, left, sense, right = model.getGenConstrIndicator(constraint)
        factors = np.zeros(n)
        for k in range(left.size()):
            factors[left.getVar(k).index] += left.getCoeff(k)
        lower, upper = sides(sense, right - left.getConstant())
        found.append(Indicator(switch.index, int(value), factors, float(lower), float(upper)))
    return found


def _set(kind: int, variables: list[Any], weights: list[float]) -> OrderedSet:
    return OrderedSet(kind, np.array([variables[k].index for k in np.argsort(weights)], dtype=np.int64))


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
