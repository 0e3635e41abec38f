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
from decidewise.runtime.kernels import kernel

# What is called in one place only is inlined: a function of its own would be optimised once more in each that calls it.
compiled, inlined = kernel(error_model="numpy"), kernel(error_model="numpy", inline="always")

_STEP_FRACTION = 0.99  # of the way to the boundary
_PIVOT = 1e-14  # relative size below which a pivot is rounding
_LARGEST, _CLOSED = 1e10, 1e-10  # scaling above which, relative gap below which, a step loses more than it gains


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
    d, m, entries = points.shape[1], 2 * binding.shape[1], 2 * len(normals[2])
    taken = np.empty(m + 1, np.int64), np.empty(entries, np.int64), np.empty(entries)
    of_normals, of_costs = tuple(np.empty((12, m))), tuple(np.empty((5, d)))
    factor = np.empty((d, d)), np.empty(d, np.int64)
    _approach_rows(points, binding, normals, max_iter, taken, of_normals, of_costs, factor, projections)
    return projections


@compiled
def _approach_rows(  # type: ignore[no-untyped-def]
    points, binding, normals, max_iter, taken, of_normals, of_costs, factor, projections
):
    for row in range(len(points)):
        m = _take(binding[row], normals, taken)
        if m > 0:
            _approach(points[row], taken, m, max_iter, of_normals, of_costs, factor, projections[row])


@inlined
def _approach(point, normals, m, max_iter, of_normals, of_costs, factor, projection):  # type: ignore[no-untyped-def]
    # Minimise ‖Nᵀx - y‖² under s = x and s >= 0, with z the multipliers; τ and κ belong to the embedding. Everything
    # about x that the steps need is x itself and its image u = Nᵀx.
    pull, x, s, z, scaling, dual_gap, correction, x_tau, x_step, s_step, z_step, side = of_normals
    u, u_tau, u_step, mean, apart = of_costs
    d = len(point)
    _times(normals, m, point, pull)
    for i in range(m):
        pull[i] *= 2
        scaling[i] = 1.0
    _factorise(normals, m, scaling, factor)
    _solve(normals, m, scaling, factor, pull, x, u)
    _into_orthant(x, 1.0, m, s)
    _into_orthant(x, -1.0, m, z)
    tau, kappa = 1.0, 1.0
    for iteration in range(max_iter):
        gap = _dot(s, z, m)
        if _scale(s, z, m, scaling) > _LARGEST or gap < _CLOSED * tau**2 * max(1.0, _dot(point, point, d)):
            break
        centring = (gap + tau * kappa) / (m + 1)
        _times(normals, m, u, dual_gap)
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
        share = 1.0  # of the gaps to close: all of them in the predictor, what is left of them in the corrector
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
            length = _longest(z, z_step, m, _longest(s, s_step, m, 1.0))
            length = min(length, _way(tau, tau_step), _way(kappa, kappa_step))
            if corrector == 0:
                share = 1 - (1 - length) ** 3
                weight = length if iteration == 0 else 1.0  # a badly centred start gets a smaller correction
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
def _take(binding, normals, taken):  # type: ignore[no-untyped-def]
    """Write down the normals that take part, with their signs, as a sparse matrix of their own; return how many."""
    indptr, indices, data = normals
    pointers, columns, values = taken
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


@compiled
def _times(normals, m, vector, out):  # type: ignore[no-untyped-def]
    """Set `out` to `N v`."""
    indptr, indices, data = normals
    for i in range(m):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * vector[indices[k]]
        out[i] = total


@compiled
def _factorise(normals, m, scaling, factored):  # type: ignore[no-untyped-def]
    """Set the Cholesky factor of `I + 2 Nᵀ diag(scaling) N` and the first nonzero column of each of its rows."""
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


@compiled
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
    _times(normals, m, combined, weights)
    for i in range(m):
        weights[i] = scaling[i] * (side[i] - 2 * weights[i])


@compiled
def _into_orthant(values, sign, m, out):  # type: ignore[no-untyped-def]
    """Set `out` to the values with a sign, shifted so that the smallest keeps a distance from zero."""
    smallest, total = np.inf, 0.0
    for i in range(m):
        smallest = min(smallest, sign * values[i])
        total += max(sign * values[i], 0.0)
    shift = max(0.0, max(1.0, 0.1 * total / m) - smallest)
    for i in range(m):
        out[i] = sign * values[i] + shift


@inlined
def _scale(s, z, m, scaling):  # type: ignore[no-untyped-def]
    """Set the scaling to `s / z` and return the largest entry."""
    largest = 0.0
    for i in range(m):
        scaling[i] = s[i] / z[i]
        largest = max(largest, scaling[i])
    return largest


@compiled
def _longest(values, changes, m, length):  # type: ignore[no-untyped-def]
    """Return how far values can follow their changes and stay positive, at most `length`."""
    for i in range(m):
        length = min(length, _way(values[i], changes[i]))
    return length


@compiled
def _way(value, change):  # type: ignore[no-untyped-def]
    return -value / change if change < 0 else np.inf


@compiled
def _add(length, step, m, values):  # type: ignore[no-untyped-def]
    for i in range(m):
        values[i] += length * step[i]


@compiled
def _dot(a, b, m):  # type: ignore[no-untyped-def]
    return a[:m] @ b[:m]
