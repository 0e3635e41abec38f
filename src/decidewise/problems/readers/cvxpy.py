"""Use a problem written with CVXPY as one of ours: it is compiled once, and then only a parameter changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack

from decidewise.problems.linear_program import LinearProgram


def from_cvxpy(problem: Any, parameter: Any, **options: Any) -> LinearProgram:
    """Take a linear program, also with variables in whole numbers, whose predicted costs are a CVXPY parameter.

    The decision is how much of each entry of the parameter is paid: for the objective `price @ (sell - buy)` it is
    `sell - buy`. What else the objective has is a known cost. Other parameters keep the values that they have now.

    Parameters
    ----------
    problem : cvxpy.Problem
        That follows the rules of disciplined parametrised programming (`problem.is_dpp()`).
    parameter : cvxpy.Parameter
        The predicted costs, in the objective only. A matrix is written row by row.
    options
        Others of `LinearProgram`: `time_limit`, `gap`, `on_error`.

    Returns
    -------
    problem : LinearProgram
        With the sense of the objective. It can be pickled, and holds nothing of CVXPY.
    """
    if not hasattr(problem, "get_problem_data") or not hasattr(parameter, "is_nonneg"):
        raise TypeError(
            f"from_cvxpy needs a cvxpy.Problem and a cvxpy.Parameter; got {type(problem).__name__} and "
            f"{type(parameter).__name__}."
        )
    others = _check_parameters(problem, parameter)
    data = _compiled(problem)
    program = data["param_prob"]
    n = len(data["c"])
    places = _places(program, parameter)
    # The costs of all variables, and below them the constant, are linear in (parameters, 1).
    objective = csr_array(program.q)
    rest = np.zeros(objective.shape[1])
    rest[program.param_id_to_col[-1]] = 1.0
    for other in others:
        rest[_places(program, other)] = np.ravel(np.asarray(_value(other), dtype=float))
    sign = -1.0 if _maximises(problem) else 1.0
    amounts, known = sign * objective[:, places].T, sign * (objective @ rest)
    equal = data["dims"].zero
    A = csr_array(data["A"])
    lower, upper = _bounds(data, n)
    if csc_array(amounts)[:, [n]].nnz:  # a constant per cost: the amount of a variable that is always 1
        A = csr_array(hstack([A, csr_array((A.shape[0], 1))]))
        lower, upper = np.append(lower, 1.0), np.append(upper, 1.0)
        base, names = np.append(known[:-1], 0.0), [*_names(program, n), "one"]
    else:
        amounts, base, names = amounts[:, :n], known[:-1], _names(program, n)
    whole = np.zeros(len(lower))
    whole[[*data["bool_vars_idx"], *data["int_vars_idx"]]] = 1
    for j in data["bool_vars_idx"]:
        lower[j], upper[j] = max(lower[j], 0.0), min(upper[j], 1.0)
    return LinearProgram(
        A[equal:], data["b"][equal:], A[:equal], data["b"][:equal], lower, upper,
        integrality=whole, costs=csr_array(amounts), known=base, offset=float(known[-1]), names=names,
        sense="max" if sign < 0 else "min", **options,
    )  # fmt: skip


def _check_parameters(problem: Any, parameter: Any) -> list[Any]:
    """Return the other parameters, all of which have values; refuse what the parameter must not do."""
    mine = [known for known in problem.parameters() if known.id == parameter.id]
    if not mine:
        names = ", ".join(known.name() for known in problem.parameters()) or "none"
        raise ValueError(f"the problem does not depend on the parameter {parameter.name()!r}; its parameters: {names}.")
    if any(known.id == parameter.id for constraint in problem.constraints for known in constraint.parameters()):
        raise ValueError(
            f"the parameter {parameter.name()!r} is in a constraint. Predicted costs must be in the objective only."
        )
    if not problem.is_dpp():
        raise ValueError(
            "the problem is not a disciplined parametrised program, so it cannot be compiled once for all costs: write "
            "the objective as parameter @ expression, and products of parameters as parameters of their own."
        )
    others = [known for known in problem.parameters() if known.id != parameter.id]
    empty = [known.name() for known in others if known.value is None]
    if empty:
        raise ValueError(f"the parameters {', '.join(empty)} have no value. Set them: only {parameter.name()} changes.")
    return others


def _compiled(problem: Any) -> dict[str, Any]:
    """Return what CVXPY would pass to HiGHS."""
    import cvxpy  # noqa: PLC0415  (an extra)

    if not problem.is_dcp() or (problem.is_qp() and not problem.is_lp() and not problem.is_mixed_integer()):
        raise ValueError(_NOT_LINEAR)
    try:
        data = problem.get_problem_data(cvxpy.HIGHS)[0]
    except cvxpy.error.SolverError as reason:
        raise ValueError(f"{_NOT_LINEAR} ({reason})") from reason
    if data["param_prob"].P is not None or len(data["dims"].soc) or len(data["dims"].psd) or data["dims"].exp:
        raise ValueError(_NOT_LINEAR)
    return dict(data)


_NOT_LINEAR = (
    "only linear programs, also in whole numbers, can be taken over from CVXPY: the objective or a constraint is "
    "quadratic or needs a cone. Set the parameter and solve row by row instead, by from_function."
)


def _places(program: Any, parameter: Any) -> Any:
    """Return where the entries of a parameter stand, row by row; CVXPY writes them column by column."""
    order = np.arange(parameter.size).reshape(parameter.shape, order="F")
    return program.param_id_to_col[parameter.id] + order.ravel()


def _value(parameter: Any) -> Any:
    return parameter.value.toarray() if hasattr(parameter.value, "toarray") else parameter.value


def _maximises(problem: Any) -> bool:
    return type(problem.objective).__name__ == "Maximize"


def _bounds(data: dict[str, Any], n: int) -> tuple[Any, Any]:
    lower, upper = data["lower_bounds"], data["upper_bounds"]
    return (
        np.full(n, -np.inf) if lower is None else np.array(lower, dtype=float),
        np.full(n, np.inf) if upper is None else np.array(upper, dtype=float),
    )


def _names(program: Any, n: int) -> list[str]:
    """Return `x` for a number, `x[0]` and so on for the entries of an array, column by column as CVXPY has them."""
    names = [f"w{j}" for j in range(n)]
    for variable in program.variables:
        start = program.var_id_to_col[variable.id]
        for k in range(variable.size):
            place = ", ".join(map(str, np.unravel_index(k, variable.shape, order="F"))) if variable.shape else ""
            names[start + k] = f"{variable.name()}[{place}]" if place else variable.name()
    return names if len(set(names)) == n else [f"w{j}" for j in range(n)]
