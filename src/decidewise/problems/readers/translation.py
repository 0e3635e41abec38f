"""What readers of models share: the program of what a tool keeps, and the words for what cannot be taken over."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import csr_array

from decidewise.kit.checks import FloatArray
from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.quadratic_program import QuadraticProgram


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
    **options: Any,
) -> LinearProgram:
    """Return the program `rows[0] <= A w <= rows[1]`, `columns[0] <= w <= columns[1]`, of a file or a modelling tool.

    Parameters
    ----------
    kinds : array of str, of shape (n,)
        "C", "I" or "B": any number, whole numbers, and those between 0 and 1.
    quadratic : array-like or sparse, of shape (n, n), optional
        Without entries the program is linear.
    options
        Those of `LinearProgram.from_milp`.
    """
    kinds = np.asarray(kinds)
    binary, whole = kinds == "B", kinds != "C"
    lower, upper = columns
    bounds = Bounds(np.where(binary, np.maximum(lower, 0), lower), np.where(binary, np.minimum(upper, 1), upper))
    options |= {"bounds": bounds, "constraints": LinearConstraint(A, *rows)}
    if quadratic is None or not csr_array(quadratic).count_nonzero():
        return LinearProgram.from_milp(c, integrality=whole, **options)
    return QuadraticProgram.from_milp(c, quadratic=quadratic, integrality=whole, **options)
