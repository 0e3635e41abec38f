"""The critical line of a portfolio: its optimum as a function of the price of risk.

For a price `τ` the portfolio `u(τ)` maximises `r·u - τ/2 uᵀSu` over `u >= 0`, `sum u <= 1`. While the same assets are
held (the support), with `M` the inverse of their covariance and `a = 1ᵀM1`, `b = 1ᵀMr`,

    u(τ) = d/τ + e,   d = Mr - (b/a) M1,   e = M1/a,   variance = d·r/τ² + 1/a,   price of the budget = (b - τ)/a.

So the next event as the price rises is found by division: the variance falls to 1 (done), the budget becomes free
(from where on the portfolio only shrinks: done), a held asset reaches zero, or another becomes worth holding.
(Markowitz, "The optimization of a quadratic function subject to linear constraints", 1956.)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from decidewise.checks import FloatArray

IntArray = npt.NDArray[np.int64]

#: Returns within this fraction of the largest one are tied.
TIE = 1e-12
#: An asset whose variance, given those held, is below this fraction of its own is a combination of them.
DEPENDENT = 1e-10
#: What the optimality conditions may be off by, in units of the largest return, the budget and the risk.
CERTIFIED = 1e-9


@njit(cache=True, nogil=True)
def follow_risk_price(returns: FloatArray, S: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the best shares (n, d) for each row of returns, and whether each is certified to be optimal."""
    n_rows, d = returns.shape
    shares = np.zeros((n_rows, d))
    certified = np.ones(n_rows, np.bool_)
    M = np.empty((d, d))
    held = np.empty(d, np.int64)
    is_held = np.empty(d, np.bool_)
    for row in range(n_rows):
        largest = np.abs(returns[row]).max()
        if returns[row].max() <= 0.0:
            continue
        r = returns[row] / largest
        certified[row] = _solve_row(r, S, shares[row], M, held, is_held)
    return shares, certified


@njit(cache=True, nogil=True)
def _solve_row(
    r: FloatArray, S: FloatArray, u: FloatArray, M: FloatArray, held: IntArray, is_held: npt.NDArray[np.bool_]
) -> bool:
    d = len(r)
    k = _least_variance_of_the_best(r, S, u, M, held, is_held)
    if k == 0:
        return False
    price = 0.0
    Mr, M1 = np.empty(d), np.empty(d)
    for _ in range(20 * d + 20):
        a = b = c = 0.0
        for i in range(k):
            Mr[i] = M1[i] = 0.0
            for j in range(k):
                Mr[i] += M[i, j] * r[held[j]]
                M1[i] += M[i, j]
            a += M1[i]
            b += Mr[i]
            c += r[held[i]] * Mr[i]
        ratio = b / a
        spread = c - b * ratio  # d·r, the part of the variance that falls with the price
        if spread <= 1e-14 * c:
            spread = 0.0  # the assets held have one and the same return

        # The price at which each event happens; the first one at or after the present price counts.
        budget_free = b
        variance_met = max(np.sqrt(spread / (1.0 - 1.0 / a)), price) if a > 1.0 else np.inf
        leaving_price, leaving = _next_to_leave(Mr, M1, ratio, a, k, price)
        entering_price, entering = _next_to_enter(r, S, Mr, M1, ratio, a, held, is_held, k, price)

        if variance_met <= min(budget_free, leaving_price, entering_price):
            for i in range(k):
                u[held[i]] = (Mr[i] - ratio * M1[i]) / variance_met + M1[i] / a if variance_met > 0.0 else M1[i] / a
            return _certify(r, S, u, variance_met, (b - variance_met) / a)
        if budget_free <= min(leaving_price, entering_price):
            price = np.sqrt(c)
            for i in range(k):
                u[held[i]] = Mr[i] / price
            return _certify(r, S, u, price, 0.0)
        if leaving_price <= entering_price:
            price = leaving_price
            is_held[held[leaving]] = False
            k = _remove(M, held, k, leaving)
        else:
            price = entering_price
            if not _add(S, M, held, k, entering):
                return False
            is_held[entering] = True
            k += 1
    return False


@njit(cache=True, nogil=True)
def _next_to_leave(Mr: FloatArray, M1: FloatArray, ratio: float, a: float, k: int, price: float) -> tuple[float, int]:
    """Return the price at which the next held asset falls to zero, and its place among the held."""
    first, leaving = np.inf, -1
    for i in range(k):
        if M1[i] < 0.0:
            # Where d_i/τ + e_i = 0.
            at = max((Mr[i] - ratio * M1[i]) * a / -M1[i], price)
            if at < first:
                first, leaving = at, i
    return first, leaving


