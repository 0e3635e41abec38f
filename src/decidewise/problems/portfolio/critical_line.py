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

The steady path is for assets that are combinations of each other, as cash and perfect hedges are, and for returns that
nearly agree. It is the same path with returns that are all less by `ρ`, the largest, and covariances that are all more
by `κ = 1`: as long as the whole budget is spent, all portfolios lose the same return and gain the same variance. The
formulas for the budget change: its price is `ρ + b/a - τ (1/a - κ)`, and it is free from `τ = (b + ρ a) / (1 - κ a)`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.runtime.kernels import kernel

# Sums may be taken in any order and divisors may be zero, which lets the compiler use vector instructions; infinities
# keep their meaning. What is called in one place only is inlined: what stays a function of its own is optimised once
# for itself and again in all that call it, which takes most of the time to compile.
_settings: dict = {"error_model": "numpy", "fastmath": {"reassoc", "contract"}}
compiled, inlined = kernel(**_settings), kernel(**_settings, inline="always")

#: Returns within this fraction of the largest one are tied.
TIE = 1e-12
#: A loss beyond this multiple of the largest return counts as this one: nobody takes it.
WORST = 1e100
#: An asset whose variance, given those held, is below this fraction of its own is a combination of them.
DEPENDENT = 1e-10
#: A slope below this fraction of the asset's own variance is rounding.
FLAT = 1e-13
#: A portfolio is certified if no other has a larger return, nor more budget or less risk, by more than this fraction.
CERTIFIED = 1e-9
#: The fraction of the product of two standard deviations to which their covariance is known in float64.
KNOWN = 2.5e-16
#: Where that leaves the variance in doubt, the value may be in doubt as well, up to this fraction.
DOUBTFUL = 1e-6
#: The first rows of a tableau; those of the assets held follow.
RETURNS, ONES, FIRST = 0, 1, 2


