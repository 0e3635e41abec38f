"""A problem seen in its variables, for losses that need linear constraints."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from decidewise.checks import FloatArray
from decidewise.problems.base import Problem
from decidewise.problems.wrappers.base import Wrapper


class InVariables(Wrapper):
    """The problem of the costs `c M + b` and the decisions `w`, of a problem of the objective `c·(M w) + b·w`.

    `M w` is optimal for `c` exactly if `w` is optimal for `c M + b`. So a loss that is zero exactly if a vertex is
    optimal is, at these costs, zero exactly if the decision is; and its gradient in `c` is `M` times that in the costs
    of the variables.

    Parameters
    ----------
    problem : Problem
        Of all variables, with a cost each.
    matrix : csr_array of shape (n_predicted, n_variables)
        The map `M`.
    known : ndarray of shape (n_variables,)
        The known costs `b`, to be minimised.
    """

    def __init__(self, problem: Problem, matrix: csr_array, known: FloatArray) -> None:
        super().__init__(problem)
        self.matrix, self.known = matrix, known

    @property
    def n_predicted(self) -> int:
        """The number of predicted costs."""
        return int(self.matrix.shape[0])

    def lift(self, costs: FloatArray) -> FloatArray:
        """Return the costs of all variables: (n, n_predicted) -> (n, n_variables)."""
        return np.ascontiguousarray(costs @ self.matrix + (-self.known if self.sense == "max" else self.known))

    def unlift(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient in the predicted costs: (n, n_variables) -> (n, n_predicted)."""
        return np.ascontiguousarray(gradient @ self.matrix.T)

    def with_inside(self, problem: Problem) -> InVariables:
        """Return the same view of a wrapper of the problem inside, with its sense."""
        return InVariables(problem, self.matrix, self.known)

    def with_known(self, known: FloatArray) -> InVariables:
        """Return the same view with other known costs."""
        return InVariables(self.problem, self.matrix, known)
