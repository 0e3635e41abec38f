"""Known costs as one more cost: the lifted view of a problem, on which every loss and metric holds unchanged."""

from __future__ import annotations

from typing import Any

from decidewise.checks import FloatArray
from decidewise.problems.base import Problem


class Lifted(Problem):
    """The problem of the costs `(c, 1)` and the decisions `(M w, b·w)`, of a problem with known costs.

    It has no known costs of its own: `costs·decisions` is the whole objective. The region of its decisions is that of
    `w`, mapped linearly; it has a polyhedron only if a subclass writes one.

    Parameters
    ----------
    problem : Problem
        A problem with `has_known`.

    Examples
    --------
    >>> import numpy as np
    >>> from decidewise.problems import KnownCosts, TopK
    >>> problem = KnownCosts(TopK(2, 1, sense="min"), [0.0, 3.0])  # a toll of 3 on the second item
    >>> lifted = problem.lifted
    >>> lifted.solve(lifted.lift(np.array([[2.0, 1.0], [9.0, 1.0]])))
    array([[1., 0., 0.],
           [0., 1., 3.]])
    """

    is_lifted = True
    _checks_costs = False  # the problem inside does

    def __init__(self, problem: Problem) -> None:
        super().__init__(sense=problem.sense)
        self.problem = problem
        self.n_costs = problem.n_costs + 1
        self.is_integer, self.keeps_state, self.n_rows = problem.is_integer, problem.keeps_state, problem.n_rows
        is_written = type(problem).derivative_lifted is not Problem.derivative_lifted
        self.has_derivative = problem.has_derivative and is_written

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return `minimize_lifted` of the problem inside."""
        return self.problem.minimize_lifted(costs)

    def derivative(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `derivative_lifted` of the problem inside."""
        return self.problem.derivative_lifted(costs, decisions, vectors)

    def take(self, rows: Any) -> Problem:
        """Return the lifted view of the rows of the problem inside."""
        return self if self.n_rows is None else self.problem.take(rows).lifted
