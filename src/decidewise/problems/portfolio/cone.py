"""Solve one portfolio by an interior-point method: slower than the critical line, but more robust to rounding.

With `FᵀF = S` the portfolio maximises `r·u` over `u >= 0`, `sum u <= 1`, `‖F u‖ <= 1`. Any `y` and `ν >= 0` with
`Fᵀy + ν >= r` prove that no portfolio has a larger return than `ν + ‖y‖`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpstrf
from scipy.sparse import csc_matrix, eye, vstack

from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import SolverError
from decidewise.problems.portfolio.critical_line import CERTIFIED, DOUBTFUL, RESOLUTION, WORST, deviations


def solve_cone(returns: FloatArray, S: FloatArray, row: int) -> FloatArray:
    """Return the best shares (d,) for returns (d,); raise `SolverError` if no answer can be certified."""
    best = float(returns.max())
    r = np.maximum(returns, -WORST * best) / best
    root, deviation = _root(S), deviations(S)
    shares = np.zeros_like(r)
    asset = np.argmax(r / np.maximum(deviation, 1.0))  # the best asset to hold alone
    shares[asset] = 1.0 / max(deviation[asset], 1.0)
    # Each answer gives the scale of the next attempt. Losses are clipped at `worst`: larger ones, which hardly any
    # portfolio accepts, would reduce the precision of all returns.
    for worst in (1e3, 1e3, 1e3, 1e9):
        # `doubt` bounds the rounding of the variance: this portfolio may have only `1 - doubt`, and the bound is valid
        # for all portfolios up to `1 + doubt`.
        doubt = RESOLUTION * float(deviation @ shares) ** 2
        if doubt > 0.5:
            break
        point, bound = _solve_with_clarabel(np.maximum(r, -worst), root, float(shares.sum()), float(r @ shares), doubt)
        point[r < -worst] = 0.0
        value = r @ point
        feasible = RESOLUTION * (deviation @ point) ** 2 <= doubt + CERTIFIED and point @ S @ point <= 1.0 + CERTIFIED
        if feasible and bound <= (1.0 + CERTIFIED + min(doubt, DOUBTFUL)) * value:
            return point
        if value > 0.0:
            shares = point
    raise SolverError(
        "no portfolio could be certified to be optimal. If the risks of assets nearly cancel, float64 cannot resolve "
        f"the remaining risk; here single assets have up to {deviation.max() ** 2:.1g} times the allowed variance. "
        "Allow more risk, or add a small number to the diagonal of the covariance.",
        row=row,
    )


def _root(S: FloatArray) -> FloatArray:
    """Return `F` with `FᵀF = S`, by Cholesky's method with pivoting, on a scale at which every asset has variance 1."""
    deviation = deviations(S)
    unit = np.where(deviation > 0.0, deviation, 1.0)
    factor, order, rank, _ = dpstrf(S / unit / unit[:, None])
    root = np.empty((rank, len(S)))
    root[:, order - 1] = np.triu(factor)[:rank]
    return root * deviation


def _solve_with_clarabel(
    r: FloatArray, root: FloatArray, size: float, value: float, doubt: float
) -> tuple[FloatArray, float]:
    """Return Clarabel's shares for a variance of `1 - doubt`, and a bound on the return for a variance of `1 + doubt`.

    `size` and `value` are the units of the sum of shares and of the return.
    """
    import clarabel  # noqa: PLC0415  (most portfolios never come here)

    rank, d = root.shape
    radius = np.sqrt(1.0 - doubt)
    gains, factor = r * (size / value), root * (size / radius)
    constraints = vstack([-eye(d), np.ones((1, d)), csc_matrix((1, d)), -factor], format="csc")
    limits = np.concatenate([np.zeros(d), [1.0 / size, 1.0], np.zeros(rank)])
    cones = [clarabel.NonnegativeConeT(d + 1), clarabel.SecondOrderConeT(rank + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(csc_matrix((d, d)), -gains, constraints, limits, cones, settings).solve()
    point, y = np.maximum(solution.x, 0.0), -np.array(solution.z)[d + 2 :]
    point /= max(1.0, size * point.sum(), np.linalg.norm(factor @ point))
    budget_price = max(solution.z[d], np.max(gains - y @ factor), 0.0)
    return size * point, value * (budget_price / size + np.linalg.norm(y) * np.sqrt(1.0 + doubt) / radius)
