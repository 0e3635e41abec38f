"""The critical line of a portfolio: its optimum as a function of the price of risk.

For a price `τ` the portfolio `u(τ)` maximises `r·u - τ/2 uᵀSu` over `u >= 0`, `sum u <= 1`. While the same assets are
held (the support), with `M` the inverse of their covariance and `a = 1ᵀM1`, `b = 1ᵀMr`,

    u(τ) = d/τ + e,   d = Mr - (b/a) M1,   e = M1/a,   variance = d·r/τ² + 1/a,   price of the budget = (b - τ)/a.

So the next event as the price rises is found by division: the variance falls to 1 (done), the budget becomes free
(from where on the portfolio only shrinks: done), a held asset reaches zero, or another becomes worth holding.
(Markowitz, "The optimization of a quadratic function subject to linear constraints", 1956.)

All that these need stands in a tableau. It has rows of the returns and of ones, and one for each asset held. With `H`
held and `N` not, these are

    [Mr, r_N - S_NH M r],   [M1, 1 - S_NH M 1],   [-M, M S_HN],

and a pivot takes an asset in, or out again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.kernels import kernel

# Sums may be taken in any order and divisors may be zero, which lets the compiler use vector instructions; infinities
# keep their meaning. What a step of the path calls is inlined: to pass all its arrays takes time.
_settings: dict = {"error_model": "numpy", "fastmath": {"reassoc", "contract"}}
compiled, inlined = kernel(**_settings), kernel(**_settings, inline="always")

#: Returns within this fraction of the largest one are tied.
TIE = 1e-12
#: An asset whose variance, given those held, is below this fraction of its own is a combination of them.
DEPENDENT = 1e-10
#: A slope below this fraction of the asset's own variance is rounding.
FLAT = 1e-13
#: What the optimality conditions may be off by, in units of the largest return, the budget and the risk.
CERTIFIED = 1e-9
#: The first rows of a tableau; those of the assets held follow.
RETURNS, ONES, FIRST = 0, 1, 2


class Path(NamedTuple):
    """Where the critical line is."""

    S: FloatArray  # (d, d) the covariance, in units of the risk
    tableau: FloatArray  # (2 + d, d), of which 2 + the number held are in use
    held: npt.NDArray[np.int64]  # (d,) the asset of each row from FIRST on
    is_held: npt.NDArray[np.bool_]  # (d,)
    flat: FloatArray  # (d,) for each asset the slope below which it does not enter
    work: FloatArray  # (d,)


@compiled
def follow_risk_price(returns: FloatArray, S: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the best shares (n, d) for each row of returns, and whether each is certified to be optimal."""
    n_rows, d = returns.shape
    shares = np.zeros((n_rows, d))
    certified = np.ones(n_rows, np.bool_)
    tableau, flat = np.empty((FIRST + d, d)), FLAT * np.diag(S)
    path = Path(S, tableau, np.empty(d, np.int64), np.empty(d, np.bool_), flat, np.empty(d))
    for row in range(n_rows):
        if returns[row].max() > 0.0:
            certified[row] = _solve_row(returns[row] / np.abs(returns[row]).max(), shares[row], path)
    return shares, certified


@compiled
def _solve_row(r: FloatArray, u: FloatArray, path: Path) -> bool:
    k = _hold_the_best(r, u, path)
    if k == 0:
        return False
    Mr, M1 = path.tableau[RETURNS], path.tableau[ONES]
    price = 0.0
    for _ in range(20 * len(r) + 20):
        a = b = c = 0.0
        for i in path.held[:k]:
            a += M1[i]
            b += Mr[i]
            c += Mr[i] * r[i]
        spread = c - b * b / a  # d·r, the part of the variance that falls with the price
        if spread <= 1e-14 * c:
            spread = 0.0  # the assets held have one and the same return

        # The first event counts: an asset enters or leaves, unless the budget is free or the variance met before.
        asset, ratio = _next(path, a)
        event = max(b - a * ratio, price)
        free = 1.0 - 1.0 / a  # what the rest of the variance may be
        if free > 0.0 and spread <= free * min(event, b) ** 2:
            price = max(np.sqrt(spread / free), price)
            for i in path.held[:k]:
                u[i] = M1[i] / a
                if price > 0.0:
                    u[i] += (Mr[i] - b / a * M1[i]) / price
            return _certify(r, path.S, u, price, (b - price) / a)
        if b <= event:
            price = np.sqrt(c)
            for i in path.held[:k]:
                u[i] = Mr[i] / price
            return _certify(r, path.S, u, price, 0.0)
        price = event
        k = _pivot(path, k, asset)
        if k == 0:
            return False
    return False


