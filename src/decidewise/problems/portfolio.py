"""The Markowitz portfolio with a bound on its risk: a convex region that is neither polyhedral nor smooth."""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from scipy.sparse import csc_matrix, eye, vstack

from decidewise.batches import in_parts
from decidewise.checks import FloatArray, as_matrix, as_number, as_positive
from decidewise.errors import SolverError
from decidewise.problems.base import Problem, Sense
from decidewise.problems.portfolio_path import follow_risk_price

# Eigenvalues below zero by this fraction of the largest one are rounding.
_ROUNDING = 1e-10


class Portfolio(Problem):
    """Share out a budget over assets: `w >= 0`, `sum w <= budget`, `wᵀ Σ w <= risk`, with the largest return.

    Each row is solved exactly by following the optimal portfolio as the price of risk rises from zero: along the way
    it is given in closed form, and assets enter or leave it one at a time. The answer is certified by its optimality
    conditions; where those fail, as they can for a singular covariance, Clarabel solves the row.

    Ties: among the optimal portfolios the one of least variance, and no investment where nothing has a positive
    return. (With a singular covariance several may be left, and any of them may be returned.)

    Parameters
    ----------
    covariance : array-like of shape (n, n)
        Symmetric and positive semidefinite.
    risk : float
        The largest variance, positive.
    budget : float
        The largest sum of the weights, positive.
    sense : {"max", "min"}

    Attributes
    ----------
    B_S : float
        An upper bound on the norm of a portfolio: the budget, or `sqrt(risk / smallest eigenvalue)` if that is less.

    Examples
    --------
    >>> portfolio = Portfolio(np.eye(3), risk=0.5)
    >>> portfolio.solve([[1.0, 1.0, 0.0], [1.0, 0.0, -1.0]]).round(3)
    array([[0.5  , 0.5  , 0.   ],
           [0.707, 0.   , 0.   ]])
    """

    def __init__(self, covariance: Any, risk: float, budget: float = 1.0, *, sense: Sense = "max") -> None:
        super().__init__(sense=sense)
        self.covariance = _as_covariance(covariance)
        self.risk = as_positive(risk, name="risk")
        self.budget = as_number(budget, name="budget", above=0, at_most=1e150)  # whose square is in range
        self.n_costs = len(self.covariance)
        smallest = np.linalg.eigvalsh(self.covariance)[0]
        by_risk = np.sqrt(self.risk / smallest) if smallest > 0 else np.inf
        self.B_S = float(min(self.budget, by_risk))

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the portfolio of the largest return `-costs[i]·w` for each row."""
        # In units of the budget and of the risk, the constraints are sum <= 1 and variance <= 1.
        unit = np.ascontiguousarray(self.covariance * (self.budget**2 / self.risk))
        return in_parts(lambda rows: self._minimize(rows, unit), costs)

    def _minimize(self, costs: FloatArray, unit: FloatArray) -> FloatArray:
        shares, certified = follow_risk_price(-costs, unit)
        for row in np.flatnonzero(~certified):
            shares[row] = _solve_cone(-costs[row], unit, int(row))
        return self.budget * shares


def _as_covariance(covariance: Any) -> FloatArray:
    matrix = as_matrix(covariance, name="covariance")
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"covariance must be square, one row and column an asset; got covariance.shape={matrix.shape}."
        )
    scale = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > _ROUNDING * scale:
        i, j = np.unravel_index(np.abs(matrix - matrix.T).argmax(), matrix.shape)
        raise ValueError(
            f"covariance must be symmetric; entry ({i}, {j}) is {matrix[i, j]:g} and entry ({j}, {i}) {matrix[j, i]:g}."
        )
    matrix = (matrix + matrix.T) / 2
    smallest = np.linalg.eigvalsh(matrix)[0]
    if smallest < -_ROUNDING * scale:
        raise ValueError(
            f"covariance must be positive semidefinite; its smallest eigenvalue is {smallest:g}. "
            "Estimate it from more observations, or shrink it towards its diagonal."
        )
    return matrix


def _solve_cone(returns: FloatArray, unit: FloatArray, row: int) -> FloatArray:
    """Return the best shares of one row by an interior-point method: `u >= 0`, `sum u <= 1`, `‖F u‖ <= 1`."""
    n = len(returns)
    largest = np.abs(returns).max()
    values, vectors = np.linalg.eigh(unit)
    factor = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    constraints = vstack([-eye(n), np.ones((1, n)), np.zeros((1, n)), -factor], format="csc")
    bounds = np.concatenate([np.zeros(n), [1.0, 1.0], np.zeros(n)])
    cones = [clarabel.NonnegativeConeT(n + 1), clarabel.SecondOrderConeT(n + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(csc_matrix((n, n)), -returns / largest, constraints, bounds, cones, settings)
    solution = solver.solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise SolverError(f"Clarabel ended with {solution.status}; check the scale of the covariance.", row=row)
    shares = np.maximum(np.array(solution.x), 0.0)
    # A last step back onto the region, by as much as the tolerance at most.
    return shares / max(1.0, shares.sum(), np.sqrt(shares @ unit @ shares))
