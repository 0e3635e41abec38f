"""One portfolio by an interior-point method: slower than the critical line, and steadier where float64 ends.

With `FᵀF = S` the portfolio maximises `r·u` over `u >= 0`, `sum u <= 1`, `‖F u‖ <= 1`. Any `y` and `ν >= 0` with
`Fᵀy + ν >= r` prove that no portfolio has a larger return than `ν + ‖y‖`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpstrf
from scipy.sparse import csc_matrix, eye, vstack

from decidewise.checks import FloatArray
from decidewise.errors import SolverError
from decidewise.problems.portfolio.critical_line import CERTIFIED, DOUBTFUL, KNOWN, WORST, deviations


def solve_cone(returns: FloatArray, S: FloatArray, row: int) -> FloatArray:
    """Return the best shares (d,) for returns (d,), or raise `SolverError` where none can be certified."""
    best = float(returns.max())
    r = np.maximum(returns, -WORST * best) / best
    root, deviation = _root(S), deviations(S)
    shares = np.zeros_like(r)
    asset = np.argmax(r / np.maximum(deviation, 1.0))  # the best one to hold alone
    shares[asset] = 1.0 / max(deviation[asset], 1.0)
    # Each answer gives the next one its scale. Losses that hardly anybody takes would spoil the precision of all.
    for worst in (1e3, 1e3, 1e3, 1e9):
        # What float64 cannot tell of the variance is kept in reserve here, and granted to all other portfolios.
        doubt = KNOWN * float(deviation @ shares) ** 2
        if doubt > 0.5:
            break
        point, bound = _approach(np.maximum(r, -worst), root, float(shares.sum()), float(r @ shares), doubt)
        point[r < -worst] = 0.0
        value = r @ point
        feasible = KNOWN * (deviation @ point) ** 2 <= doubt + CERTIFIED and point @ S @ point <= 1.0 + CERTIFIED
        if feasible and bound <= (1.0 + CERTIFIED + min(doubt, DOUBTFUL)) * value:
            return point
        if value > 0.0:
            shares = point
    raise SolverError(
        "no portfolio could be certified to be optimal. Where the risks of assets nearly cancel, float64 cannot tell "
        f"what is left; here single assets have up to {deviation.max() ** 2:.1g} times the variance that is allowed. "
        "Allow more risk, or add a little to the diagonal of the covariance.",
        row=row,
    )


def _root(S: FloatArray) -> FloatArray:
    """Return `F` with `FᵀF = S`, by Cholesky's method with pivots, which is exact for assets of every scale."""
    deviation = deviations(S)
    unit = np.where(deviation > 0.0, deviation, 1.0)
    factor, order, rank, _ = dpstrf(S / unit / unit[:, None])
    root = np.empty((rank, len(S)))
    root[:, order - 1] = np.triu(factor)[:rank]
    return root * deviation


def _approach(r: FloatArray, root: FloatArray, size: float, value: float, doubt: float) -> tuple[FloatArray, float]:
    """Return Clarabel's shares for a variance of `1 - doubt`, and its bound on all of a variance of `1 + doubt`.

    They are computed in units of a given sum of shares and value.
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
