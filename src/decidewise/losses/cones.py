"""The normal cone of a polyhedron at a decision: which constraints bind there, and projections on their normals.

A decision is optimal for the cost `c` exactly if `-c` lies in the cone spanned by the normals of the constraints that
bind at it, all of them written as `a·w <= b`. All cones of one polyhedron choose from the same normals, so a cone is
stored as one row of small integers over that list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.linalg import null_space
from scipy.sparse import csr_array, eye_array, vstack

from decidewise.checks import FloatArray
from decidewise.losses.interior_point import interior_projection

IntArray = npt.NDArray[np.int8]

_DEPENDENT = 1e-10  # squared distance of a unit normal to the span of others below which it counts as part of it
_SLOPE = 1e-12  # relative slope below which a normal does not improve a projection


@dataclass(frozen=True)
class NormalCones:
    """The normals of a polyhedron, in the order equalities, inequalities, bounds.

    Parameters
    ----------
    polyhedron : object with `A_ub, b_ub, A_eq, b_eq, lower, upper`
    tolerance : float
        A constraint binds when its slack is at most this.

    Examples
    --------
    The upper corner of the unit square cut by `w_1 + w_2 <= 2` binds at three constraints:

    >>> from types import SimpleNamespace
    >>> square = SimpleNamespace(
    ...     A_ub=csr_array([[1.0, 1.0]]), b_ub=np.array([2.0]), A_eq=csr_array((0, 2)), b_eq=np.zeros(0),
    ...     lower=np.zeros(2), upper=np.ones(2),
    ... )
    >>> cones = NormalCones(square)
    >>> binding = cones.binding(np.array([[1.0, 1.0], [1.0, 0.0]]))
    >>> binding
    array([[ 1,  1,  1],
           [ 0,  1, -1]], dtype=int8)
    >>> cones.project(np.array([[3.0, -1.0], [3.0, -1.0]]), binding)
    array([[ 3.,  0.],
           [ 3., -1.]])
    """

    polyhedron: Any
    tolerance: float = 1e-5

    @cached_property
    def normals(self) -> csr_array:
        """All normals as sparse rows (m, d); that of an upper bound is a unit vector, that of a lower one its minus."""
        d = len(self.polyhedron.lower)
        return csr_array(vstack([self.polyhedron.A_eq, self.polyhedron.A_ub, eye_array(d)], format="csr"))

    @cached_property
    def lengths(self) -> FloatArray:
        """The Euclidean lengths (m,) of the normals."""
        return np.sqrt(np.asarray(self.normals.multiply(self.normals).sum(axis=1)).ravel())

    @cached_property
    def units(self) -> csr_array:
        """The normals at unit length, as sparse rows (m, d)."""
        lengths = np.where(self.lengths > 0, self.lengths, 1)
        return csr_array(self.normals.multiply(1 / lengths[:, None]))

    @cached_property
    def directions(self) -> FloatArray:
        """An orthonormal basis (d, r) of the directions that keep every equality, fixed variables among them."""
        fixed = np.flatnonzero(self._fixed) + self.normals.shape[0] - self.normals.shape[1]
        equal = self.normals[[*range(self.polyhedron.A_eq.shape[0]), *fixed]]
        return np.ascontiguousarray(null_space(equal.toarray()))

    @cached_property
    def generators(self) -> FloatArray:
        """The unit normals in the coordinates of `directions` (m, r); zero where an equality implies the normal."""
        reduced = self.units @ self.directions
        lengths = np.linalg.norm(reduced, axis=1, keepdims=True)
        return np.divide(reduced, lengths, out=np.zeros_like(reduced), where=lengths > 1e-9)

    def binding(self, decisions: FloatArray) -> IntArray:
        """Say how each normal takes part in the cone at each decision: (n, d) -> (n, m).

        0 means not at all, 1 as it stands, -1 reversed (a lower bound), 2 in both directions (an equality).
        """
        polyhedron, tolerance = self.polyhedron, self.tolerance
        equal = np.full((len(decisions), polyhedron.A_eq.shape[0]), 2)
        inequalities = decisions @ polyhedron.A_ub.T >= polyhedron.b_ub - tolerance
        at_lower = decisions <= polyhedron.lower + tolerance
        at_upper = decisions >= polyhedron.upper - tolerance
        bounds = np.where(self._fixed, 2, np.where(at_lower, -1, at_upper))
        binding = np.hstack([equal, inequalities, bounds]).astype(np.int8)
        binding[:, self.lengths == 0] = 0  # a constraint without coefficients has no normal
        return binding

    def mean_unit_normal(self, binding: IntArray) -> FloatArray:
        """Return the mean (n, d) of the unit normals of each cone; the two signs of an equality cancel, but count."""
        one_sided = np.where(binding == 2, 0, binding)
        count = np.abs(binding).sum(axis=1, dtype=np.float64, keepdims=True)
        return np.asarray(one_sided @ self.units) / np.maximum(count, 1)

    def project(self, points: FloatArray, binding: IntArray) -> FloatArray:
        """Return the nearest point of its cone for each point: (n, d), (n, m) -> (n, d)."""
        # A cone contains both signs of the equalities, so what lies in their span stays as it is.
        inside = points @ self.directions
        moved = nonnegative_projection(inside, binding, self.generators) - inside
        projections = points + moved @ self.directions.T
        # What rounding leaves of a projection on the apex has a direction of its own; it must not count.
        lost = np.linalg.norm(projections, axis=1) <= 1e-12 * np.linalg.norm(points, axis=1)
        projections[lost] = 0
        return projections

    def approach(self, points: FloatArray, binding: IntArray, max_iter: int) -> FloatArray:
        """Return where `max_iter` interior-point steps towards `project` end, short of the cone's boundary."""
        rows = self.normals
        return interior_projection(
            points, binding, (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data), max_iter
        )

    @cached_property
    def _fixed(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.polyhedron.upper - self.polyhedron.lower <= self.tolerance)


