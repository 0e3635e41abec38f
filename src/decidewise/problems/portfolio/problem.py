"""The Markowitz portfolio with a bound on its risk: a convex feasible set that is neither polyhedral nor smooth."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.checks import FloatArray, as_matrix, as_number, as_positive
from decidewise.problems.base import Problem, Sense
from decidewise.problems.portfolio.cone import solve_cone
from decidewise.problems.portfolio.critical_line import follow_risk_price
from decidewise.runtime.batches import check_time, in_parts

# Asymmetries, and eigenvalues below zero, up to this fraction of the largest entry are rounding.
_ROUNDING = 1e-10


class Portfolio(Problem):
    """Distribute a budget over assets for the largest return: `w >= 0`, `sum w <= budget`, `wᵀ Σ w <= risk`.

    Each row is solved exactly by following the optimal portfolio as the price of risk rises from zero: it has a closed
    form between events, and at each event one asset enters or leaves. Every answer is certified by an upper bound on
    the return of all portfolios. If that fails, as it can for a nearly singular covariance, Clarabel solves the row.

    Ties: among the optimal portfolios, the one of least variance is returned; if no asset has a positive return,
    nothing is invested. (With a singular covariance several such portfolios may exist, and any of them is returned.)

    The return is certified to within 1e-9 of the largest possible one. Losses may have any size, for example to exclude
    an asset. Next to a return of 1e10, returns of 0.1 count as far as float64 resolves them, but are not certified. If
    the standard deviations of the held assets add up to more than 2,000 times that of the portfolio, the rounding of
    the covariance itself matters: then the return is certified to within 1e-6, or a `SolverError` is raised.

    Parameters
    ----------
    covariance : array-like of shape (n, n)
        Symmetric and positive semidefinite.
    risk : float
        The largest variance allowed, positive.
    budget : float
        The largest sum of weights allowed, positive.
    sense : {"max", "min"}

    Attributes
    ----------
    n_costs : int
        `n`, one per asset.
    B_S : float
        An upper bound on the norm of a portfolio: the smaller of the budget and `sqrt(risk / smallest eigenvalue)`.

    Examples
    --------
    >>> portfolio = Portfolio([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], risk=0.5)
    >>> portfolio.solve([[1.0, 1.0, 0.0], [1.0, 0.0, -1.0]]).round(3)
    array([[0.5  , 0.5  , 0.   ],
           [0.707, 0.   , 0.   ]])
    """

    def __init__(self, covariance: Any, risk: float, budget: float = 1.0, *, sense: Sense = "max") -> None:
        super().__init__(sense=sense)
        self.covariance = _as_covariance(covariance)
        self.risk = as_positive(risk, name="risk")
        self.budget = as_number(budget, name="budget", above=0, at_most=1e150)  # whose square is in range
        if not np.isfinite(self.budget * self.budget / self.risk * float(np.abs(self.covariance).max())):
            raise ValueError(
                "budget² times the covariance, divided by the risk, must be in the range of float64; got "
                f"budget={self.budget:g} and risk={self.risk:g}. Measure the weights in larger units."
            )
        self.n_costs = len(self.covariance)
        smallest = np.linalg.eigvalsh(self.covariance)[0]
        by_risk = np.sqrt(self.risk / smallest) if smallest > 0 else np.inf
        self.B_S = float(min(self.budget, by_risk))

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the portfolio of the largest return `-costs[i]·w` for each row."""
        # In units of the budget and of the risk, the constraints are sum <= 1 and variance <= 1.
        unit = np.ascontiguousarray(self.covariance * (self.budget**2 / self.risk))
        return in_parts(lambda rows, decisions: self._minimize(-rows, decisions, unit), costs)

    def _minimize(self, returns: FloatArray, decisions: FloatArray, unit: FloatArray) -> None:
        shares, certified = follow_risk_price(returns, unit)
        again = np.flatnonzero(~certified)
        if len(again):
            shares[again], certified[again] = follow_risk_price(returns[again], unit, steady=True)
        for row in np.flatnonzero(~certified):
            check_time()
            shares[row] = solve_cone(returns[row], unit, int(row))
        decisions[:] = self.budget * shares


def _as_covariance(covariance: Any) -> FloatArray:
    matrix = as_matrix(covariance, name="covariance")
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"covariance must be square, with one row and one column per asset; got covariance.shape={matrix.shape}."
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
