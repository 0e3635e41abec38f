"""A few steps of an interior-point method towards the projection on a cone.

The projection of `y` on `{Nᵀλ : λ >= 0}` solves `min ‖Nᵀλ - y‖² over λ >= 0`. The method is the primal-dual one on the
homogeneous embedding with Mehrotra's correction (Goulart & Chen, "Clarabel: an interior-point solver for conic programs
with quadratic objectives", 2024). From the same start it has the same iterates as Clarabel, so a number of steps means
the same in both. Only the linear algebra differs: each step factorises one `d × d` matrix within its envelope, whatever
the number of normals.
"""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.kernels import kernel

# Functions with one caller are inlined; otherwise the compiler would optimise them again inside each caller.
compiled, inner = kernel(error_model="numpy"), kernel(error_model="numpy", inner=True)
inlined = kernel(error_model="numpy", inline="always")

_STEP_FRACTION = 0.99  # of the longest step, which ends at the boundary
_PIVOT = 1e-14  # pivots below this, relative to the diagonal, are rounding and are raised to it
_MAX_SCALING, _MIN_GAP = 1e10, 1e-10  # stop at larger scalings or smaller relative gaps, where rounding dominates


def interior_projection(
    points: FloatArray, binding: np.ndarray, normals: tuple[np.ndarray, np.ndarray, FloatArray], max_iter: int
) -> FloatArray:
    """Return the truncated projections (b, d) of `points` (b, d).

    Parameters
    ----------
    points : ndarray of shape (b, d)
    binding : int8 ndarray of shape (b, m)
        How each of the `m` normals takes part: 0 not at all, 1 with its sign, -1 reversed, 2 with both signs.
    normals : (indptr, indices, data)
        The `m` normals as the rows of a sparse matrix.
    max_iter : int
        The largest number of steps. The method stops earlier, after five to ten, once rounding dominates.
    """
    projections = np.zeros_like(points)
    d, m, entries = points.shape[1], 2 * binding.shape[1], 2 * len(normals[2])
    selected = np.empty(m + 1, np.int64), np.empty(entries, np.int64), np.empty(entries)
    normal_buffers, cost_buffers = tuple(np.empty((12, m))), tuple(np.empty((5, d)))
    factor = np.empty((d, d)), np.empty(d, np.int64)
    _approach_rows(points, binding, normals, max_iter, selected, normal_buffers, cost_buffers, factor, projections)
    return projections


@compiled
def _approach_rows(  # type: ignore[no-untyped-def]
    points, binding, normals, max_iter, selected, normal_buffers, cost_buffers, factor, projections
):
    for row in range(len(points)):
        m = _select_normals(binding[row], normals, selected)
        if m > 0:
            _approach(points[row], selected, m, max_iter, normal_buffers, cost_buffers, factor, projections[row])


@inlined
def _approach(point, normals, m, max_iter, normal_buffers, cost_buffers, factor, projection):  # type: ignore[no-untyped-def]
    """Set the truncated projection of one point.

    Start: solve without bounds, shift to positive.
    Stop: small gap, or large scaling.
    Factorise: one matrix for both solves.
    Predict, then correct and centre.
    Step: 99 % of the way out.
    """
    # Minimise ‖Nᵀx - y‖² subject to s = x and s >= 0, with multipliers z; τ and κ belong to the embedding. The steps
    # need only x and its image u = Nᵀx.
    pull, x, s, z, scaling, dual_gap, correction, x_tau, x_step, s_step, z_step, side = normal_buffers
    u, u_tau, u_step, mean, apart = cost_buffers
    d = len(point)
    _multiply(normals, m, point, pull)
    for i in range(m):
        pull[i] *= 2
        scaling[i] = 1.0
    _factorise(normals, m, scaling, factor)
    _solve(normals, m, scaling, factor, pull, x, u)
    _shift_to_positive(x, 1.0, m, s)
    _shift_to_positive(x, -1.0, m, z)
    tau, kappa = 1.0, 1.0
    for iteration in range(max_iter):
        gap = _dot(s, z, m)
        small = _MIN_GAP * tau * tau * max(1.0, _dot(point, point, d))
        if _set_scaling(s, z, m, scaling) > _MAX_SCALING or gap < small:
            break
        centring = (gap + tau * kappa) / (m + 1)
        _multiply(normals, m, u, dual_gap)
        for i in range(m):
            dual_gap[i] = z[i] - 2 * dual_gap[i] + tau * pull[i]
            correction[i] = s[i] * z[i]
        value_gap = kappa + 2 * (_dot(u, u, d) / tau - _dot(point, u, d))
        _factorise(normals, m, scaling, factor)
        _solve(normals, m, scaling, factor, pull, x_tau, u_tau)
        for k in range(d):
            mean[k] = u[k] / tau
            apart[k] = mean[k] - u_tau[k]
        slope = kappa / tau + 2 * (_dot(point, u_tau, d) + _dot(apart, apart, d) - _dot(u_tau, u_tau, d))

        correction_tau = tau * kappa
        share = 1.0  # of the gaps to close in this step: 1 in the predictor, less in the corrector
        for corrector in range(2):
            for i in range(m):
                side[i] = share * dual_gap[i] - (correction[i] / z[i] - share * (s[i] - x[i])) / scaling[i]
            _solve(normals, m, scaling, factor, side, x_step, u_step)
            ahead = 2 * (2 * _dot(mean, u_step, d) - _dot(point, u_step, d))
            tau_step = (share * value_gap - correction_tau / tau + ahead) / slope
            kappa_step = -(correction_tau + kappa * tau_step) / tau
            _add(tau_step, u_tau, d, u_step)
            for i in range(m):
                x_step[i] += tau_step * x_tau[i]
                s_step[i] = x_step[i] - share * (s[i] - x[i])
                z_step[i] = -(s_step[i] + correction[i] / z[i]) / scaling[i]
            length = _longest_step(z, z_step, m, _longest_step(s, s_step, m, 1.0))
            length = min(length, _step_to_zero(tau, tau_step), _step_to_zero(kappa, kappa_step))
            if corrector == 0:
                share = 1 - (1 - length) ** 3
                # A smaller correction in the first step, because the start is badly centred.
                weight = length if iteration == 0 else 1.0
                for i in range(m):
                    correction[i] = s[i] * z[i] + weight * s_step[i] * z_step[i] - (1 - share) * centring
                correction_tau = tau * kappa + weight * tau_step * kappa_step - (1 - share) * centring
        length *= _STEP_FRACTION
        _add(length, x_step, m, x)
        _add(length, u_step, d, u)
        _add(length, s_step, m, s)
        _add(length, z_step, m, z)
        tau += length * tau_step
        kappa += length * kappa_step
    for k in range(d):
        projection[k] = u[k] / tau


