"""The critical line of a portfolio: its optimum as a function of the price of risk.

For a price `τ` the portfolio `u(τ)` maximises `r·u - τ/2 uᵀSu` over `u >= 0`, `sum u <= 1`. While the same assets are
held (the support), with `M` the inverse of their covariance and `a = 1ᵀM1`, `b = 1ᵀMr`,

    u(τ) = d/τ + e,   d = Mr - (b/a) M1,   e = M1/a,   variance = d·r/τ² + 1/a,   price of the budget = (b - τ)/a.

So the next event as the price rises is found by division: the variance falls to 1 (done), the budget becomes free
(from where on the portfolio only shrinks: done), a held asset reaches zero, or another becomes worth holding.
(Markowitz, "The optimization of a quadratic function subject to linear constraints", 1956.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from decidewise.checks import FloatArray

# Sums may be taken in any order, which lets the compiler use vector instructions; infinities keep their meaning.
compiled = njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})

#: Returns within this fraction of the largest one are tied.
TIE = 1e-12
#: An asset whose variance, given those held, is below this fraction of its own is a combination of them.
DEPENDENT = 1e-10
#: What the optimality conditions may be off by, in units of the largest return, the budget and the risk.
CERTIFIED = 1e-9


class Path(NamedTuple):
    """Where the critical line is: the assets held, in some order, and what follows from them.

    `M` is the inverse of their covariance, `Mr` and `M1` its products with their returns and with ones, and `SMr` and
    `SM1` the products of those with the covariances of all assets. The first `k` places are in use.
    """

    held: npt.NDArray[np.int64]
    is_held: npt.NDArray[np.bool_]
    M: FloatArray
    Mr: FloatArray
    M1: FloatArray
    SMr: FloatArray
    SM1: FloatArray


@compiled
def follow_risk_price(returns: FloatArray, S: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the best shares (n, d) for each row of returns, and whether each is certified to be optimal."""
    n_rows, d = returns.shape
    shares = np.zeros((n_rows, d))
    certified = np.ones(n_rows, np.bool_)
    path = Path(
        held=np.empty(d, np.int64),
        is_held=np.empty(d, np.bool_),
        M=np.empty((d, d)),
        Mr=np.empty(d),
        M1=np.empty(d),
        SMr=np.empty(d),
        SM1=np.empty(d),
    )
    for row in range(n_rows):
        if returns[row].max() > 0.0:
            certified[row] = _solve_row(returns[row] / np.abs(returns[row]).max(), S, shares[row], path)
    return shares, certified


@compiled
def _solve_row(r: FloatArray, S: FloatArray, u: FloatArray, path: Path) -> bool:
    k = _least_variance_of_the_best(r, S, u, path)
    if k == 0:
        return False
    _start(r, S, path, k)
    price = 0.0
    for _ in range(20 * len(r) + 20):
        a, b, c = path.M1[:k].sum(), path.Mr[:k].sum(), 0.0
        for i in range(k):
            c += r[path.held[i]] * path.Mr[i]
        ratio = b / a
        spread = c - b * ratio  # d·r, the part of the variance that falls with the price
        if spread <= 1e-14 * c:
            spread = 0.0  # the assets held have one and the same return

        # The price at which each event happens; the first one at or after the present price counts.
        budget_free = b
        variance_met = max(np.sqrt(spread / (1.0 - 1.0 / a)), price) if a > 1.0 else np.inf
        leaving_price, leaving = _next_to_leave(path, k, ratio, a, price)
        entering_price, entering = _next_to_enter(r, S, path, ratio, a, price)
        if variance_met <= min(budget_free, leaving_price, entering_price):
            for i in range(k):
                u[path.held[i]] = path.M1[i] / a
                if variance_met > 0.0:
                    u[path.held[i]] += (path.Mr[i] - ratio * path.M1[i]) / variance_met
            return _certify(r, S, u, variance_met, (b - variance_met) / a)
        if budget_free <= min(leaving_price, entering_price):
            price = np.sqrt(c)
            for i in range(k):
                u[path.held[i]] = path.Mr[i] / price
            return _certify(r, S, u, price, 0.0)
        if leaving_price <= entering_price:
            price = leaving_price
            _leave(S, path, k, leaving)
            k -= 1
        else:
            price = entering_price
            if not _enter(r, S, path, k, entering):
                return False
            k += 1
    return False


