"""Use a problem written with CVXPY as one of ours: it is compiled once, and then only a parameter changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack

from decidewise.kit.lazy import require
from decidewise.problems.conic_program import ConicProgram
from decidewise.problems.conic_program.cones import ConeRows
from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.quadratic_program import WHOLE, QuadraticProgram
from decidewise.solvers.conic import Kind
from decidewise.solvers.others import solver_class


def from_cvxpy(problem: Any, parameter: Any, **options: Any) -> LinearProgram | ConicProgram:
    """Take a linear program, also in whole numbers, a quadratic or a conic one, with a CVXPY parameter as its costs.

    The decision is how much of each entry of the parameter is paid: for the objective `price @ (sell - buy)` it is
    `sell - buy`. What else the objective has is a known cost. Other parameters keep the values that they have now.
    HiGHS solves what is linear, and DAQP or Clarabel squares in the objective, such as `quad_form` and `sum_squares`
    without the parameter, over linear constraints. Clarabel solves whatever CVXPY turns into cones: norms, quadratic
    constraints, matrices of variables, exponentials, logarithms, powers.

    Parameters
    ----------
    problem : cvxpy.Problem
        That follows the rules of disciplined parametrised programming (`problem.is_dpp()`).
    parameter : cvxpy.Parameter
        The predicted costs, in the objective only. A matrix is written row by row.
    options
        Others of `LinearProgram` or `ConicProgram`: `time_limit`, `gap` (only if linear), `on_error`.

    Returns
    -------
    problem : LinearProgram, QuadraticProgram or ConicProgram
        With the sense of the objective. It can be pickled, and holds nothing of CVXPY.

    Examples
    --------
    >>> import cvxpy as cp
    >>> price, hours = cp.Parameter(3), cp.Variable(3)
    >>> model = cp.Problem(cp.Minimize(price @ hours), [cp.sum(hours) == 2, hours >= 0, hours <= 1])
    >>> from_cvxpy(model, price).solve([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    array([[0., 1., 1.],
           [1., 1., 0.]])
    """
    if not hasattr(problem, "get_problem_data") or not hasattr(parameter, "is_nonneg"):
        raise TypeError(
            f"from_cvxpy needs a cvxpy.Problem and a cvxpy.Parameter; got {type(problem).__name__} and "
            f"{type(parameter).__name__}."
        )
    others = _check_parameters(problem, parameter)
    data = _compiled(problem, options.get("solver"))
    program = data["param_prob"]
    places = _places(program, parameter)
    _check_objective(program, parameter, places)
    n = len(data["c"])
    # The costs of all variables, and below them the constant, are linear in (parameters, 1).
    objective = csr_array(program.q)
    rest = np.zeros(objective.shape[1])
    rest[program.param_id_to_col[-1]] = 1.0
    for other in others:
        value = other.value.toarray() if hasattr(other.value, "toarray") else other.value
        rest[_places(program, other)] = np.ravel(np.asarray(value, dtype=float))
    sign = -1.0 if type(problem.objective).__name__ == "Maximize" else 1.0
    amounts, known = sign * objective[:, places].T, sign * (objective @ rest)
    A, b = csr_array(data["A"]), data["b"]
    lower, upper = _bounds(data, n)
    base, names = known[:-1], _names(program, n)
    if csc_array(amounts)[:, [n]].nnz:  # a constant per cost: the amount of a variable that is always 1
        A = csr_array(hstack([A, csr_array((A.shape[0], 1))]))
        lower, upper = np.append(lower, 1.0), np.append(upper, 1.0)
        base, names = np.append(base, 0.0), [*names, "one"]
    else:
        amounts = amounts[:, :n]
    arguments: dict[str, Any] = {
        "costs": csr_array(amounts), "known": base, "offset": float(known[-1]), "names": names,
        "sense": "max" if sign < 0 else "min",
    }  # fmt: skip
    cones = _cones(data["dims"], A.shape[0])
    equal, linear = data["dims"].zero, data["dims"].zero + data["dims"].nonneg
    whole = np.zeros(len(lower))
    whole[[*data.get("bool_vars_idx", ()), *data.get("int_vars_idx", ())]] = 1
    for j in data.get("bool_vars_idx", ()):
        lower[j], upper[j] = max(lower[j], 0.0), min(upper[j], 1.0)
    arguments |= {
        "A_ub": A[equal:linear], "b_ub": b[equal:linear], "A_eq": A[:equal], "b_eq": b[:equal], "lower": lower,
        "upper": upper, "integrality": whole,
    }  # fmt: skip
    if program.P is not None:
        quadratic = csr_array((sign * (csr_array(program.P) @ rest)).reshape(len(data["c"]), -1))
        quadratic.resize((len(names), len(names)))  # where there is one variable more
        return QuadraticProgram(quadratic, **arguments, **options)
    if cones:
        return ConicProgram(cones=[ConeRows(A[linear:], b[linear:], cones)], **arguments, **options)
    return LinearProgram(**arguments, **options)


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
    if not problem.is_dcp():
        raise ValueError(
            "the problem is not convex by CVXPY's rules (problem.is_dcp()), so it cannot be turned into cones. Write "
            "it by these rules, or solve it row by row by from_function."
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


def _compiled(problem: Any, solver: str | None) -> dict[str, Any]:
    """Return what CVXPY would pass to HiGHS or, if that cannot take it, to Clarabel or the solver of whole numbers.

    A quadratic term stays one if all constraints are linear; among cones it becomes one of them.
    """
    import cvxpy  # noqa: PLC0415  (an extra)

    try:
        data = problem.get_problem_data(cvxpy.HIGHS)[0]
        if data["param_prob"].P is None:
            return dict(data)
        reason = None
    except cvxpy.error.SolverError as error:
        reason = error
    if problem.is_mixed_integer():
        other = solver_class(solver, ("highs",))
        if other is None or other.name == "CP-SAT":
            raise ValueError(f"the problem has cones or squares, and {WHOLE}") from reason
        require(other.extra, by=f'solver="{solver}"')
        return dict(problem.get_problem_data(other.name.upper())[0])
    data = problem.get_problem_data(cvxpy.CLARABEL)[0]
    if data["param_prob"].P is not None and data["dims"].zero + data["dims"].nonneg < data["A"].shape[0]:
        data = problem.get_problem_data(cvxpy.CLARABEL, solver_opts={"use_quad_obj": False})[0]
    return dict(data)


def _check_objective(program: Any, parameter: Any, places: Any) -> None:
    """Refuse an objective that is not linear in the parameter, for whose present value the program would stay."""
    if program.P is not None and csc_array(program.P)[:, places].count_nonzero():
        raise ValueError(
            f"the quadratic term of the objective depends on the parameter {parameter.name()!r}, and it must be known: "
            "only what is linear in the variables is predicted. Use another parameter with a value, or solve it row by "
            "row by from_function."
        )
    for rows in (program.A, program.lb_tensor, program.ub_tensor):
        if rows is not None and csc_array(rows)[:, places].count_nonzero():
            raise ValueError(
                f"the objective is not linear in the parameter {parameter.name()!r}. Write it as "
                "parameter @ expression plus what does not depend on it, or solve it row by row by from_function."
            )


def _cones(dims: Any, n_rows: int) -> tuple[Kind, ...]:
    """Return the cones of the rows after the linear ones, in the order that CVXPY writes them for Clarabel."""
    sizes = [*dims.soc, *(k * (k + 1) // 2 for k in dims.psd), *(1 + len(exponents) for exponents in dims.pnd)]
    if dims.zero + dims.nonneg + sum(sizes) + 3 * (dims.exp + len(dims.p3d)) != n_rows:
        raise ValueError(f"the problem has cones of a kind that is not known here: {dims}")
    return (
        *(("SecondOrderConeT", size) for size in dims.soc),
        *(("PSDTriangleConeT", size) for size in dims.psd),
        *(("ExponentialConeT",) for _ in range(dims.exp)),
        *(("PowerConeT", exponent) for exponent in dims.p3d),
        *(("GenPowerConeT", exponents, 1) for exponents in dims.pnd),
    )


def _places(program: Any, parameter: Any) -> Any:
    """Return where the entries of a parameter stand, row by row; CVXPY writes them column by column."""
    if parameter.id not in program.param_id_to_col:  # CVXPY has put another one in its place
        raise ValueError(
            f"the parameter {parameter.name()!r} is declared as symmetric, diagonal, sparse or the like. Declare it "
            "with its shape alone."
        )
    order = np.arange(parameter.size).reshape(parameter.shape, order="F")
    return program.param_id_to_col[parameter.id] + order.ravel()


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
