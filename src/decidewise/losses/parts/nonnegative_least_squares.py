"""The exact projection on a cone: non-negative least squares by the active-set method.

A few generators, the chosen ones, have positive weights; all other weights are zero. Add the generator with the largest
inner product with the residual, move towards the best weights of the chosen generators, remove each generator whose
weight would become negative, and repeat (Lawson & Hanson, "Solving Least Squares Problems", 1974).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import FloatArray
from decidewise.kit.kernels import kernel

# Functions with one caller are inlined; otherwise the compiler would optimise them again inside each caller.
compiled, inlined = kernel(error_model="numpy"), kernel(error_model="numpy", inline="always")

_DEPENDENT = 1e-10  # a unit generator depends on others if its squared distance to their span is below this
_OPEN, _CHOSEN, _REFUSED, _OUT = range(4)  # the states of a generator
_SLOPE = 1e-12  # a generator with a relative slope below this does not improve the projection


def nonnegative_projection(
    points: FloatArray, binding: npt.NDArray[np.int8], generators: FloatArray, gram: FloatArray
) -> FloatArray:
    """Project each point (n, r) on the cone spanned by its own choice of signed unit generators (m, r).

    Parameters
    ----------
    points : ndarray of shape (n, r)
    binding : int8 ndarray of shape (n, m)
        1 uses a generator, -1 uses it reversed; with any other number the generator is not used.
    generators : ndarray of shape (m, r)
        Of unit length, or zero; zero generators are not used.
    gram : ndarray of shape (m, m)
        The inner products of the generators.
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
        min_slope = _SLOPE * np.sqrt(square)
        size = _project(aims[row], binding[row], gram, min_slope, chosen, weights, state, goal, factor)
        for i in range(size):
            weight = weights[i] * binding[row, chosen[i]]
            for k in range(r):
                projections[row, k] += weight * generators[chosen[i], k]


@inlined
def _project(aim, binding, gram, min_slope, chosen, weights, state, goal, factor):  # type: ignore[no-untyped-def]
    """Choose generators and their weights; return their number. `aim` (m,): their inner products with the point."""
    m = len(aim)
    for j in range(m):
        state[j] = _OPEN if abs(binding[j]) == 1 and gram[j, j] > 0.0 else _OUT
    size = 0
    for _ in range(10 * m):  # the method is finite; the bound is for cycles caused by rounding
        entering = _steepest(aim, binding, gram, state, chosen, weights, size, min_slope)
        if entering < 0 or size == len(chosen):
            break
        chosen[size], weights[size] = entering, 0.0
        if not _extend_factor(factor, gram, binding, chosen, size):
            state[entering] = _REFUSED
            continue
        state[entering] = _CHOSEN
        size = _move_weights(factor, gram, binding, chosen, weights, state, size + 1, aim, goal)
        if state[entering] == _CHOSEN:
            for j in range(m):
                if state[j] == _REFUSED:
                    state[j] = _OPEN  # refused beside the former choice; it may fit this one
    return size


@inlined
def _steepest(aim, binding, gram, state, chosen, weights, size, min_slope):  # type: ignore[no-untyped-def]
    """Return the open generator with the largest product with the residual, or -1 if none is above `min_slope`."""
    best, steepest = -1, min_slope
    for j in range(len(state)):
        if state[j] == _OPEN:
            slope = aim[j]
            for i in range(size):
                slope -= weights[i] * binding[chosen[i]] * gram[j, chosen[i]]
            if binding[j] * slope > steepest:
                best, steepest = j, binding[j] * slope
    return best


@inlined
def _move_weights(factor, gram, binding, chosen, weights, state, size, aim, goal):  # type: ignore[no-untyped-def]
    """Move to the best weights of the chosen generators and remove those whose weight becomes negative.

    Return the number of generators that are left.
    """
    while True:
        _find_best_weights(factor, binding, chosen, size, aim, goal)
        length, leaving = 1.0, -1
        for i in range(size):
            # A weight that is and stays zero, as happens with small integers, must not leave: the length would be 0/0.
            if goal[i] <= 0 and goal[i] != weights[i] and weights[i] <= length * (weights[i] - goal[i]):
                length, leaving = weights[i] / (weights[i] - goal[i]), i
        for i in range(size):
            weights[i] += length * (goal[i] - weights[i])
        if leaving < 0:
            break
        # A generator that leaves at a step of length zero was added because of rounding: do not add it again at once.
        state[chosen[leaving]] = _OPEN if length > 0 else _REFUSED
        size -= 1
        for i in range(leaving, size):
            chosen[i], weights[i] = chosen[i + 1], weights[i + 1]
        for i in range(leaving, size):
            _extend_factor(factor, gram, binding, chosen, i)
    return size


@compiled
def _extend_factor(factor, gram, binding, chosen, last):  # type: ignore[no-untyped-def]
    """Add chosen generator number `last` to the Cholesky factor of the Gram matrix, unless it depends on the others."""
    pivot = 1.0
    for i in range(last):
        total = binding[chosen[last]] * binding[chosen[i]] * gram[chosen[last], chosen[i]]
        for k in range(i):
            total -= factor[last, k] * factor[i, k]
        factor[last, i] = total / factor[i, i]
        pivot -= factor[last, i] * factor[last, i]
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
