"""The critical line of a portfolio: its optimum as a function of the price of risk.

For a price `τ` the portfolio `u(τ)` maximises `r·u - τ/2 uᵀSu` over `u >= 0`, `sum u <= 1`. As long as the same assets
are held, with `M` the inverse of their covariance and `a = 1ᵀM1`, `b = 1ᵀMr`,

    u(τ) = d/τ + e,   d = Mr - (b/a) M1,   e = M1/a,   variance = d·r/τ² + 1/a,   price of the budget = (b - τ)/a.

As the price rises, the next event is found by division: the variance falls to 1 (done), the budget stops binding (from
there on the portfolio only shrinks: done), the share of a held asset reaches zero, or another asset becomes worth
holding. (Markowitz, "The optimization of a quadratic function subject to linear constraints", 1956.)

A tableau holds all numbers that this needs. It has a row for the returns, a row of ones and a row for each held asset.
With `H` the assets held and `N` the others, these rows are

    [Mr, r_N - S_NH M r],   [M1, 1 - S_NH M 1],   [-M, M S_HN],

and a pivot adds an asset to those held, or removes it.

The steady path handles assets that are combinations of each other, such as cash and perfect hedges, and returns that
are nearly equal. It is the same path with all returns reduced by `ρ`, the largest return, and all covariances increased
by `κ = 1`: as long as the whole budget is spent, this changes the return and the variance of all portfolios by the same
amount. Only the formulas for the budget change: its price is `ρ + b/a - τ (1/a - κ)`, and it stops binding at
`τ = (b + ρ a) / (1 - κ a)`.
"""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray
from decidewise.kit.kernels import kernel

# Sums may be taken in any order and divisors may be zero, which lets the compiler use vector instructions; infinities
# keep their meaning. Functions with a single caller are inlined: a separate function is optimised once by itself and
# again in each caller, which takes most of the compile time.
_settings: dict = {"error_model": "numpy", "fastmath": {"reassoc", "contract"}}
compiled, inner = kernel(**_settings), kernel(**_settings, inner=True)
inlined = kernel(**_settings, inline="always")

#: Returns within this fraction of the largest one are tied.
TIE = 1e-12
#: Losses beyond this multiple of the largest return are clipped to it: such assets are never held.
WORST = 1e100
#: An asset is a combination of those held if its variance given them is below this fraction of its own variance.
DEPENDENT = 1e-10
#: A slope below this fraction of the asset's own variance is rounding.
FLAT = 1e-13
#: A portfolio is certified if it is feasible, and its return is the largest possible, up to this fraction.
CERTIFIED = 1e-9
#: The rounding of a covariance in float64, as a fraction of the product of the two standard deviations.
RESOLUTION = 2.5e-16
#: The largest fraction of the return that may be uncertain because of this rounding.
DOUBTFUL = 1e-6
#: The first rows of a tableau, one of them to work in; those of the assets held follow.
WORK, RETURNS, ONES, FIRST = 0, 1, 2, 3


def follow_risk_price(returns: FloatArray, S: FloatArray, *, steady: bool = False) -> tuple[FloatArray, BoolArray]:
    """Return the best shares (n, d) for each row of returns, and whether each is certified to be optimal.

    The covariance (d, d) may have an axis of n rows in front. The loop over these is in Python: it takes some
    microseconds per row, and a compiled one would compile all of this twice.
    """
    d = S.shape[-1]
    shares, certified = np.zeros_like(returns), np.ones(len(returns), np.bool_)
    space, held, is_held = np.empty((FIRST + d + 3, d)), np.empty(d, np.int64), np.empty(d, np.bool_)
    shift = 1.0 if steady else 0.0
    blocks = [(slice(None), S)] if S.ndim == 2 else [(slice(row, row + 1), S[row]) for row in range(len(S))]
    for rows, own in blocks:
        shifted = own + 1.0 if steady else own
        _solve_rows(returns[rows], own, shifted, shift, space, held, is_held, shares[rows], certified[rows])
    return shares, certified


def deviations(S: FloatArray) -> FloatArray:
    """Return the standard deviations (d,) of assets of covariance `S` (d, d)."""
    return np.sqrt(np.maximum(S.diagonal(), 0.0))


@compiled
def _solve_rows(returns, S, shifted, shift, space, held, is_held, shares, certified):  # type: ignore[no-untyped-def]
    d = len(S)
    deviation, flat, r, tableau = space[0], space[1], space[2], space[3:]
    work = tableau[WORK]
    for i in range(d):
        deviation[i] = np.sqrt(max(S[i, i], 0.0))
        flat[i] = FLAT * S[i, i]
    for row in range(len(returns)):
        best = worst = 0.0
        for i in range(len(r)):
            best = max(best, returns[row, i])
            worst = min(worst, returns[row, i])
        if best > 0.0:
            # The scale keeps squares in the range of float64.
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
    """Set the shares of one row of returns; return whether they are certified.

    Start: hold the largest returns.
    Sums: variance and budget along the line.
    Event: which asset enters or leaves next.
    End: variance at 1, or budget slack; certify.
    Pivot: exchange the asset, go on.
    """
    k = _hold_best_returns(r, shifted, tableau, held, is_held, work, u)
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
        last = b  # the price at which the budget stops binding
        if shift > 0.0:
            spread = 0.0
            for i in held[:k]:
                spread += (Mr[i] - b / a * M1[i]) * (r[i] - b / a)
            rest = 1.0 - shift * a
            last = (b + less * a) / rest if rest > 1e-13 else np.inf
        if spread <= 1e-14 * c:
            spread = 0.0  # the held assets all have the same return

        # The first event counts: an asset enters or leaves, unless the variance or the budget ends the path before.
        asset, ratio = _next_event(Mr, M1, flat, is_held, work, a)
        event = max(b - a * ratio, price)
        free = 1.0 + shift - 1.0 / a  # the variance that is allowed beyond the constant part 1/a
        until = min(event, last)
        if free > 0.0 and spread <= free * until * until:
            price = max(np.sqrt(spread / free), price)
            for i in held[:k]:
                u[i] = M1[i] / a
                if price > 0.0:
                    u[i] += (Mr[i] - b / a * M1[i]) / price
            budget_price = max(less + b / a - price * (1.0 / a - shift), 0.0)
            return _certify(r, less, S, deviation, held[:k], work, u, price, budget_price)
        if last <= event:
            more = (last - b) / a
            price = np.sqrt(c + more * b + less * last)
            for i in held[:k]:
                u[i] = (Mr[i] + more * M1[i]) / price
            return _certify(r, less, S, deviation, held[:k], work, u, price, 0.0)
        price = event
        k = _pivot(shifted, tableau, held, is_held, k, asset)
        if k == 0:
            return False
    return False