@compiled
def _start(r: FloatArray, S: FloatArray, path: Path, k: int) -> None:
    """Compute the products that `_enter` and `_leave` keep up to date."""
    path.SMr[:] = 0.0
    path.SM1[:] = 0.0
    for i in range(k):
        path.Mr[i] = path.M1[i] = 0.0
        for j in range(k):
            path.Mr[i] += path.M[i, j] * r[path.held[j]]
            path.M1[i] += path.M[i, j]
        path.SMr[:] += path.Mr[i] * S[path.held[i]]
        path.SM1[:] += path.M1[i] * S[path.held[i]]


@compiled
def _next_to_leave(path: Path, k: int, ratio: float, a: float, price: float) -> tuple[float, int]:
    """Return the price at which the next held asset falls to zero, and its place among the held."""
    first, leaving = np.inf, -1
    for i in range(k):
        if path.M1[i] < 0.0:
            # Where d_i/τ + e_i = 0.
            at = max((path.Mr[i] - ratio * path.M1[i]) * a / -path.M1[i], price)
            if at < first:
                first, leaving = at, i
    return first, leaving


@compiled
def _next_to_enter(r: FloatArray, S: FloatArray, path: Path, ratio: float, a: float, price: float) -> tuple[float, int]:
    """Return the price at which the next asset is worth holding, and the asset."""
    first, entering = np.inf, -1
    for j in range(len(r)):
        # What the asset would gain at the margin is level + τ slope.
        slope = (1.0 - path.SM1[j]) / a
        if not path.is_held[j] and slope > 1e-13 * S[j, j]:
            level = r[j] - path.SMr[j] - ratio * (1.0 - path.SM1[j])
            at = max(-level / slope, price)
            if at < first:
                first, entering = at, j
    return first, entering


@compiled
def _enter(r: FloatArray, S: FloatArray, path: Path, k: int, asset: int) -> bool:
    """Hold one more asset; return whether it is independent of those held."""
    gain_r, gain_1 = r[asset] - path.SMr[asset], 1.0 - path.SM1[asset]
    if not _add(S, path, k, asset):
        return False
    # The last column of the new inverse holds by how much each product changes.
    share = path.M[k, k]
    change = np.zeros(len(r))
    for i in range(k + 1):
        weight = path.M[i, k]
        if i < k:
            path.Mr[i] += weight * gain_r
            path.M1[i] += weight * gain_1
        for j in range(len(r)):
            change[j] += weight * S[path.held[i], j]
    path.Mr[k], path.M1[k] = share * gain_r, share * gain_1
    for j in range(len(r)):
        path.SMr[j] += gain_r * change[j]
        path.SM1[j] += gain_1 * change[j]
    return True


@compiled
def _leave(S: FloatArray, path: Path, k: int, at: int) -> None:
    """Hold one asset less."""
    loss_r, loss_1 = path.Mr[at] / path.M[at, at], path.M1[at] / path.M[at, at]
    change = np.zeros(len(S))
    for i in range(k):
        weight = path.M[i, at]
        path.Mr[i] -= weight * loss_r
        path.M1[i] -= weight * loss_1
        for j in range(len(S)):
            change[j] += weight * S[path.held[i], j]
    for j in range(len(S)):
        path.SMr[j] -= loss_r * change[j]
        path.SM1[j] -= loss_1 * change[j]
    path.Mr[at], path.M1[at] = path.Mr[k - 1], path.M1[k - 1]
    _remove(path, k, at)


@compiled
def _least_variance_of_the_best(r: FloatArray, S: FloatArray, u: FloatArray, path: Path) -> int:
    """Hold the portfolio of least variance among the assets of the largest return; return how many, 0 on failure.

    An active-set method on `min uᵀSu` over the simplex of the tied assets; with a single best asset there is nothing
    to do. On return `u` is zero again.
    """
    best = r.argmax()
    path.is_held[:] = False
    path.held[0], path.is_held[best] = best, True
    if S[best, best] <= 0.0:
        return 0
    path.M[0, 0] = 1.0 / S[best, best]
    u[best] = 1.0
    k = 1
    for _ in range(20 * len(r) + 20):
        k = _descend(u, path, k)
        entering = _best_tied(r, S, u, path, r[best] - TIE)
        if entering < 0:
            u[:] = 0.0
            return k
        if not _add(S, path, k, entering):
            break
        k += 1
    u[:] = 0.0
    return 0


