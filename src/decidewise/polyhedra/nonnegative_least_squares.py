"""The exact projection on a cone: non-negative least squares by the active-set method.

The weights of a few generators are free and the others zero. Take in the generator that the remainder points to most,
move towards the best weights of those taken, drop those whose weight would turn negative on the way, and repeat
(Lawson & Hanson, "Solving Least Squares Problems", 1974).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.runtime.kernels import kernel

# What is called in one place only is inlined: a function of its own would be optimised once more in each that calls it.
compiled, inlined = kernel(error_model="numpy"), kernel(error_model="numpy", inline="always")

_DEPENDENT = 1e-10  # squared distance of a unit generator to the span of others below which it counts as part of it
_OPEN, _CHOSEN, _REFUSED, _OUT = range(4)  # what a generator is at the moment
_SLOPE = 1e-12  # relative slope below which a generator does not improve a projection


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
    m, r = generators.shape
    projections = np.zeros_like(points)
    chosen, state, weights, goal = np.empty(r, np.int64), np.empty(m, np.int64), np.empty(r), np.empty(r)
    _project_rows(
        points, points @ generators.T, binding, generators, gram,
        chosen, weights, state, goal, np.empty((r, r)), projections,
    )  # fmt: skip
    return projections


@compiled
def _project_rows(  # type: ignore[no-untyped-def]
    points, aims, binding, generators, gram, chosen, weights, state, goal, factor, projections
):
    n, r = points.shape
    for row in range(n):
        square = 0.0
        for k in range(r):
            square += points[row, k] * points[row, k]
        enough = _SLOPE * np.sqrt(square)
        size = _project(aims[row], binding[row], gram, enough, chosen, weights, state, goal, factor)
        for i in range(size):
            weight = weights[i] * binding[row, chosen[i]]
            for k in range(r):
                projections[row, k] += weight * generators[chosen[i], k]


@inlined
def _project(aim, binding, gram, enough, chosen, weights, state, goal, factor):  # type: ignore[no-untyped-def]
    """Choose generators and their weights, and return how many; `aim` are the inner products of all with the point."""
    m = len(aim)
    for j in range(m):
        state[j] = _OPEN if abs(binding[j]) == 1 and gram[j, j] > 0.0 else _OUT
    size = 0
    for _ in range(10 * m):  # finite by theory; the bound guards against cycles by rounding
        newcomer = _steepest(aim, binding, gram, state, chosen, weights, size, enough)
        if newcomer < 0 or size == len(chosen):
            break
        chosen[size], weights[size] = newcomer, 0.0
        if not _extend(factor, gram, binding, chosen, size):
            state[newcomer] = _REFUSED
            continue
        state[newcomer] = _CHOSEN
        size = _settle(factor, gram, binding, chosen, weights, state, size + 1, aim, goal)
        if state[newcomer] == _CHOSEN:
            for j in range(m):
                if state[j] == _REFUSED:
                    state[j] = _OPEN  # what did not fit to the former choice may fit to this one
    return size


@inlined
def _steepest(aim, binding, gram, state, chosen, weights, size, enough):  # type: ignore[no-untyped-def]
    """Return the open generator that the remainder points to most, or -1 if there is none."""
    best, steepest = -1, enough
    for j in range(len(state)):
        if state[j] == _OPEN:
            slope = aim[j]
            for i in range(size):
                slope -= weights[i] * binding[chosen[i]] * gram[j, chosen[i]]
            if binding[j] * slope > steepest:
                best, steepest = j, binding[j] * slope
    return best


@inlined
def _settle(factor, gram, binding, chosen, weights, state, size, aim, goal):  # type: ignore[no-untyped-def]
    """Move the weights to the best ones of the chosen generators, without those that turn negative on the way."""
    while True:
        _find_best_weights(factor, binding, chosen, size, aim, goal)
        length, leaving = 1.0, -1
        for i in range(size):
            # A weight that is zero already and stays it, as happens among small integers, has no way to go.
            if goal[i] <= 0 and goal[i] != weights[i] and weights[i] <= length * (weights[i] - goal[i]):
                length, leaving = weights[i] / (weights[i] - goal[i]), i
        for i in range(size):
            weights[i] += length * (goal[i] - weights[i])
        if leaving < 0:
            break
        # A newcomer that leaves before it has moved got in by rounding: it must not come back at once.
        state[chosen[leaving]] = _OPEN if length > 0 else _REFUSED
        size -= 1
        for i in range(leaving, size):
            chosen[i], weights[i] = chosen[i + 1], weights[i + 1]
        for i in range(leaving, size):
            _extend(factor, gram, binding, chosen, i)
    return size


@compiled
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


@inlined
def _find_best_weights(factor, binding, chosen, size, aim, goal):  # type: ignore[no-untyped-def]
    """Set `goal` to the weights, of any sign, that bring the sum of the chosen generators nearest to the point."""
    for i in range(size):
        goal[i] = binding[chosen[i]] * aim[chosen[i]]
        for k in range(i):
            goal[i] -= factor[i, k] * goal[k]
        goal[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        goal[i] /= factor[i, i]
        for k in range(i):
            goal[k] -= factor[i, k] * goal[i]