@inlined
def _next(path: Path, a: float) -> tuple[int, float]:
    """Return the asset that enters or leaves next, and its ratio, the largest of all.

    A held asset has the share `(Mr - b/a M1) / τ + M1 / a`; another one gains, with `r - SMr` and `1 - SM1` in the
    places of `Mr` and `M1`, `Mr - b/a M1 + τ M1 / a` at the margin. Either is zero at `τ = b - a Mr / M1`.
    """
    levels, slopes, ratios = path.tableau[RETURNS], path.tableau[ONES], path.work
    for i in range(len(ratios)):
        moves = slopes[i] < 0.0 if path.is_held[i] else slopes[i] > a * path.flat[i]
        ratio = levels[i] / slopes[i]  # of every asset, for a branch would cost more than a division
        ratios[i] = ratio if moves else -np.inf
    asset, largest = 0, -np.inf
    for i in range(len(ratios)):
        if ratios[i] > largest:
            asset, largest = i, ratios[i]
    return asset, largest


@inlined
def _pivot(path: Path, k: int, asset: int) -> int:
    """Take an asset in or out; return how many are held then; 0 is also for one that depends on those held."""
    tableau, work = path.tableau, path.work
    place = k
    if path.is_held[asset]:
        place = 0
        while path.held[place] != asset:
            place += 1
        _copy(tableau[FIRST + place], work)
    else:
        # The row of an asset that is not held: [S_NH M, S_NN - S_NH M S_HN].
        _copy(path.S[asset], work)
        for i in path.held[:k]:
            work[i] = 0.0
        for i in range(k):
            weight = path.S[asset, path.held[i]]
            for j in range(len(work)):
                work[j] -= weight * tableau[FIRST + i, j]
        if work[asset] <= DEPENDENT * path.S[asset, asset]:
            return 0
    sign = -1.0 if path.is_held[asset] else 1.0
    inverse = 1.0 / work[asset]
    for i in range(FIRST + k):
        weight = tableau[i, asset] * inverse
        for j in range(len(work)):
            tableau[i, j] -= weight * work[j]
        tableau[i, asset] = sign * weight
    path.is_held[asset] = not path.is_held[asset]
    if place < k:
        path.held[place] = path.held[k - 1]
        _copy(tableau[FIRST + k - 1], tableau[FIRST + place])
        return k - 1
    path.held[k] = asset
    for j in range(len(work)):
        tableau[FIRST + k, j] = work[j] * inverse
    tableau[FIRST + k, asset] = -inverse
    return k + 1


@inlined
def _copy(source: FloatArray, target: FloatArray) -> None:
    """Copy a row; a slice would first look whether the two overlap, which takes longer than the row."""
    for j in range(len(source)):
        target[j] = source[j]


@compiled
def _hold_the_best(r: FloatArray, u: FloatArray, path: Path) -> int:
    """Hold the portfolio of least variance among the assets of the largest return; return how many, 0 on failure.

    An active-set method on `min uᵀSu` over the simplex of the tied assets; with a single best asset there is nothing
    to do. On return `u` is zero again.
    """
    path.tableau[RETURNS] = r
    path.tableau[ONES] = 1.0
    path.is_held[:] = False
    best = int(r.argmax())
    asset = best
    u[best] = 1.0
    k = 0
    for _ in range(20 * len(r) + 20):
        k = _pivot(path, k, asset)
        if k == 0:
            break
        k, a = _descend(u, path, k)
        # The tied asset whose covariance with the portfolio is furthest below its variance, by more than rounding.
        shortfall, asset = 0.0, -1
        for i in range(len(r)):
            if not path.is_held[i] and r[i] >= r[best] - TIE:
                less = path.tableau[ONES, i] / a - 1e-12 * path.S[i, i]
                if less > shortfall:
                    shortfall, asset = less, i
        if asset < 0:
            u[:] = 0.0
            return k
    u[:] = 0.0
    return 0


@compiled
def _descend(u: FloatArray, path: Path, k: int) -> tuple[int, float]:
    """Move to the least variance on the held assets, dropping what reaches zero; return how many stay, and `1ᵀM1`."""
    M1 = path.tableau[ONES]
    while True:
        a = 0.0
        for i in path.held[:k]:
            a += M1[i]
        step, blocking = 1.0, -1
        for i in path.held[:k]:
            if M1[i] <= 0.0:
                at = u[i] / (u[i] - M1[i] / a) if u[i] > M1[i] / a else 0.0
                if at < step:
                    step, blocking = at, i
        for i in path.held[:k]:
            u[i] += step * (M1[i] / a - u[i])
        if blocking < 0:
            return k, a
        u[blocking] = 0.0
        k = _pivot(path, k, blocking)


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
