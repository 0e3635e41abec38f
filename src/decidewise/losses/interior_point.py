"""A few steps of an interior-point method towards the projection on a cone.

The projection of `y` on `{Nᵀλ : λ >= 0}` is `min ‖Nᵀλ - y‖² over λ >= 0`. The method is the primal-dual one on the
homogeneous embedding with Mehrotra's correction (Goulart & Chen, "Clarabel: an interior-point solver for conic programs
with quadratic objectives", 2024), step for step: from the same start it gives Clarabel's iterates, so that three steps
mean here what they mean there. Only the linear algebra differs: one factorisation of a `d × d` matrix a step, inside
the envelope of its entries, whatever the number of normals.
"""

from __future__ import annotations

import numpy as np

from decidewise.checks import FloatArray
from decidewise.kernels import kernel

_STEP_FRACTION = 0.99  # of the way to the boundary
_PIVOT = 1e-14  # relative size below which a pivot is rounding
_LARGEST, _CLOSED = 1e10, 1e-10  # scaling above which, relative gap below which, a step loses more than it gains


@kernel
def interior_projection(
    points: FloatArray, binding: np.ndarray, normals: tuple[np.ndarray, np.ndarray, FloatArray], max_iter: int
) -> FloatArray:
    """Return the truncated projections (b, d) of `points` (b, d).

    Parameters
    ----------
    points : ndarray of shape (b, d)
    binding : int8 ndarray of shape (b, m)
        How each of the `m` normals takes part: 0 not at all, 1 as it stands, -1 reversed, 2 in both directions.
    normals : (indptr, indices, data)
        The `m` normals as the rows of a sparse matrix.
    max_iter : int
        The most steps to take. They end by themselves when their arithmetic has no more to give, after five to ten.
    """
    projections = np.zeros_like(points)
    for row in range(len(points)):
        taken = _take(binding[row], normals)
        if len(taken[0]) > 1:
            projections[row] = _approach(points[row], taken, max_iter)
    return projections


@kernel
def _take(binding, normals):  # type: ignore[no-untyped-def]
    """Return the normals that take part, with their signs, as a sparse matrix of their own."""
    indptr, indices, data = normals
    copies = np.abs(binding)
    entries = np.sum(copies * np.diff(indptr))
    pointers = np.zeros(np.sum(copies) + 1, dtype=np.int64)
    columns, values = np.empty(entries, dtype=np.int64), np.empty(entries)
    row, entry = 0, 0
    for i in range(len(binding)):
        for copy in range(copies[i]):
            sign = -1.0 if binding[i] < 0 or copy == 1 else 1.0
            for k in range(indptr[i], indptr[i + 1]):
                columns[entry] = indices[k]
                values[entry] = sign * data[k]
                entry += 1
            row += 1
            pointers[row] = entry
    return pointers, columns, values


@kernel
def _times(normals, vector):  # type: ignore[no-untyped-def]
    """Return `N v`."""
    indptr, indices, data = normals
    out = np.empty(len(indptr) - 1)
    for i in range(len(out)):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * vector[indices[k]]
        out[i] = total
    return out


@kernel
def _combine(normals, weights, d):  # type: ignore[no-untyped-def]
    """Return `Nᵀ λ`."""
    indptr, indices, data = normals
    out = np.zeros(d)
    for i in range(len(weights)):
        for k in range(indptr[i], indptr[i + 1]):
            out[indices[k]] += weights[i] * data[k]
    return out