@inlined
def _next_event(levels, slopes, flat, is_held, ratios, a):  # type: ignore[no-untyped-def]
    """Return the asset that enters or leaves next, and its ratio, the largest of all.

    A held asset has the share `(Mr - b/a M1) / τ + M1 / a`. Any other asset has the marginal gain
    `Mr - b/a M1 + τ M1 / a`, where `Mr` and `M1` stand for `r - SMr` and `1 - SM1`. Either is zero at
    `τ = b - a Mr / M1`.
    """
    for i in range(len(ratios)):
        moves = slopes[i] < 0.0 if is_held[i] else slopes[i] > a * flat[i]
        ratio = levels[i] / slopes[i]  # computed for every asset: a branch would take longer than the division
        ratios[i] = ratio if moves else -np.inf
    asset, largest = 0, -np.inf
    for i in range(len(ratios)):
        if ratios[i] > largest:
            asset, largest = i, ratios[i]
    return asset, largest


@inner
def _pivot(S, tableau, held, is_held, k, asset):  # type: ignore[no-untyped-def]
    """Add an asset to those held, or remove it; return the number held, or 0 if the asset is a combination of them."""
    work = tableau[WORK]
    d = len(work)
    place = _read_row(S, tableau, held, is_held, work, k, asset)
    if place == k and work[asset] <= DEPENDENT * S[asset, asset]:
        return 0
    sign = -1.0 if is_held[asset] else 1.0
    inverse = 1.0 / work[asset]
    for i in range(RETURNS, FIRST + k):
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
    """Set `work` to the tableau row of an asset, held or not; return its place among those held, or `k` if not held."""
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
def _hold_best_returns(r, S, tableau, held, is_held, work, u):  # type: ignore[no-untyped-def]
    """Hold the portfolio of least variance of the assets with the largest return; return their number, 0 on failure.

    This is an active-set method for `min uᵀSu` over the simplex of the tied assets. A single best asset is held alone.
    On return `u` is zero again.
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
        k = _pivot(S, tableau, held, is_held, k, asset)
        if k == 0:
            break
        k, a = _minimize_variance(S, tableau, held, is_held, work, u, k)
        # Add the tied asset whose covariance with the portfolio is furthest below the portfolio's variance.
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
def _minimize_variance(S, tableau, held, is_held, work, u, k):  # type: ignore[no-untyped-def]
    """Minimise the variance over the held assets, dropping those that reach zero; return their number and `1ᵀM1`."""
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
        k = _pivot(S, tableau, held, is_held, k, blocking)
    return k, a


@inner
def _certify(r, less, S, deviation, held, risks, u, price, budget_price):  # type: ignore[no-untyped-def]
    """Clip negative shares to zero, and return whether the portfolio is feasible and optimal up to `CERTIFIED`.

    If at prices `τ` of the risk and `ν` of the budget no asset has a gain, `r - ν - τ S u <= 0`, then no portfolio has
    a larger return than `ν + τ sqrt(uᵀSu)`. If an asset has a gain, raise either `ν` by the largest gain, or `τ` until
    there is none, whichever gives the smaller bound.
    """
    d = len(r)
    total = value = parts = 0.0
    for i in range(d):
        u[i] = max(u[i], 0.0)
        total += u[i]
        value += (r[i] + less) * u[i]
        parts += deviation[i] * u[i]
        risks[i] = 0.0
    for j in held:
        for i in range(d):
            risks[i] += S[j, i] * u[j]
    variance = gain = 0.0
    steepest = price
    for i in range(d):
        risk = risks[i]
        variance += u[i] * risk
        worth = r[i] + less - budget_price
        excess = worth - price * (risk + RESOLUTION * deviation[i] * parts)
        if excess > 0.0:
            gain = max(gain, excess)
            steepest = max(steepest, worth / risk) if risk > 0.0 else np.inf
    whole = np.sqrt(max(variance, 0.0))
    bound = price * whole + gain
    if steepest < np.inf:
        bound = min(bound, steepest * whole)
    doubt = RESOLUTION * parts * parts
    allowed = 1.0 + CERTIFIED + doubt
    return doubt <= CERTIFIED and total <= allowed and variance <= allowed and budget_price + bound <= allowed * value