@njit(cache=True, nogil=True)
def _next_to_enter(
    r: FloatArray,
    S: FloatArray,
    Mr: FloatArray,
    M1: FloatArray,
    ratio: float,
    a: float,
    held: IntArray,
    is_held: npt.NDArray[np.bool_],
    k: int,
    price: float,
) -> tuple[float, int]:
    """Return the price at which the next asset is worth holding, and the asset."""
    first, entering = np.inf, -1
    for j in range(len(r)):
        if is_held[j]:
            continue
        # What the asset would gain at the margin is level + τ slope.
        level, slope = r[j] - ratio, 1.0
        for i in range(k):
            level -= S[j, held[i]] * (Mr[i] - ratio * M1[i])
            slope -= S[j, held[i]] * M1[i]
        slope /= a
        if slope > 1e-13 * S[j, j]:
            at = max(-level / slope, price)
            if at < first:
                first, entering = at, j
    return first, entering


@njit(cache=True, nogil=True)
def _least_variance_of_the_best(
    r: FloatArray, S: FloatArray, u: FloatArray, M: FloatArray, held: IntArray, is_held: npt.NDArray[np.bool_]
) -> int:
    """Hold the portfolio of least variance among the assets of the largest return; return how many, 0 on failure.

    An active-set method on `min uᵀSu` over the simplex of the tied assets; with a single best asset there is nothing
    to do. On return `M` is the inverse for the held assets and `u` is zero again.
    """
    best = r.argmax()
    is_held[:] = False
    held[0], is_held[best] = best, True
    if S[best, best] <= 0.0:
        return 0
    M[0, 0] = 1.0 / S[best, best]
    u[best] = 1.0
    k = 1
    for _ in range(20 * len(r) + 20):
        k = _descend(u, M, held, is_held, k)
        variance = 0.0
        for i in range(k):
            for j in range(k):
                variance += u[held[i]] * S[held[i], held[j]] * u[held[j]]
        gain, entering = 1e-12 * variance, -1
        for j in range(len(r)):
            if not is_held[j] and r[j] >= r[best] - TIE:
                slope = variance
                for i in range(k):
                    slope -= S[j, held[i]] * u[held[i]]
                if slope > gain:
                    gain, entering = slope, j
        if entering < 0:
            u[:] = 0.0
            return k
        if not _add(S, M, held, k, entering):
            break
        is_held[entering] = True
        k += 1
    u[:] = 0.0
    return 0


@njit(cache=True, nogil=True)
def _descend(u: FloatArray, M: FloatArray, held: IntArray, is_held: npt.NDArray[np.bool_], k: int) -> int:
    """Move to the least variance on the held assets, dropping what reaches zero on the way; return how many stay."""
    while True:
        goal = np.empty(k)
        for i in range(k):
            goal[i] = M[i, :k].sum()
        goal /= goal.sum()
        step, blocking = 1.0, -1
        for i in range(k):
            now = u[held[i]]
            if goal[i] <= 0.0:
                at = now / (now - goal[i]) if now > goal[i] else 0.0
                if at < step:
                    step, blocking = at, i
        for i in range(k):
            u[held[i]] += step * (goal[i] - u[held[i]])
        if blocking < 0:
            return k
        u[held[blocking]] = 0.0
        is_held[held[blocking]] = False
        k = _remove(M, held, k, blocking)


@njit(cache=True, nogil=True)
def _add(S: FloatArray, M: FloatArray, held: IntArray, k: int, asset: int) -> bool:
    """Border the inverse by an asset; return whether it is independent of those held."""
    column = np.empty(k)
    left = S[asset, asset]
    for i in range(k):
        column[i] = 0.0
        for j in range(k):
            column[i] += M[i, j] * S[held[j], asset]
        left -= column[i] * S[held[i], asset]
    if left <= DEPENDENT * S[asset, asset]:
        return False
    for i in range(k):
        for j in range(k):
            M[i, j] += column[i] * column[j] / left
        M[i, k] = M[k, i] = -column[i] / left
    M[k, k] = 1.0 / left
    held[k] = asset
    return True


@njit(cache=True, nogil=True)
def _remove(M: FloatArray, held: IntArray, k: int, at: int) -> int:
    """Take an asset out of the inverse; return how many are left."""
    last = k - 1
    for i in range(k):
        M[i, at], M[i, last] = M[i, last], M[i, at]
    for j in range(k):
        M[at, j], M[last, j] = M[last, j], M[at, j]
    held[at], held[last] = held[last], held[at]
    for i in range(last):
        for j in range(last):
            M[i, j] -= M[i, last] * M[last, j] / M[last, last]
    return last


@njit(cache=True, nogil=True)
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