def follow_risk_price(
    returns: FloatArray, S: FloatArray, *, steady: bool = False
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the best shares (n, d) for each row of returns, and whether each is certified to be optimal."""
    d = len(S)
    shift = 1.0 if steady else 0.0
    shares, certified = np.zeros_like(returns), np.ones(len(returns), np.bool_)
    tableau, held, is_held = np.empty((FIRST + d, d)), np.empty(d, np.int64), np.empty(d, np.bool_)
    _follow(
        returns, S, S + shift, shift, deviations(S), FLAT * np.diag(S),
        tableau, held, is_held, np.empty(d), np.empty(d), shares, certified,
    )  # fmt: skip
    return shares, certified


def deviations(S: FloatArray) -> FloatArray:
    """Return the standard deviations (d,) of assets of covariance `S` (d, d)."""
    return np.sqrt(np.maximum(np.diag(S), 0.0))


@compiled
def _follow(  # type: ignore[no-untyped-def]
    returns, S, shifted, shift, deviation, flat, tableau, held, is_held, work, r, shares, certified
):
    for row in range(len(returns)):
        best = worst = 0.0
        for i in range(len(r)):
            best = max(best, returns[row, i])
            worst = min(worst, returns[row, i])
        if best > 0.0:
            # The scale keeps squares within float64. Tolerances are relative to what is compared.
            worst = max(worst, -WORST * best)
            scale = max(best, -worst)
            best /= scale
            less = best if shift > 0.0 else 0.0
            for i in range(len(r)):
                r[i] = max(returns[row, i], worst) / scale
                r[i] = (best if r[i] >= best - TIE * best else r[i]) - less
            certified[row] = _solve_row(
                r, less, S, shifted, shift, deviation, flat, tableau, held, is_held, work, shares[row]
            )


@inlined
def _solve_row(  # type: ignore[no-untyped-def]
    r, less, S, shifted, shift, deviation, flat, tableau, held, is_held, work, u
):
    k = _hold_the_best(r, shifted, tableau, held, is_held, work, u)
    if k == 0:
        return False
    Mr, M1 = tableau[RETURNS], tableau[ONES]
    price = 0.0
    for _ in range(20 * len(r) + 20):
        a = b = c = 0.0
        for i in held[:k]:
            a += M1[i]
            b += Mr[i]
            c += Mr[i] * r[i]
        spread = c - b * b / a  # d·r, the part of the variance that falls with the price
        last = b  # the price at which the budget becomes free
        if shift > 0.0:
            spread = 0.0
            for i in held[:k]:
                spread += (Mr[i] - b / a * M1[i]) * (r[i] - b / a)
            rest = 1.0 - shift * a
            last = (b + less * a) / rest if rest > 1e-13 else np.inf
        if spread <= 1e-14 * c:
            spread = 0.0  # the assets held have one and the same return

        # The first event counts: an asset enters or leaves, unless the budget is free or the variance met before.
        asset, ratio = _next(Mr, M1, flat, is_held, work, a)
        event = max(b - a * ratio, price)
        free = 1.0 + shift - 1.0 / a  # what the rest of the variance may be
        if free > 0.0 and spread <= free * min(event, last) ** 2:
            price = max(np.sqrt(spread / free), price)
            for i in held[:k]:
                u[i] = M1[i] / a
                if price > 0.0:
                    u[i] += (Mr[i] - b / a * M1[i]) / price
            return _certify(r, less, S, deviation, u, price, max(less + b / a - price * (1.0 / a - shift), 0.0))
        if last <= event:
            more = (last - b) / a
            price = np.sqrt(c + more * b + less * last)
            for i in held[:k]:
                u[i] = (Mr[i] + more * M1[i]) / price
            return _certify(r, less, S, deviation, u, price, 0.0)
        price = event
        k = _pivot(shifted, tableau, held, is_held, work, k, asset)
        if k == 0:
            return False
    return False


@inlined
def _next(levels, slopes, flat, is_held, ratios, a):  # type: ignore[no-untyped-def]
    """Return the asset that enters or leaves next, and its ratio, the largest of all.

    A held asset has the share `(Mr - b/a M1) / τ + M1 / a`; another one gains, with `r - SMr` and `1 - SM1` in the
    places of `Mr` and `M1`, `Mr - b/a M1 + τ M1 / a` at the margin. Either is zero at `τ = b - a Mr / M1`.
    """
    for i in range(len(ratios)):
        moves = slopes[i] < 0.0 if is_held[i] else slopes[i] > a * flat[i]
        ratio = levels[i] / slopes[i]  # of every asset, for a branch would cost more than a division
        ratios[i] = ratio if moves else -np.inf
    asset, largest = 0, -np.inf
    for i in range(len(ratios)):
        if ratios[i] > largest:
            asset, largest = i, ratios[i]
    return asset, largest


@compiled
def _pivot(S, tableau, held, is_held, work, k, asset):  # type: ignore[no-untyped-def]
    """Take an asset in or out; return how many are held then; 0 is also for one that depends on those held."""
    d = len(work)
    place = _read_row(S, tableau, held, is_held, work, k, asset)
    if place == k and work[asset] <= DEPENDENT * S[asset, asset]:
        return 0
    sign = -1.0 if is_held[asset] else 1.0
    inverse = 1.0 / work[asset]
    for i in range(FIRST + k):
        weight = tableau[i, asset] * inverse
        for j in range(d):
            tableau[i, j] -= weight * work[j]
        tableau[i, asset] = sign * weight
    is_held[asset] = not is_held[asset]
    if place < k:
        held[place] = held[k - 1]
        for j in range(d):
            tableau[FIRST + place, j] = tableau[FIRST + k - 1, j]
        return k - 1
    held[k] = asset
    for j in range(d):
        tableau[FIRST + k, j] = work[j] * inverse
    tableau[FIRST + k, asset] = -inverse
    return k + 1


@inlined
def _read_row(S, tableau, held, is_held, work, k, asset):  # type: ignore[no-untyped-def]
    """Set `work` to the row of an asset, held or not; return its place among those held, or else `k`."""
    d, place = len(work), k
    if is_held[asset]:
        place = 0
        while held[place] != asset:
            place += 1
        for j in range(d):
            work[j] = tableau[FIRST + place, j]
    else:
        # The row of an asset that is not held: [S_NH M, S_NN - S_NH M S_HN].
        for j in range(d):
            work[j] = S[asset, j]
        for i in held[:k]:
            work[i] = 0.0
        for i in range(k):
            weight = S[asset, held[i]]
            for j in range(d):
                work[j] -= weight * tableau[FIRST + i, j]
    return place


@inlined
def _hold_the_best(r, S, tableau, held, is_held, work, u):  # type: ignore[no-untyped-def]
    """Hold the portfolio of least variance among the assets of the largest return; return how many, 0 on failure.

    An active-set method on `min uᵀSu` over the simplex of the tied assets; with a single best asset there is nothing
    to do. On return `u` is zero again.
    """
    best = 0
    for i in range(len(r)):
        tableau[RETURNS, i] = r[i]
        tableau[ONES, i] = 1.0
        is_held[i] = False
        if r[i] > r[best]:
            best = i
    asset = best
    u[best] = 1.0
    k = 0
    for _ in range(20 * len(r) + 20):
        k = _pivot(S, tableau, held, is_held, work, k, asset)
        if k == 0:
            break
        k, a = _descend(S, tableau, held, is_held, work, u, k)
        # The tied asset whose covariance with the portfolio is furthest below its variance, by more than rounding.
        shortfall, asset = 0.0, -1
        for i in range(len(r)):
            if not is_held[i] and r[i] == r[best]:
                less = tableau[ONES, i] / a - 1e-12 * S[i, i]
                if less > shortfall:
                    shortfall, asset = less, i
        if asset < 0:
            break
    for i in range(len(u)):
        u[i] = 0.0
    return k if asset < 0 else 0


@inlined
def _descend(S, tableau, held, is_held, work, u, k):  # type: ignore[no-untyped-def]
    """Move to the least variance on the held assets, dropping what reaches zero; return how many stay, and `1ᵀM1`."""
    M1 = tableau[ONES]
    while True:
        a = 0.0
        for i in held[:k]:
            a += M1[i]
        step, blocking = 1.0, -1
        for i in held[:k]:
            if M1[i] <= 0.0:
                at = u[i] / (u[i] - M1[i] / a) if u[i] > M1[i] / a else 0.0
                if at < step:
                    step, blocking = at, i
        for i in held[:k]:
            u[i] += step * (M1[i] / a - u[i])
        if blocking < 0:
            break
        u[blocking] = 0.0
        k = _pivot(S, tableau, held, is_held, work, k, blocking)
    return k, a


@compiled
def _certify(r, less, S, deviation, u, price, budget_price):  # type: ignore[no-untyped-def]
    """Clean the portfolio of rounding, and return whether it is feasible and none is better, by more than rounding.

    At prices `τ` of the risk and `ν` of the budget that leave no gain, `r - ν - τ S u <= 0`, no portfolio has a larger
    return than `ν + τ sqrt(uᵀSu)`. Where one asset gains, the budget may cost so much more, or the risk.
    """
    d = len(r)
    total = value = parts = 0.0
    for i in range(d):
        u[i] = max(u[i], 0.0)
        total += u[i]
        value += (r[i] + less) * u[i]
        parts += deviation[i] * u[i]
    variance = gain = 0.0
    steepest = price
    for i in range(d):
        risk = 0.0
        for j in range(d):
            risk += S[i, j] * u[j]
        variance += u[i] * risk
        worth = r[i] + less - budget_price
        excess = worth - price * (risk + KNOWN * deviation[i] * parts)
        if excess > 0.0:
            gain = max(gain, excess)
            steepest = max(steepest, worth / risk) if risk > 0.0 else np.inf
    whole = np.sqrt(max(variance, 0.0))
    bound = price * whole + gain
    if steepest < np.inf:
        bound = min(bound, steepest * whole)
    doubt = KNOWN * parts * parts
    allowed = 1.0 + CERTIFIED + doubt
    return doubt <= CERTIFIED and total <= allowed and variance <= allowed and budget_price + bound <= allowed * value
