"""Portfolios whose asset returns are a polynomial of the features plus correlated noise."""

from __future__ import annotations

from typing import Literal

import numpy as np

from decidewise.data.dataset import Dataset
from decidewise.data.polynomial import checked, single_precision, streams
from decidewise.kit.checks import as_choice, as_flag, as_integer, as_number, as_positive
from decidewise.problems import Portfolio


def make_portfolio(
    n: int,
    *,
    degree: int,
    seed: int,
    n_assets: int = 25,
    n_features: int = 6,
    noise: Literal["student", "gaussian"] = "student",
    noise_level: float = 1.0,
    risk_multiple: float = 2.25,
    factor_noise: bool = True,
    instance_seed: int | None = None,
) -> Dataset:
    """Draw features and asset returns for a portfolio under a limit on its variance.

    `r = μ(x) + L ζ + 0.01 τ ε` with `μ_j(x) = (0.05 (B x)_j / √p + m^(1/degree))^degree`, `x ~ N(0, I)`, entries of `B`
    0 or 1 with equal probability, loadings `L` uniform on ±0.0025 τ, and independent entries of `ζ` and `ε` with mean 0
    and variance 1. Hence `Σ = L Lᵀ + (0.01 τ)² I`. The variance of a portfolio is at most `risk_multiple` times the
    mean entry of `Σ`.

    Parameters
    ----------
    n : int
        Number of samples.
    degree : int
        Degree of the polynomial; with 1 the mean returns are linear in `x`.
    seed : int
        Seed of `B`, `L`, the features and the noise (row by row, first `ζ`, then `ε`), in this order.
    n_assets, n_features : int
        The numbers of assets and features (`p`); there are `p` factors too.
    noise : {"student", "gaussian"}
        "student": Student's t with 3 degrees of freedom, scaled to variance 1, and `m = 0.2`.
        "gaussian": the standard normal, and `m = 0.1`.
    noise_level : float
        The factor `τ` above, positive.
    risk_multiple : float
        The limit on the variance, in units of the mean entry of `Σ`.
    factor_noise : bool
        Whether the returns include `L ζ`. If not, `Σ` is not their covariance; the paper's table has this noise
        (docs/notes/paper_protocol.md).
    instance_seed : int, optional
        Seed of `B` and `L` alone, to draw several samples of one instance with different `seed`.

    Returns
    -------
    Dataset
        With "gaussian" noise and no `instance_seed`, the same numbers as PyEPO 2.2.7. The costs are returns, to be
        maximised; they are rounded to float32 as in PyEPO, and stored as float64. `mean_costs` is `μ(x)`.

    Examples
    --------
    >>> data = make_portfolio(3, degree=3, seed=42)
    >>> data.costs[0, :3].round(4)
    array([0.2406, 0.2545, 0.2095])
    """
    n, degree, n_features, _ = checked(n, degree, n_features)
    n_assets = as_integer(n_assets, name="n_assets")
    as_choice(noise, name="noise", choices=("student", "gaussian"))
    noise_level = as_number(noise_level, name="noise_level", above=0, at_most=1e30)  # its square must not overflow
    risk_multiple = as_positive(risk_multiple, name="risk_multiple")
    as_flag(factor_noise, name="factor_noise")
    instance, rng = streams(seed, instance_seed)
    B = instance.binomial(1, 0.5, (n_assets, n_features))
    L = instance.uniform(-2.5e-3 * noise_level, 2.5e-3 * noise_level, (n_assets, n_features))
    X = rng.normal(0, 1, (n, n_features))
    base = 0.2 if noise == "student" else 0.1
    with np.errstate(over="ignore"):  # `single_precision` raises if a cost is not finite
        returns = (0.05 * (X @ B.T) / np.sqrt(n_features) + base ** (1 / degree)) ** degree
    size = (n, n_features + n_assets)
    shocks = rng.standard_t(3, size) / np.sqrt(3) if noise == "student" else rng.standard_normal(size)
    factors, residuals = shocks[:, :n_features], shocks[:, n_features:]
    errors = 0.01 * noise_level * residuals
    costs = returns + (factors @ L.T + errors if factor_noise else errors)
    covariance = L @ L.T + (0.01 * noise_level) ** 2 * np.eye(n_assets)
    problem = Portfolio(covariance, risk_multiple * covariance.mean())
    return Dataset(X, single_precision(costs), problem, returns)
