"""The exact projection on a cone: non-negative least squares by the active-set method.

The weights of a few generators are free and the others zero. Take in the generator that the remainder points to most,
move towards the best weights of those taken, drop those whose weight would turn negative on the way, and repeat
(Lawson & Hanson, "Solving Least Squares Problems", 1974).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from decidewise.checks import FloatArray

_DEPENDENT = 1e-10  # squared distance of a unit generator to the span of others below which it counts as part of it
_SLOPE = 1e-12  # relative slope below which a generator does not improve a projection


@njit(cache=True)
def nonnegative_projection(points: FloatArray, binding: npt.NDArray[np.int8], generators: FloatArray) -> FloatArray:
    """Project each point (n, r) on the cone spanned by its own choice of signed unit generators (m, r).

    Parameters
    ----------
    points : ndarray of shape (n, r)
    binding : int8 ndarray of shape (n, m)
        1 takes a generator as it stands, -1 reverses it; with any other number, or if it is zero, it is left out.
    generators : ndarray of shape (m, r)
        Of unit length, or zero.
    """
    projections = np.zeros_like(points)
    for row in range(len(points)):
        _project(points[row], binding[row], generators, projections[row])
    return projections


@njit(cache=True)
def _project(point, binding, generators, projection):  # type: ignore[no-untyped-def]
    m, r = generators.shape
    chosen, weights, factor = np.empty(r, dtype=np.int64), np.zeros(r), np.zeros((r, r))
    open_to = np.empty(m, dtype=np.bool_)  # neither left out, nor chosen, nor just refused
    for j in range(m):
        open_to[j] = abs(binding[j]) == 1 and np.any(generators[j])
    refused = np.zeros(m, dtype=np.bool_)
    enough = _SLOPE * np.sqrt(point @ point)
    size = 0
    for _ in range(10 * m):  # finite by theory; the bound guards against cycles by rounding
        best = _steepest(generators @ (point - projection), binding, open_to, enough)
        if best < 0 or size == r:
            break
        open_to[best] = False
        chosen[size], weights[size] = best, 0.0
        if _extend(factor, generators, binding, chosen, size):
            size = _rebalance(factor, generators, binding, chosen, weights, size + 1, point, open_to)
            if size > 0 and chosen[size - 1] == best:
                open_to |= refused
                refused[:] = False
            ...
