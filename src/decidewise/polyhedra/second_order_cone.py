"""The second-order cone `{(s₀, s̄) : ‖s̄‖ <= s₀}` in the primal-dual method of `central_path`.

Its barrier is `f = -½ log(s₀² - ‖s̄‖²)`. The scaling is that of Nesterov & Todd ("Self-scaled barriers and
interior-point methods for convex programming", 1997): a symmetric matrix `W` with `W z = W⁻¹ s`, and `M = W⁻²`. With
`J = diag(1, -1, ..., -1)` and a point `w` of the cone that has `wᵀJw = 1`, which is called the frame, `W²` is a size
times `2 w wᵀ - J`, and `M` the inverse size times `2 Jw wᵀJ - J`. A cone has the rows `first` to `end - 1`.
"""

from __future__ import annotations

import numpy as np

from decidewise.runtime.kernels import kernel

inner = kernel(error_model="numpy", inner=True)


@inner
def square(s, first, end):  # type: ignore[no-untyped-def]
    """Return `s₀² - ‖s̄‖²`."""
    return square_after(s, s, 0.0, first, end)


@inner
def square_after(s, ds, length, first, end):  # type: ignore[no-untyped-def]
    """Return the square after a step."""
    total = 0.0
    for i in range(first + 1, end):
        total += (s[i] + length * ds[i]) ** 2
    front, norm = s[first] + length * ds[first], np.sqrt(total)
    return (front - norm) * (front + norm)


@inner
def set_scaled(s, z, A, first, end, MA, frame, along):  # type: ignore[no-untyped-def]
    """Set these rows of `MA` to `M A`, and of `frame` to the frame."""
    n = A.shape[1]
    s_size, z_size = np.sqrt(square(s, first, end)), np.sqrt(square(z, first, end))
    product = 0.0
    for i in range(first, end):
        product += s[i] * z[i]
    twice = np.sqrt(2 + 2 * product / (s_size * z_size))
    factor = z_size / s_size
    for j in range(n):
        along[j] = 0.0
    for i in range(first, end):
        sign = 1.0 if i == first else -1.0
        frame[i] = (s[i] / s_size + sign * z[i] / z_size) / twice
        for j in range(n):
            along[j] += sign * frame[i] * A[i, j]
    for i in range(first, end):
        sign = factor if i == first else -factor
        for j in range(n):
            MA[i, j] = sign * (2 * frame[i] * along[j] - A[i, j])


@inner
def correct(s, z, ds, dz, first, end, frame, target, weight, g, work):  # type: ignore[no-untyped-def]
    """Set `g` to `-z - target ∇f(s) - weight W⁻¹ x`, where `(W z) ∘ x = (W⁻¹ ds) ∘ (W dz)`.

    The product `p ∘ d` is `(p·d, p₀ d̄ + d₀ p̄)`.
    """
    p, d, scaled = work[0], work[1], work[2]
    s_square = square(s, first, end)
    size = np.sqrt(np.sqrt(s_square / square(z, first, end)))
    _apply(frame, 1 / size, -1.0, ds, first, end, p)
    _apply(frame, size, 1.0, dz, first, end, d)
    _apply(frame, size, 1.0, z, first, end, scaled)
    product, along = p[first] * d[first], 0.0
    for i in range(first + 1, end):
        product += p[i] * d[i]
        p[i] = p[first] * d[i] + d[first] * p[i]
        along += scaled[i] * p[i]
    d[first] = (scaled[first] * product - along) / square(scaled, first, end)
    for i in range(first + 1, end):
        d[i] = (p[i] - d[first] * scaled[i]) / scaled[first]
    _apply(frame, 1 / size, -1.0, d, first, end, p)
    for i in range(first, end):
        sign = target if i == first else -target
        g[i] = sign * s[i] / s_square - z[i] - weight * p[i]


@inner
def _apply(frame, size, sign, v, first, end, out):  # type: ignore[no-untyped-def]
    """Set `out` to `W v`, or to `W⁻¹ v` if the sign is negative and the size that of `W⁻¹`."""
    along = 0.0
    for i in range(first + 1, end):
        along += frame[i] * v[i]
    out[first] = size * (frame[first] * v[first] + sign * along)
    along = sign * v[first] + along / (1 + frame[first])
    for i in range(first + 1, end):
        out[i] = size * (v[i] + along * frame[i])


@inner
def longest_step(s, ds, first, end):  # type: ignore[no-untyped-def]
    """Return the longest step that stays in the cone: the least positive root of `square(s + t ds)`."""
    a, b = ds[first] * ds[first], ds[first] * s[first]
    for i in range(first + 1, end):
        a -= ds[i] * ds[i]
        b -= ds[i] * s[i]
    c = square(s, first, end)
    discriminant = b * b - a * c
    length = -s[first] / ds[first] if ds[first] < 0 else np.inf
    if discriminant >= 0:
        root = -b - np.sqrt(discriminant) if b > 0 else np.sqrt(discriminant) - b
        if root / a > 0:
            length = min(length, root / a)
        if c / root > 0:
            length = min(length, c / root)
    return length
