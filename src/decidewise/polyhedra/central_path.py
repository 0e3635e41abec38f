"""Optimal points of a conic program with few variables for many rows of costs, by steps along the central path.

The program is `min q·u` over `s = b - A u in K`, its dual `max -b·z` over `q + Aᵀz = 0`, `z in K*`. `K` is a product of
linear, second-order, exponential and semidefinite cones, with the barrier `f`. Every row starts in the analytic centre
of the region, where `f(s)` is least and `Aᵀ∇f(s) = 0`. From there on the slacks are exact, and the primal-dual method
has to lower the gap `s·z` and the residual `r = q + Aᵀz` alone. A step solves, with a matrix `M` of the cones for which
`M s = z`,

    Aᵀdz = -(1 - σ) r,    ds = -A du,    M ds + dz = -z - σμ∇f(s) + correction,

first with `σ = 0`, which tells how large `σ` should be and what to correct (Mehrotra, "On the implementation of a
primal-dual interior point method", 1992), and then as it is.
"""

from __future__ import annotations

import numpy as np

from decidewise.polyhedra import exponential_cone, second_order_cone, semidefinite_cone
from decidewise.runtime.kernels import kernel

compiled, inner = kernel(error_model="numpy"), kernel(error_model="numpy", inner=True)
# Functions with a single caller are inlined: a separate function is optimised by itself and again in its caller.
inlined = kernel(error_model="numpy", inline="always")
longest_in_second_order, set_second_order = second_order_cone.longest_step, second_order_cone.set_scaled
correct_second_order, square_after = second_order_cone.correct, second_order_cone.square_after
longest_in_exponential, exponential_scaling = exponential_cone.longest_step, exponential_cone.scaling
exponential_correction = exponential_cone.correction
longest_in_semidefinite, set_semidefinite = semidefinite_cone.longest_step, semidefinite_cone.set_scaled
correct_semidefinite, LAST_SHARED = semidefinite_cone.correct, semidefinite_cone.LAST_SHARED
shadow_of_slacks, shadow_of_duals = exponential_cone.shadow_of_slacks, exponential_cone.shadow_of_duals

#: The kinds of cones.
LINEAR, SECOND_ORDER, EXPONENTIAL, SEMIDEFINITE = 0, 1, 2, 3

_MOST_STEPS = 60
_STEP_FRACTION = 0.99  # of the longest step, which ends at the boundary
_SHORT = 0.3  # a step that is shorter is followed by one towards the path
_SHORTEST = 1e-4  # a step that is shorter is rounding
_SHORTER = 0.8  # a step that leads too far from the path is shortened by this
# From the path: a cone whose shadows have a product so many times as large as on it.
_FAR_SECOND_ORDER, _FAR_EXPONENTIAL = 4.0, 100.0
_ROUNDING = 1e-6  # systems are refined where the error is smaller


@compiled
def follow(  # type: ignore[no-untyped-def]
    costs, values, sizes, A, kinds, starts, centre, slack, shadow, degree, aim, accepted, points, slacks, duals, solved,
    frames, shadows, matrices,
):  # fmt: skip
    """Solve rows (r, n), until error and residual are below `aim`, or `accepted` where it gets no further: `solved`.

    `values` are those of `u = 0`, and `sizes` the first `μ`. `slack` and `shadow` are `s` and `-∇f(s)` of the centre.
    `shadows` is the work space of exponential cones, `matrices` that of semidefinite ones; `None` if there are no such
    cones, whose part is then not compiled.
    """
    m, n = A.shape
    K, MA = np.empty((n, n)), np.empty((m, n))
    r, du, change = np.empty(n), np.empty(n), np.empty(n)
    ds, dz, g = np.empty(m), np.empty(m), np.empty(m)
    for row in range(len(costs)):
        q, u, s, z = costs[row], points[row], slacks[row], duals[row]
        for j in range(n):
            u[j] = centre[j]
        for i in range(m):
            s[i], z[i] = slack[i], sizes[row] * shadow[i]
        if shadows is not None:
            for i in range(m):
                shadows[0, i], shadows[1, i] = slack[i] / sizes[row], shadow[i]
        length = 1.0
        for _ in range(_MOST_STEPS):
            gap, value, residual = 0.0, values[row], 0.0
            for j in range(n):
                r[j] = q[j]
                value += q[j] * u[j]
            for i in range(m):
                gap += s[i] * z[i]
                for j in range(n):
                    r[j] += A[i, j] * z[i]
            for j in range(n):
                residual = max(residual, abs(r[j]))
            # Of a region that is small, values are relative to how much they differ.
            error = max(gap / max(min(1.0, sizes[row]), abs(value)), residual) if gap > 0 else residual
            solved[row] = error <= accepted
            if error <= aim:
                break
            rounds = 1 if error > _ROUNDING else 2
            if not _scale(s, z, A, kinds, starts, MA, change, frames, shadows, matrices):
                break
            _set_product(A, MA, K)
            if not _factorise(K):
                break
            for i in range(m):
                g[i] = -z[i]
            _move(A, MA, K, r, 1.0, g, rounds, du, ds, dz, change)
            share = (
                1 - (1 - _longest_step(s, z, ds, dz, kinds, starts, frames, shadows, matrices)) ** 3
                if length > _SHORT
                else 0.0
            )
            target, weight = (1 - share) * gap / degree, share * share
            _correct(s, z, ds, dz, kinds, starts, target, weight, g, frames, shadows, matrices)
            _move(A, MA, K, r, share, g, rounds, du, ds, dz, change)
            length = _STEP_FRACTION * _longest_step(s, z, ds, dz, kinds, starts, frames, shadows, matrices)
            length = _stay_near(s, z, ds, dz, kinds, starts, degree, length, frames, shadows)
            if not length > _SHORTEST:
                break
            for j in range(n):
                u[j] += length * du[j]
            for i in range(m):
                s[i] += length * ds[i]
                z[i] += length * dz[i]