@inlined
def _select_normals(binding, normals, selected):  # type: ignore[no-untyped-def]
    """Copy the normals that take part, with their signs, to a sparse matrix; return their number."""
    indptr, indices, data = normals
    pointers, columns, values = selected
    row, entry = 0, 0
    pointers[0] = 0
    for i in range(len(binding)):
        for copy in range(abs(binding[i])):
            sign = -1.0 if binding[i] < 0 or copy == 1 else 1.0
            for k in range(indptr[i], indptr[i + 1]):
                columns[entry] = indices[k]
                values[entry] = sign * data[k]
                entry += 1
            row += 1
            pointers[row] = entry
    return row


@inner
def _multiply(normals, m, vector, out):  # type: ignore[no-untyped-def]
    """Set `out` to `N v`."""
    indptr, indices, data = normals
    for i in range(m):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * vector[indices[k]]
        out[i] = total


@inner
def _factorise(normals, m, scaling, factored):  # type: ignore[no-untyped-def]
    """Compute the Cholesky factor of `I + 2 Nᵀ diag(scaling) N` and the first nonzero column of each of its rows."""
    indptr, indices, data = normals
    factor, first = factored
    d = len(first)
    for i in range(d):
        first[i] = i
        for j in range(i + 1):
            factor[i, j] = 0.0
    for i in range(m):
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


@inner
def _solve(normals, m, scaling, factored, side, weights, combined):  # type: ignore[no-untyped-def]
    """Solve `(diag(1/scaling) + 2 N Nᵀ) λ = side`; set `weights` to `λ` and `combined` to `Nᵀ λ`."""
    indptr, indices, data = normals
    factor, first = factored
    d = len(first)
    for i in range(d):
        combined[i] = 0.0
    for i in range(m):
        weight = scaling[i] * side[i]
        for k in range(indptr[i], indptr[i + 1]):
            combined[indices[k]] += weight * data[k]
    for i in range(d):
        for k in range(first[i], i):
            combined[i] -= factor[i, k] * combined[k]
        combined[i] /= factor[i, i]
    for i in range(d - 1, -1, -1):
        combined[i] /= factor[i, i]
        for k in range(first[i], i):
            combined[k] -= factor[i, k] * combined[i]
    _multiply(normals, m, combined, weights)
    for i in range(m):
        weights[i] = scaling[i] * (side[i] - 2 * weights[i])


@inner
def _shift_to_positive(values, sign, m, out):  # type: ignore[no-untyped-def]
    """Set `out` to `sign * values`, shifted so that all entries are well above zero."""
    smallest, total = np.inf, 0.0
    for i in range(m):
        smallest = min(smallest, sign * values[i])
        total += max(sign * values[i], 0.0)
    shift = max(0.0, max(1.0, 0.1 * total / m) - smallest)
    for i in range(m):
        out[i] = sign * values[i] + shift


@inlined
def _set_scaling(s, z, m, scaling):  # type: ignore[no-untyped-def]
    """Set the scaling to `s / z` and return its largest entry."""
    largest = 0.0
    for i in range(m):
        scaling[i] = s[i] / z[i]
        largest = max(largest, scaling[i])
    return largest


@inner
def _longest_step(values, changes, m, length):  # type: ignore[no-untyped-def]
    """Return the longest step, at most `length`, along the changes that keeps all values non-negative."""
    for i in range(m):
        length = min(length, _step_to_zero(values[i], changes[i]))
    return length


@inner
def _step_to_zero(value, change):  # type: ignore[no-untyped-def]
    """Return the step along the change at which the value is zero, or infinity."""
    return -value / change if change < 0 else np.inf


@inner
def _add(length, step, m, values):  # type: ignore[no-untyped-def]
    for i in range(m):
        values[i] += length * step[i]


@inner
def _dot(a, b, m):  # type: ignore[no-untyped-def]
    return a[:m] @ b[:m]