@njit(cache=True)
def nonnegative_projection(points: FloatArray, binding: IntArray, generators: FloatArray) -> FloatArray:
    """Project each point (n, r) on the cone spanned by its choice of signed unit generators (m, r).

    Non-negative least squares by the active-set method of Lawson & Hanson ("Solving Least Squares Problems", 1974).
    Generators that are zero, or chosen with both signs, are left out.
    """
    projections = np.zeros_like(points)
    for row in range(len(points)):
        _active_set(points[row], binding[row], generators, projections[row])
    return projections


@njit(cache=True)
def _active_set(point, binding, generators, projection):  # type: ignore[no-untyped-def]
    m, r = generators.shape
    usable = np.zeros(m, dtype=np.bool_)
    for j in range(m):
        usable[j] = abs(binding[j]) == 1 and np.any(generators[j])
    chosen = np.empty(r, dtype=np.int64)
    weights, goal = np.zeros(r), np.zeros(r)
    factor = np.zeros((r, r))
    refused = np.zeros(m, dtype=np.bool_)
    enough = _SLOPE * np.sqrt(point @ point)
    size = 0
    for _ in range(10 * m):  # finite by theory; the bound guards against cycles by rounding
        slopes = generators @ (point - projection)
        best, steepest = -1, enough
        for j in range(m):
            if usable[j] and not refused[j] and binding[j] * slopes[j] > steepest:
                best, steepest = j, binding[j] * slopes[j]
        if best < 0 or size == r:
            break
        chosen[size] = best
        weights[size] = 0.0
        if not _extend(factor, generators, binding, chosen, size):
            refused[best] = True
            continue
        size += 1
        usable[best] = False
        while True:
            _least_squares(factor, generators, binding, chosen, size, point, goal)
            length, leaving = 1.0, -1
            for i in range(size):
                if goal[i] <= 0 and weights[i] <= length * (weights[i] - goal[i]):
                    length, leaving = weights[i] / (weights[i] - goal[i]), i
            for i in range(size):
                weights[i] += length * (goal[i] - weights[i])
            if leaving < 0:
                refused[:] = False
                break
            usable[chosen[leaving]] = True
            if length == 0:  # rounding made the newcomer leave at once: try it again after the next progress
                refused[chosen[leaving]] = True
            for i in range(leaving, size - 1):
                chosen[i], weights[i] = chosen[i + 1], weights[i + 1]
            size -= 1
            for i in range(leaving, size):
                _extend(factor, generators, binding, chosen, i)
        projection[:] = 0.0
        for i in range(size):
            projection += weights[i] * binding[chosen[i]] * generators[chosen[i]]


@njit(cache=True)
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0  # on a few entries a loop is several times faster than a call to BLAS
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@njit(cache=True)
def _extend(factor, generators, binding, chosen, size):  # type: ignore[no-untyped-def]
    """Add the last chosen generator to the Cholesky factor of the Gram matrix, unless it depends on the others."""
    last = chosen[size]
    pivot = 1.0
    for i in range(size):
        total = binding[last] * binding[chosen[i]] * _dot(generators[last], generators[chosen[i]])
        for k in range(i):
            total -= factor[size, k] * factor[i, k]
        factor[size, i] = total / factor[i, i]
        pivot -= factor[size, i] ** 2
    if pivot < _DEPENDENT:
        return False
    factor[size, size] = np.sqrt(pivot)
    return True


@njit(cache=True)
def _least_squares(factor, generators, binding, chosen, size, point, goal):  # type: ignore[no-untyped-def]
    """Set `goal` to the weights of the chosen generators that bring their sum nearest to the point."""
    for i in range(size):
        goal[i] = binding[chosen[i]] * _dot(generators[chosen[i]], point)
        for k in range(i):
            goal[i] -= factor[i, k] * goal[k]
        goal[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        goal[i] /= factor[i, i]
        for k in range(i):
            goal[k] -= factor[i, k] * goal[i]