@compiled
def times(rows, matrix):  # type: ignore[no-untyped-def]
    """Return `rows @ matrix`, in which a row does not depend on how many there are, to the last bit."""
    products = np.zeros((len(rows), matrix.shape[1]))
    for row in range(len(rows)):
        for j in range(matrix.shape[0]):
            for k in range(matrix.shape[1]):
                products[row, k] += rows[row, j] * matrix[j, k]
    return products


@inlined
def _scale(s, z, A, kinds, starts, MA, along, frames, shadows, matrices):  # type: ignore[no-untyped-def]
    """Set `MA` to `M A`; return whether there is an `M`, as rounding leaves one."""
    n, inverse = A.shape[1], LAST_SHARED
    for c in range(len(kinds)):
        first, end = starts[c], starts[c + 1]
        if kinds[c] == LINEAR:
            for i in range(first, end):
                factor = z[i] / s[i]
                for j in range(n):
                    MA[i, j] = factor * A[i, j]
        elif kinds[c] == SECOND_ORDER:
            if frames is not None:
                set_second_order(s, z, A, first, end, MA, frames[0], along)
        elif kinds[c] == SEMIDEFINITE:
            if matrices is not None:
                inverse += 1
                if not set_semidefinite(s, z, A, first, end, MA, matrices, matrices[inverse]):
                    return False
        elif shadows is not None:
            m00, m01, m02, m11, m12, m22 = exponential_scaling(s, z, shadows, first)
            for j in range(n):
                a0, a1, a2 = A[first, j], A[first + 1, j], A[first + 2, j]
                MA[first, j] = m00 * a0 + m01 * a1 + m02 * a2
                MA[first + 1, j] = m01 * a0 + m11 * a1 + m12 * a2
                MA[first + 2, j] = m02 * a0 + m12 * a1 + m22 * a2
    return True


@inner
def _move(A, MA, K, r, share, g, rounds, du, ds, dz, change):  # type: ignore[no-untyped-def]
    """Solve `Aᵀdz = -share r`, `ds = -A du`, `M ds + dz = g`, of which further rounds make the first one exact."""
    m, n = A.shape
    for j in range(n):
        du[j] = 0.0
    for i in range(m):
        ds[i], dz[i] = 0.0, g[i]
    for _ in range(rounds):
        for j in range(n):
            change[j] = -share * r[j]
        for i in range(m):
            for j in range(n):
                change[j] -= A[i, j] * dz[i]
        _substitute(K, change)
        for j in range(n):
            du[j] += change[j]
        for i in range(m):
            down, up = 0.0, 0.0
            for j in range(n):
                down += A[i, j] * change[j]
                up += MA[i, j] * change[j]
            ds[i] -= down
            dz[i] += up


@inlined
def _correct(s, z, ds, dz, kinds, starts, target, weight, g, frames, shadows, matrices):  # type: ignore[no-untyped-def]
    """Set `g` to `-z - target ∇f(s)` and the weighted correction for what the step `ds`, `dz` is to second order."""
    inverse = LAST_SHARED
    for c in range(len(kinds)):
        first, end = starts[c], starts[c + 1]
        if kinds[c] == LINEAR:
            for i in range(first, end):
                g[i] = (target - weight * ds[i] * dz[i]) / s[i] - z[i]
        elif kinds[c] == SECOND_ORDER:
            if frames is not None:
                correct_second_order(s, z, ds, dz, first, end, frames[0], target, weight, g, frames[1:])
        elif kinds[c] == SEMIDEFINITE:
            if matrices is not None:
                inverse += 1
                correct_semidefinite(z, ds, dz, first, end, target, weight, g, matrices, matrices[inverse])
        elif shadows is not None:
            second = exponential_correction(
                s[first], s[first + 1], s[first + 2], ds[first], ds[first + 1], ds[first + 2], dz[first], dz[first + 1],
                dz[first + 2],
            )  # fmt: skip
            for i in range(3):
                g[first + i] = target * shadows[1, first + i] - z[first + i] + weight * second[i]


