"""What readers of models share: the program of what a tool keeps, and the words for what cannot be taken over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import block_diag, csr_array, hstack

from decidewise.kit.checks import FloatArray
from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.mapped_problem.arguments import Costs, as_map, is_map
from decidewise.problems.quadratic_program import QuadraticProgram
from decidewise.problems.readers.switches import Indicator, OrderedSet, Parts, switched


def refused(model: str, part: str) -> str:
    """Return the message that a model cannot be taken over, since it has such a part.

    >>> refused("plan.mps", "special ordered sets")[:77]
    'plan.mps has special ordered sets, and only linear programs, also in whole nu'
    """
    return (
        f"{model} has {part}, and only linear programs, also in whole numbers, can be taken over. Write it linearly, "
        "with binary variables where need be, or solve the problem by a function of your own: from_function."
    )


def sides(signs: Any, right: Any) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper sides of constraints with the signs `<`, `=` and `>`."""
    signs, right = np.asarray(signs), np.asarray(right, dtype=float)
    return np.where(signs == "<", -np.inf, right), np.where(signs == ">", np.inf, right)


def read_program(
    c: Any,
    A: Any,
    rows: tuple[FloatArray, FloatArray],
    columns: tuple[FloatArray, FloatArray],
    kinds: Any,
    *,
    quadratic: Any = None,
    costs: Costs = None,
    names: Sequence[str] | None = None,
    constraint_names: Sequence[str] = (),
    indicators: Sequence[Indicator] = (),
    sets: Sequence[OrderedSet] = (),
    **options: Any,
) -> LinearProgram:
    """Return the program `rows[0] <= A w <= rows[1]`, `columns[0] <= w <= columns[1]`, of a file or a modelling tool.

    Parameters
    ----------
    kinds : array of str, of shape (n,)
        "C", "I" or "B": any number, whole numbers, and those between 0 and 1; "S" and "N": zero, or any number or
        whole number within the bounds.
    quadratic : array-like or sparse, of shape (n, n), optional
        Without entries the program is linear.
    indicators, sets
        What is translated by binary variables, which come last, and have no predicted cost.
    costs, names, constraint_names, options
        Those of `LinearProgram.from_milp`.
    """
    n = len(np.asarray(c))
    own = [f"w{j}" for j in range(n)] if names is None else list(names)
    parts = switched(Parts(csr_array(A), rows, columns, np.asarray(kinds), own), indicators, sets)
    if added := len(parts.names) - n:
        c = np.append(c, np.zeros(added))
        matrix = as_map(costs, own)
        costs = (
            csr_array(hstack([matrix, csr_array((matrix.shape[0], added))]))
            if is_map(costs) or isinstance(costs, Mapping)
            else matrix.indices
        )
        if len(constraint_names) == A.shape[0]:
            constraint_names = [*constraint_names, *(f"switch {k}" for k in range(parts.A.shape[0] - A.shape[0]))]
        if quadratic is not None:
            quadratic = block_diag([csr_array(quadratic), csr_array((added, added))])
    kinds, (lower, upper) = np.asarray(parts.kinds), parts.columns
    binary, whole = kinds == "B", kinds != "C"
    bounds = Bounds(np.where(binary, np.maximum(lower, 0), lower), np.where(binary, np.minimum(upper, 1), upper))
    options |= {
        "bounds": bounds, "constraints": LinearConstraint(parts.A, *parts.rows), "costs": costs,
        "names": None if names is None and not added else parts.names, "constraint_names": constraint_names,
    }  # fmt: skip
    if quadratic is None or not csr_array(quadratic).count_nonzero():
        return LinearProgram.from_milp(c, integrality=whole, **options)
    return QuadraticProgram.from_milp(c, quadratic=quadratic, integrality=whole, **options)
