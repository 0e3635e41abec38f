"""How an optimal portfolio changes with the returns.

Where the bound on the risk holds with equality, the portfolio `z` minimises `p·z + ν zᵀΣz + η Σ_j z_j` over the held
assets, with the multipliers `ν` of the risk and `η` of the budget. Its derivative solves the linearised conditions
`2νΣ dz + a dν + 1 dη = -dp`, `a·dz = 0`, `1·dz = 0` on the held assets, with `a = 2Σz`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray

# What differs from a bound by less than this, relative to it, is at the bound.
_BINDS = 1e-7
# Keeps the linear system regular where an asset alone meets both bounds, or the covariance is singular.
_RIDGE = 1e-13


def derivative(
    costs: FloatArray, decisions: FloatArray, vectors: FloatArray, covariance: FloatArray, risk: Any, budget: Any
) -> FloatArray:
    """Return the product of the Jacobian of the portfolio in the costs with vectors, all (n, d).

    The covariance (d, d), the risk and the budget may have an axis of n rows in front.
    """
    n, d = costs.shape
    held = decisions > _BINDS * np.asarray(budget)[..., None]
    risks = np.matmul(covariance, decisions[:, :, None])[:, :, 0]  # Σz, (n, d)
    at_risk = np.einsum("ij,ij->i", decisions, risks) >= (1 - _BINDS) * np.asarray(risk)
    at_budget = decisions.sum(axis=1) >= (1 - _BINDS) * np.asarray(budget)
    at_budget = at_budget & (held.sum(axis=1) > 1)  # one asset at both bounds cannot move
    slope = np.where(held, 2 * risks, 0.0)
    price, price_of_budget = _multipliers(np.where(held, -costs, 0.0), slope, held & at_budget[:, None])
    spurious = at_budget & (price_of_budget <= 0)
    if spurious.any():
        at_budget = at_budget & ~spurious
        price, _ = _multipliers(np.where(held, -costs, 0.0), slope, held & at_budget[:, None])
    moves = at_risk & (price > 0)

    size = np.abs(np.asarray(covariance)).max(axis=(-2, -1)) * np.ones(n)
    system = np.zeros((n, d + 2, d + 2))
    both = held[:, :, None] & held[:, None, :]
    system[:, :d, :d] = np.where(both, covariance / size[:, None, None], 0.0)
    diagonal = np.einsum("ijj->ij", system[:, :d, :d])
    diagonal += np.where(held, _RIDGE, 1.0)
    lengths = np.sqrt(np.einsum("ij,ij->i", slope, slope))
    normal = slope / np.where(lengths > 0, lengths, 1.0)[:, None]
    system[:, :d, d] = system[:, d, :d] = normal
    system[:, :d, d + 1] = system[:, d + 1, :d] = held & at_budget[:, None]
    system[:, d, d] = -_RIDGE
    system[:, d + 1, d + 1] = np.where(at_budget, -_RIDGE, 1.0)
    right = np.concatenate([np.where(held, -vectors, 0.0), np.zeros((n, 2))], axis=1)
    system[~moves] = np.eye(d + 2)
    moved = np.linalg.solve(system, right[:, :, None])[:, :d, 0]
    curvature = np.where(moves, 2 * price * size, np.inf)
    return moved / curvature[:, None]


def _multipliers(returns: FloatArray, slope: FloatArray, ones: Any) -> tuple[FloatArray, FloatArray]:
    """Return the least-squares fit of the returns (n, d) by the slope of the risk and, where given, by ones."""
    ones = ones.astype(np.float64)
    ss, so, oo = (np.einsum("ij,ij->i", a, b) for a, b in ((slope, slope), (slope, ones), (ones, ones)))
    rs, ro = (np.einsum("ij,ij->i", returns, a) for a in (slope, ones))
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = ss * oo - so**2
        two = (rs * oo - ro * so) / determinant, (ro * ss - rs * so) / determinant
        alone = rs / ss
    with_budget = (oo > 0) & (determinant > 1e-12 * ss * oo)
    price = np.where(with_budget, two[0], alone)
    return np.nan_to_num(price, nan=0.0, posinf=0.0), np.where(with_budget, two[1], 0.0)
