"""The Markowitz portfolio with a bound on its risk: a convex feasible set that is neither polyhedral nor smooth."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from decidewise.kit.batches import check_time, in_parts
from decidewise.kit.checks import FloatArray, as_array, as_matrix
from decidewise.problems.by_row import as_numbers, spread
from decidewise.problems.contract import Problem, Sense
from decidewise.problems.mapped_problem.arguments import ROUNDING, as_symmetric
from decidewise.problems.portfolio.cone import solve_cone
from decidewise.problems.portfolio.critical_line import follow_risk_price
from decidewise.problems.portfolio.derivative import derivative


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
    covariance : array-like of shape (n, n) or (n_rows, n, n)
        Symmetric and positive semidefinite: the same for all rows of returns, or one per row.
    risk : float or array-like of shape (n_rows,)
        The largest variance allowed, positive.
    budget : float or array-like of shape (n_rows,)
        The largest sum of weights allowed, positive.
    sense : {"max", "min"}

    Attributes
    ----------
    n_costs : int
        `n`, one per asset.
    n_rows : int or None
        The number of rows, if any of these is given by row; then all of them have one entry per row.
    B_S : float
        An upper bound on the norm of a portfolio: the smaller of the budget and `sqrt(risk / smallest eigenvalue)`.

    Examples
    --------
    >>> portfolio = Portfolio([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], risk=0.5)
    >>> portfolio.solve([[1.0, 1.0, 0.0], [1.0, 0.0, -1.0]]).round(3)
    array([[0.5  , 0.5  , 0.   ],
           [0.707, 0.   , 0.   ]])
    >>> calm_then_rough = Portfolio([np.eye(2), 4 * np.eye(2)], risk=1.0)
    >>> calm_then_rough.solve([[1.0, 0.5], [1.0, 0.5]]).round(3)
    array([[1.   , 0.   ],
           [0.447, 0.224]])
    """

    faces = "curved"
    _by_row = ("covariance", "risk", "budget")

    def __init__(self, covariance: Any, risk: Any, budget: Any = 1.0, *, sense: Sense = "max") -> None:
        super().__init__(sense=sense)
        self.n_rows, (self.covariance, self.risk, self.budget) = spread(
            covariance=(_as_covariances(covariance), 2),
            risk=(as_numbers(risk, name="risk", above=0), 0),
            budget=(as_numbers(budget, name="budget", above=0, at_most=1e150), 0),  # whose square is in range
        )
        largest = np.abs(self.covariance).max(axis=(-2, -1))
        with np.errstate(over="ignore"):
            outside = np.flatnonzero(~np.isfinite(self.budget * self.budget / self.risk * largest))
        if len(outside):
            row = int(outside[0])
            raise ValueError(
                f"{'' if self.n_rows is None else f'row {row}: '}budget² times the covariance, divided by the risk, "
                f"must be in the range of float64; got budget={np.ravel(self.budget)[row]:g} and "
                f"risk={np.ravel(self.risk)[row]:g}. Measure the weights in larger units."
            )
        self.n_costs = self.covariance.shape[-1]
        smallest = np.linalg.eigvalsh(self.covariance)[..., 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            by_risk = np.where(smallest > 0, np.sqrt(self.risk / smallest), np.inf)
        self.B_S = float(np.minimum(self.budget, by_risk).max())

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the portfolio of the largest return `-costs[i]·w` for each row."""
        if self.n_rows is None:
            return in_parts(lambda rows, decisions: _minimize(rows, decisions, self._unit, self.budget), costs)

        def solve(rows: FloatArray, decisions: FloatArray, *limits: FloatArray) -> None:
            _minimize(rows, decisions, _in_units(*limits), limits[-1][:, None])

        return in_parts(solve, costs, self.covariance, self.risk, self.budget)

    def derivative(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the derivative through the optimality conditions: zero where the risk does not bind."""
        return derivative(costs, decisions, vectors, self.covariance, self.risk, self.budget)

    @cached_property
    def _unit(self) -> FloatArray:
        return _in_units(self.covariance, self.risk, self.budget)


def _in_units(covariance: FloatArray, risk: Any, budget: Any) -> FloatArray:
    """Return the covariance in units of the budget and of the risk, in which sum <= 1 and variance <= 1."""
    return np.ascontiguousarray(covariance * np.asarray(budget**2 / risk)[..., None, None])


def _minimize(costs: FloatArray, decisions: FloatArray, unit: FloatArray, budget: Any) -> None:
    """Set the portfolio of each row; the covariance in units, (d, d), and the budget may differ by row."""
    returns, by_row = -costs, unit.ndim == 3
    shares, certified = follow_risk_price(returns, unit)
    if not certified.all():
        again = np.flatnonzero(~certified)
        shares[again], certified[again] = follow_risk_price(
            returns[again], unit[again] if by_row else unit, steady=True
        )
        for row in np.flatnonzero(~certified):
            check_time()
            shares[row] = solve_cone(returns[row], unit[row] if by_row else unit, int(row))
    np.multiply(budget, shares, out=decisions)


def _as_covariances(covariance: Any) -> FloatArray:
    """Return one covariance, or one per row, each of them checked."""
    covariance = as_array(covariance, name="covariance")
    if covariance.ndim != 3:
        return _as_covariance(covariance)
    matrices = []
    for row, matrix in enumerate(covariance):
        try:
            matrices.append(_as_covariance(matrix))
        except ValueError as error:
            raise ValueError(f"row {row}: {error}") from error
    if not matrices:
        raise ValueError(f"covariance is empty: covariance.shape={covariance.shape}. Pass one matrix per row.")
    return np.array(matrices)


def _as_covariance(covariance: Any) -> FloatArray:
    matrix = as_matrix(covariance, name="covariance")
    matrix = as_symmetric(matrix, name="covariance", form="wᵀΣw").toarray()
    smallest = np.linalg.eigvalsh(matrix)[0]
    if smallest < -ROUNDING * np.abs(matrix).max():
        raise ValueError(
            f"covariance must be positive semidefinite; its smallest eigenvalue is {smallest:g}. "
            "Estimate it from more observations, or shrink it towards its diagonal."
        )
    return matrix