@inner
def _longest_step(s, z, ds, dz, kinds, starts, frames, shadows, matrices):  # type: ignore[no-untyped-def]
    """Return the longest step, at most 1, that stays in all cones."""
    length = 1.0
    for c in range(len(kinds)):
        first, end = starts[c], starts[c + 1]
        if kinds[c] == LINEAR:
            for i in range(first, end):
                if ds[i] < 0:
                    length = min(length, -s[i] / ds[i])
                if dz[i] < 0:
                    length = min(length, -z[i] / dz[i])
        elif kinds[c] == SECOND_ORDER and frames is not None:
            length = min(length, longest_in_second_order(s, ds, first, end), longest_in_second_order(z, dz, first, end))
    if shadows is None and matrices is None:
        return length
    for c in range(len(kinds)):
        if kinds[c] == EXPONENTIAL and shadows is not None:
            i = starts[c]
            length = longest_in_exponential(s[i], s[i + 1], s[i + 2], ds[i], ds[i + 1], ds[i + 2], length)
            # The dual cone is the cone itself in other coordinates.
            length = longest_in_exponential(
                z[i] - z[i + 1], -z[i], z[i + 2], dz[i] - dz[i + 1], -dz[i], dz[i + 2], length
            )
        elif kinds[c] == SEMIDEFINITE and matrices is not None:
            length = longest_in_semidefinite(s, ds, starts[c], starts[c + 1], length, matrices)
            length = longest_in_semidefinite(z, dz, starts[c], starts[c + 1], length, matrices)
    return length


@inlined
def _stay_near(s, z, ds, dz, kinds, starts, degree, length, frames, shadows):  # type: ignore[no-untyped-def]
    """Return a step that leaves no curved cone far from the path, where later steps would be short.

    It sets the `shadows` of exponential cones to those after the step: of duals, and of slacks.
    """
    c, mu = 0, -1.0
    while c < len(kinds) and length > _SHORTEST:
        i, end = starts[c], starts[c + 1]
        near = kinds[c] in (LINEAR, SEMIDEFINITE)
        if mu < 0 and not near:
            mu = 0.0
            for k in range(len(s)):
                mu += (s[k] + length * ds[k]) * (z[k] + length * dz[k]) / degree
        if kinds[c] == SECOND_ORDER and frames is not None:
            product = 0.0
            for k in range(i, end):
                product += (s[k] + length * ds[k]) * (z[k] + length * dz[k])
            product /= square_after(s, ds, length, i, end) * square_after(z, dz, length, i, end)
            near = mu * product <= _FAR_SECOND_ORDER
        elif kinds[c] == EXPONENTIAL and shadows is not None:
            r = shadow_of_duals(z[i] + length * dz[i], z[i + 1] + length * dz[i + 1], z[i + 2] + length * dz[i + 2])
            t = shadow_of_slacks(s[i] + length * ds[i], s[i + 1] + length * ds[i + 1], s[i + 2] + length * ds[i + 2])
            product = 0.0
            for k in range(3):
                shadows[0, i + k], shadows[1, i + k] = r[k], t[k]
                product += r[k] * t[k] / 3
            near = mu * product <= _FAR_EXPONENTIAL
        c += 1
        if not near:
            c, mu, length = 0, -1.0, _SHORTER * length
    return length


@inlined
def _set_product(A, MA, K):  # type: ignore[no-untyped-def]
    """Set the lower triangle of `K` to `Aᵀ M A`."""
    m, n = A.shape
    for j in range(n):
        for k in range(j + 1):
            K[j, k] = 0.0
    for i in range(m):
        for j in range(n):
            entry = A[i, j]
            if entry != 0:
                for k in range(j + 1):
                    K[j, k] += entry * MA[i, k]


@inlined
def _factorise(K):  # type: ignore[no-untyped-def]
    """Replace the lower triangle by its Cholesky factor, its diagonal inverted; return whether it has one."""
    for j in range(len(K)):
        for k in range(j + 1):
            total = K[j, k]
            for i in range(k):
                total -= K[j, i] * K[k, i]
            if k < j:
                K[j, k] = total * K[k, k]
            elif total > 0:
                K[j, j] = 1 / np.sqrt(total)
            else:
                return False
    return True


@inlined
def _substitute(L, x):  # type: ignore[no-untyped-def]
    """Replace `x` by the solution `y` of `L Lᵀ y = x`, where `L` is what `_factorise` leaves."""
    n = len(x)
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total * L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] = total = x[i] * L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * total