@kernel
def _factor(normals, scaling, d):  # type: ignore[no-untyped-def]
    """Return the Cholesky factor of `I + 2 Nᵀ diag(scaling) N` and the first nonzero column of each of its rows."""
    indptr, indices, data = normals
    factor = np.zeros((d, d))
    first = np.arange(d)
    for i in range(len(scaling)):
        for k in range(indptr[i], indptr[i + 1]):
            for other in range(indptr[i], indptr[i + 1]):
                if indices[other] <= indices[k]:
                    factor[indices[k], indices[other]] += 2 * scaling[i] * data[k] * data[other]
                    first[indices[k]] = min(first[indices[k]], indices[other])
    for i in range(d):
        factor[i, i] += 1.0
        smallest = _PIVOT * factor[i, i]
        for j in range(first[i], i + 1):
            total = factor[i, j]
            for k in range(max(first[i], first[j]), j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = np.sqrt(max(total, smallest)) if i == j else total / factor[j, j]
    return factor, first


@kernel
def _solve(normals, scaling, factored, side):  # type: ignore[no-untyped-def]
    """Solve `(diag(1/scaling) + 2 N Nᵀ) λ = side` and return `λ` and `Nᵀ λ`."""
    factor, first = factored
    d = len(first)
    combined = _combine(normals, scaling * side, d)
    for i in range(d):
        for k in range(first[i], i):
            combined[i] -= factor[i, k] * combined[k]
        combined[i] /= factor[i, i]
    for i in range(d - 1, -1, -1):
        combined[i] /= factor[i, i]
        for k in range(first[i], i):
            combined[k] -= factor[i, k] * combined[i]
    return scaling * (side - 2 * _times(normals, combined)), combined


@kernel
def _into_orthant(values):  # type: ignore[no-untyped-def]
    """Shift a start so that its smallest entry keeps a distance from zero."""
    margin = max(1.0, 0.1 * np.maximum(values, 0.0).sum() / len(values))
    return values + max(0.0, margin - values.min())


@kernel
def _longest_step(value, change):  # type: ignore[no-untyped-def]
    longest = 1.0
    for i in range(len(value)):
        if change[i] < 0:
            longest = min(longest, -value[i] / change[i])
    return longest


@kernel
def _approach(point, normals, max_iter):  # type: ignore[no-untyped-def]
    # Minimise ‖Nᵀx - y‖² under s = x and s >= 0, with z the multipliers; τ and κ belong to the embedding. Everything
    # about x that the steps need is x itself and its image u = Nᵀx.
    m, d = len(normals[0]) - 1, len(point)
    pull = 2 * _times(normals, point)
    ones = np.ones(m)
    x, u = _solve(normals, ones, _factor(normals, ones, d), pull)
    s, z = _into_orthant(x), _into_orthant(-x)
    tau, kappa = 1.0, 1.0
    for iteration in range(max_iter):
        scaling = s / z
        if scaling.max() > _LARGEST or s @ z < _CLOSED * tau**2 * max(1.0, point @ point):
            break
        centring = (s @ z + tau * kappa) / (m + 1)
        dual_gap = z - 2 * _times(normals, u) + tau * pull
        primal_gap = s - x
        value_gap = kappa + 2 * (u @ u / tau - point @ u)
        factored = _factor(normals, scaling, d)
        x_tau, u_tau = _solve(normals, scaling, factored, pull)
        mean = u / tau
        slope = kappa / tau + 2 * (point @ u_tau + (mean - u_tau) @ (mean - u_tau) - u_tau @ u_tau)

        correction_s, correction_tau = s * z, tau * kappa
        share = 1.0  # of the gaps to close: all of them in the predictor, what is left of them in the corrector
        for corrector in range(2):
            offset = correction_s / z
            x_step, u_step = _solve(
                normals, scaling, factored, share * dual_gap - (offset - share * primal_gap) / scaling
            )
            tau_step = (share * value_gap - correction_tau / tau + 2 * (2 * mean @ u_step - point @ u_step)) / slope
            x_step += tau_step * x_tau
            u_step += tau_step * u_tau
            s_step = x_step - share * primal_gap
            z_step = -(s_step + offset) / scaling
            kappa_step = -(correction_tau + kappa * tau_step) / tau
            length = min(_longest_step(s, s_step), _longest_step(z, z_step))
            if tau_step < 0:
                length = min(length, -tau / tau_step)
            if kappa_step < 0:
                length = min(length, -kappa / kappa_step)
            if corrector == 0:
                share = 1 - (1 - length) ** 3
                weight = length if iteration == 0 else 1.0  # a badly centred start gets a smaller correction
                correction_s = s * z + weight * s_step * z_step - (1 - share) * centring
                correction_tau = tau * kappa + weight * tau_step * kappa_step - (1 - share) * centring
        length *= _STEP_FRACTION
        x += length * x_step
        u += length * u_step
        s += length * s_step
        z += length * z_step
        tau += length * tau_step
        kappa += length * kappa_step
    return u / tau
