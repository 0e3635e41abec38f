"""The exact projection on a cone: non-negative least squares by the active-set method.

The weights of a few generators are free and the others zero. Take in the generator that the remainder points to most,
move towards the best weights of those taken, drop those whose weight would turn negative on the way, and repeat
(Lawson & Hanson, "Solving Least Squares Problems", 1974).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.kernels import kernel

_DEPENDENT = 1e-10  # squared distance of a unit generator to the span of others below which it counts as part of it
_OPEN, _CHOSEN, _REFUSED, _OUT = range(4)  # what a generator is at the moment
_SLOPE = 1e-12  # relative slope below which a generator does not improve a projection


@kernel
def nonnegative_projection(
    points: FloatArray, binding: npt.NDArray[np.int8], generators: FloatArray, gram: FloatArray
) -> FloatArray:
    """Project each point (n, r) on the cone spanned by its own choice of signed unit generators (m, r).

    Parameters
    ----------
    points : ndarray of shape (n, r)
    binding : int8 ndarray of shape (n, m)
        1 takes a generator as it stands, -1 reverses it; with any other number, or if it is zero, it is left out.
    generators : ndarray of shape (m, r)
        Of unit length, or zero.
    gram : ndarray of shape (m, m)
        Their inner products.
    """
    projections = np.zeros_like(points)
    aims = points @ generators.T
    for row in range(len(points)):
        enough = _SLOPE * np.sqrt(_dot(points[row], points[row]))
        chosen, weights = _project(aims[row], binding[row], gram, points.shape[1], enough)
        for i in range(len(chosen)):
            projections[row] += weights[i] * binding[row, chosen[i]] * generators[chosen[i]]
    return projections


@kernel
def _project(aim, binding, gram, r, enough):  # type: ignore[no-untyped-def]
    """Return the generators chosen and their weights; `aim` are the inner products of all of them with the point."""
    m = len(aim)
    chosen, weights, factor = np.empty(r, dtype=np.int64), np.empty(r), np.empty((r, r))
    state = np.full(m, _OUT)
    for j in range(m):
        if abs(binding[j]) == 1 and gram[j, j] > 0.0:
            state[j] = _OPEN
    size = 0
    for _ in range(10 * m):  # finite by theory; the bound guards against cycles by rounding
        newcomer = _steepest(aim, binding, gram, state, chosen[:size], weights, enough)
        if newcomer < 0 or size == r:
            break
        chosen[size], weights[size] = newcomer, 0.0
        if not _extend(factor, gram, binding, chosen, size):
            state[newcomer] = _REFUSED
            continue
        state[newcomer] = _CHOSEN
        size = _settle(factor, gram, binding, chosen, weights, state, size + 1, aim)
        if state[newcomer] == _CHOSEN:
            for j in range(m):
                if state[j] == _REFUSED:
                    state[j] = _OPEN  # what did not fit to the former choice may fit to this one
    return chosen[:size], weights[:size]


@kernel
def _steepest(aim, binding, gram, state, chosen, weights, enough):  # type: ignore[no-untyped-def]
    """Return the open generator that the remainder points to most, or -1 if there is none."""
    best, steepest = -1, enough
    for j in range(len(state)):
        if state[j] == _OPEN:
            slope = aim[j]
            for i in range(len(chosen)):
                slope -= weights[i] * binding[chosen[i]] * gram[j, chosen[i]]
            if binding[j] * slope > steepest:
                best, steepest = j, binding[j] * slope
    return best


@kernel
def _settle(factor, gram, binding, chosen, weights, state, size, aim):  # type: ignore[no-untyped-def]
    """Move the weights to the best ones of the chosen generators, without those that turn negative on the way."""
    while True:
        goal = _best_weights(factor, binding, chosen, size, aim)
        length, leaving = 1.0, -1
        for i in range(size):
            if goal[i] <= 0 and weights[i] <= length * (weights[i] - goal[i]):
                length, leaving = weights[i] / (weights[i] - goal[i]), i
        for i in range(size):
            weights[i] += length * (goal[i] - weights[i])
        if leaving < 0:
            return size
        # A newcomer that leaves before it has moved got in by rounding: it must not come back at once.
        state[chosen[leaving]] = _OPEN if length > 0 else _REFUSED
        size -= 1
        for i in range(leaving, size):
            chosen[i], weights[i] = chosen[i + 1], weights[i + 1]
        for i in range(leaving, size):
            _extend(factor, gram, binding, chosen, i)


@kernel
def _extend(factor, gram, binding, chosen, last):  # type: ignore[no-untyped-def]
    """Add chosen generator number `last` to the Cholesky factor of the Gram matrix, unless it depends on the others."""
    pivot = 1.0
    for i in range(last):
        total = binding[chosen[last]] * binding[chosen[i]] * gram[chosen[last], chosen[i]]
        for k in range(i):
            total -= factor[last, k] * factor[i, k]
        factor[last, i] = total / factor[i, i]
        pivot -= factor[last, i] ** 2
    if pivot < _DEPENDENT:
        return False
    factor[last, last] = np.sqrt(pivot)
    return True


@kernel
def _best_weights(factor, binding, chosen, size, aim):  # type: ignore[no-untyped-def]
    """Return the weights, of any sign, that bring the sum of the chosen generators nearest to the point."""
    goal = np.empty(size)
    for i in range(size):
        goal[i] = binding[chosen[i]] * aim[chosen[i]]
        for k in range(i):
            goal[i] -= factor[i, k] * goal[k]
        goal[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        goal[i] /= factor[i, i]
        for k in range(i):
            goal[k] -= factor[i, k] * goal[i]
    return goal


@kernel
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0  # on a few entries a loop is several times faster than a call to BLAS
    for k in range(len(a)):
        total += a[k] * b[k]
    return total