@compiled
def _best_tied(r: FloatArray, S: FloatArray, u: FloatArray, path: Path, least: float) -> int:
    """Return the tied asset that lowers the variance fastest, -1 if none does."""
    gain, entering = 0.0, -1
    for j in range(len(r)):
        if not path.is_held[j] and r[j] >= least:
            # u·S·(u - e_j), with rounding of the variance left out of account.
            slope = -1e-12 * S[j, j]
            for i in range(len(r)):
                if u[i] > 0.0:
                    slope += (u @ S[i] - S[j, i]) * u[i]
            if slope > gain:
                gain, entering = slope, j
    return entering


@compiled
def _descend(u: FloatArray, path: Path, k: int) -> int:
    """Move to the least variance on the held assets, dropping what reaches zero on the way; return how many stay."""
    while True:
        goal = np.empty(k)
        for i in range(k):
            goal[i] = path.M[i, :k].sum()
        goal /= goal.sum()
        step, blocking = 1.0, -1
        for i in range(k):
            now = u[path.held[i]]
            if goal[i] <= 0.0:
                at = now / (now - goal[i]) if now > goal[i] else 0.0
                if at < step:
                    step, blocking = at, i
        for i in range(k):
            u[path.held[i]] += step * (goal[i] - u[path.held[i]])
        if blocking < 0:
            return k
        u[path.held[blocking]] = 0.0
        _remove(path, k, blocking)
        k -= 1


@compiled
def _add(S: FloatArray, path: Path, k: int, asset: int) -> bool:
    """Border the inverse by an asset; return whether it is independent of those held."""
    M = path.M
    column = np.empty(k)
    left = S[asset, asset]
    for i in range(k):
        column[i] = 0.0
        for j in range(k):
            column[i] += M[i, j] * S[asset, path.held[j]]
        left -= column[i] * S[asset, path.held[i]]
    if left <= DEPENDENT * S[asset, asset]:
        return False
    for i in range(k):
        weight = column[i] / left
        for j in range(k):
            M[i, j] += weight * column[j]
        M[i, k] = M[k, i] = -weight
    M[k, k] = 1.0 / left
    path.held[k], path.is_held[asset] = asset, True
    return True


@compiled
def _remove(path: Path, k: int, at: int) -> None:
    """Take an asset out of the inverse; the last one takes its place."""
    M, last = path.M, k - 1
    for i in range(k):
        M[i, at], M[i, last] = M[i, last], M[i, at]
    for j in range(k):
        M[at, j], M[last, j] = M[last, j], M[at, j]
    for i in range(last):
        weight = M[i, last] / M[last, last]
        for j in range(last):
            M[i, j] -= weight * M[last, j]
    path.is_held[path.held[at]] = False
    path.held[at] = path.held[last]


@compiled
def _certify(r: FloatArray, S: FloatArray, u: FloatArray, price: float, budget_price: float) -> bool:
    """Clean the portfolio of rounding, and return whether it is feasible and satisfies the optimality conditions."""
    d = len(r)
    total = variance = 0.0
    good = budget_price >= -CERTIFIED
    for i in range(d):
        if u[i] < 0.0:
            good &= u[i] >= -CERTIFIED
            u[i] = 0.0
        total += u[i]
    for i in range(d):
        risk = 0.0
        for j in range(d):
            risk += S[i, j] * u[j]
        variance += u[i] * risk
        gain = r[i] - budget_price - price * risk
        good &= gain <= CERTIFIED and (u[i] == 0.0 or gain >= -CERTIFIED)
    good &= variance <= 1.0 + CERTIFIED and total <= 1.0 + CERTIFIED
    # Both constraints are tight at the end of the path, or their price is zero.
    good &= budget_price <= CERTIFIED or total >= 1.0 - CERTIFIED
    good &= price <= CERTIFIED or variance >= 1.0 - CERTIFIED
    return good
