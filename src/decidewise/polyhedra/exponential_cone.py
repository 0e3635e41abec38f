"""The exponential cone `{(x, y, w) : y exp(x / y) <= w, y > 0}` in the primal-dual method of `central_path`.

Its barrier is `f = -log(h) - log(y) - log(w)` with `h = y log(w / y) - x`. The shadow of slacks `s` is `-∇f(s)`, in the
dual cone, and the shadow of duals `z` the point whose shadow is `z`. On the central path `s` and `z` are multiples of
each other's shadows. Scaling and correction are those of Dahl & Andersen ("A primal-dual interior-point algorithm for
nonsymmetric exponential-cone optimization", 2022).
"""

from __future__ import annotations

import numpy as np

from decidewise.runtime.kernels import kernel

inner = kernel(error_model="numpy", inner=True)

_ON_PATH = 1e-8  # slacks and duals that are so near the path are on it
_FRACTION = 0.99  # of a step to y = 0 or w = 0, where there is no logarithm


@inner
def shadow_of_slacks(x, y, w):  # type: ignore[no-untyped-def]
    """Return `-∇f`."""
    log = np.log(w / y)
    height = y * log - x
    return -1 / height, (log - 1) / height + 1 / y, (y / height + 1) / w


@inner
def shadow_of_duals(z0, z1, z2):  # type: ignore[no-untyped-def]
    """Return `(x, y, w)`, where `y = -1 / (z₀ a)` and `a + log(1 + a) = 1 - z₁/z₀ - log(-z₀/z₂)`."""
    side = 1 - z1 / z0 - np.log(-z0 / z2)
    a = side - np.log(side) if side > 2 else side / 2 + side * side / 16
    for _ in range(20):
        change = (a + np.log1p(a) - side) * (1 + a) / (2 + a)
        a -= change
        if not abs(change) > 1e-7 * a:  # what is left is of the order of its square
            break
    y = -1 / (z0 * a)
    w = (1 - z0 * y) / z2
    return y * np.log(w / y) + 1 / z0, y, w


@inner
def hessian(x, y, w):  # type: ignore[no-untyped-def]
    """Return the upper triangle of `∇²f`, row by row."""
    log = np.log(w / y)
    height = y * log - x
    a, b, c = -1 / height, (log - 1) / height, y / (w * height)
    return (
        a * a, a * b, a * c, b * b + (1 / height + 1 / y) / y, b * c - 1 / (w * height),
        c * c + (y / height + 1) / (w * w),
    )  # fmt: skip


@inner
def _divide_by_hessian(x, y, w, d0, d1, d2):  # type: ignore[no-untyped-def]
    """Return `∇²f⁻¹ d`, with `∇²f = aaᵀ + (y / h) bbᵀ + diag(0, 1/y², 1/w²)`, `a = ∇h/h`, `b = (0, 1/y, -1/w)`."""
    log = np.log(w / y)
    height = y * log - x
    v1, v2 = y * y * (d1 + (log - 1) * d0), w * (w * d2 + y * d0)
    across = y * (v1 / y - v2 / w) / (height + 2 * y)
    v1, v2 = v1 - across * y, v2 + across * w
    return height * height * d0 + (log - 1) * v1 + y / w * v2, v1, v2


@inner
def scaling(s, z, shadows, i):  # type: ignore[no-untyped-def]
    """Return the upper triangle of `M`, row by row, for the cone at rows `i` to `i + 2`.

    With `s'` the shadow of the duals and `z'` that of the slacks, `M s = z` and `M s' = z'`; orthogonally to `s` and
    `s'` it is `μ ∇²f(s)`. On the path these are not two conditions, and `M` is `μ ∇²f(s)`.
    """
    s0, s1, s2, z0, z1, z2 = s[i], s[i + 1], s[i + 2], z[i], z[i + 1], z[i + 2]
    r0, r1, r2 = shadows[0, i], shadows[0, i + 1], shadows[0, i + 2]
    mu = (s0 * z0 + s1 * z1 + s2 * z2) / 3
    d0, d1, d2 = z0 - mu * shadows[1, i], z1 - mu * shadows[1, i + 1], z2 - mu * shadows[1, i + 2]
    product = (s0 - mu * r0) * d0 + (s1 - mu * r1) * d1 + (s2 - mu * r2) * d2
    if not product > _ON_PATH * mu:
        h00, h01, h02, h11, h12, h22 = hessian(s0, s1, s2)
        return mu * h00, mu * h01, mu * h02, mu * h11, mu * h12, mu * h22
    v0, v1, v2 = s1 * r2 - s2 * r1, s2 * r0 - s0 * r2, s0 * r1 - s1 * r0
    x0, x1, x2 = _divide_by_hessian(s0, s1, s2, v0, v1, v2)
    a, b, c = 1 / (3 * mu), 1 / product, mu / (v0 * x0 + v1 * x1 + v2 * x2)
    return (
        a * z0 * z0 + b * d0 * d0 + c * v0 * v0, a * z0 * z1 + b * d0 * d1 + c * v0 * v1,
        a * z0 * z2 + b * d0 * d2 + c * v0 * v2, a * z1 * z1 + b * d1 * d1 + c * v1 * v1,
        a * z1 * z2 + b * d1 * d2 + c * v1 * v2, a * z2 * z2 + b * d2 * d2 + c * v2 * v2,
    )  # fmt: skip


@inner
def correction(x, y, w, u0, u1, u2, d0, d1, d2):  # type: ignore[no-untyped-def]
    """Return `½ ∇³f[u, ∇²f⁻¹ d]`, from the derivatives of `h` in the directions `u` and `v = ∇²f⁻¹ d`."""
    v0, v1, v2 = _divide_by_hessian(x, y, w, d0, d1, d2)
    log, ratio = np.log(w / y), y / w
    h = y * log - x
    slope = log - 1
    u_height, v_height = slope * u1 + ratio * u2 - u0, slope * v1 + ratio * v2 - v0
    u_first, u_second = u2 / w - u1 / y, (u1 - ratio * u2) / w  # ∇²h u
    v_first, v_second = v2 / w - v1 / y, (v1 - ratio * v2) / w
    common = (u1 * v_first + u2 * v_second - 2 * u_height * v_height / h) / (h * h)
    first = (u_first * v_height + v_first * u_height) / h - u1 * v1 / (y * y) + u2 * v2 / (w * w)
    second = (u_second * v_height + v_second * u_height) / h - (2 * ratio * u2 * v2 - u1 * v2 - u2 * v1) / (w * w)
    return (
        -common / 2,
        (common * slope + first / h) / 2 - u1 * v1 / (y * y * y),
        (common * ratio + second / h) / 2 - u2 * v2 / (w * w * w),
    )


@inner
def longest_step(x, y, w, dx, dy, dw, length):  # type: ignore[no-untyped-def]
    """Return the longest step, at most `length`, to a thousandth: Newton's method for `h = 0`, from beyond."""
    if dy < 0:
        length = min(length, -_FRACTION * y / dy)
    if dw < 0:
        length = min(length, -_FRACTION * w / dw)
    for _ in range(20):
        y_there, w_there = y + length * dy, w + length * dw
        log = np.log(w_there / y_there)
        height = y_there * log - x - length * dx
        if height > 0:
            break
        change = height / ((log - 1) * dy + y_there / w_there * dw - dx)
        length -= change
        if change <= 1e-3 * length:
            break
    return length
