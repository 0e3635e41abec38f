"""Losses of the decision `z(p)` that a quadratic regulariser smooths: what they share.

`z(p) = argmin_z p·z + λ/2 ‖z‖²` over the convex hull of the region is the projection of `-p/λ`. On a polytope it stays
on one face for small changes of almost every `p`, so that its Jacobian is `-F/λ`, where `F` projects on the directions
of that face.

The projection takes Frank–Wolfe steps, which need only the solver, in the fully corrective variant, which for a
projection is Wolfe's nearest-point method ("Finding the nearest point in a polytope", Mathematical Programming 11,
1976): each solve adds a vertex, and then the point moves to the nearest point of the hull of the vertices kept so
far, its atoms. On a polytope it reaches the exact projection after finitely many solves, with affinely independent
atoms, which span the face of the projection.

The correction is compiled. With the matrix `A` of the atoms, the Cholesky factor of `AA' + s 11'` gives the nearest
point of their affine hull by two triangular solves, whatever the scale `s > 0`. The factor is kept: an atom more is one
more row of it, and an atom less some rotations, so that a correction takes `O(k (d + k))` operations for `k` atoms of
`d` entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray, IndexArray
from decidewise.kit.errors import SolverError
from decidewise.kit.kernels import kernel
from decidewise.losses.base import Loss, count, positive
from decidewise.losses.parts.target import Target, row_dot

# Sums may be taken in any order, which lets the compiler use vector instructions.
_settings: dict = {"error_model": "numpy", "fastmath": {"reassoc", "contract"}}
_inner: dict = {"inner": True, **_settings}
_NO_WEIGHT = 1e-12  # a weight below this is zero
_DEPENDENT = 1e-14  # relative; keeps the factor regular if atoms nearly coincide


@dataclass(frozen=True)
class Smoothed(Loss):
    """The projection that these losses share, and its parameters, as `Rfwo` documents them."""

    lambd: float = positive(1.0)
    max_iter: int = count(1000)
    tol: float = positive(1e-12)

    def smoothed(self, costs: FloatArray, target: Target) -> Projection:
        """Return `z` of each row of costs (b, d) over the hull of what `target.minimize` solves over, with its face."""
        with np.errstate(over="ignore"):  # what overflows is refused where it is solved for
            targets = costs / -self.lambd
        return project_on_hull(target.minimize, targets, max_iter=self.max_iter, tol=self.tol)


@dataclass(frozen=True, eq=False)
class Projection:
    """Points `(n, d)` of the hull, each a combination of atoms `(n, k, d)` with weights `(n, k)`.

    Atoms are vertices minus the first vertex found. A row uses the first of its places for atoms, as many as `counts`
    `(n,)` says; the weights of the others are zero. `factors` `(n, k, k)` are those of `add_vertices`.
    """

    points: FloatArray
    atoms: FloatArray
    weights: FloatArray
    counts: IndexArray
    factors: FloatArray

    def along_face(self, vectors: FloatArray) -> FloatArray:
        """Return the part of each vector `(n, d)` that is parallel to the face spanned by the atoms."""
        return along_faces(np.ascontiguousarray(vectors), self.atoms, self.factors, self.counts)


def project_on_hull(
    minimize: Callable[[FloatArray, IndexArray], FloatArray], targets: FloatArray, *, max_iter: int, tol: float
) -> Projection:
    """Return the points nearest to `targets` `(n, d)` in the convex hull of the region that `minimize` solves over.

    `minimize(costs, rows)` returns decisions for costs `(b, d)` of some rows `(b,)`, as `Target.minimize` does.
    The Frank–Wolfe gap bounds half the squared distance to the exact projection. A row is finished when its gap is at
    most `tol` or within rounding; only unfinished rows are solved again.
    """
    n, d = targets.shape
    rows = np.arange(n)
    origin = minimize(-targets, rows)
    targets = np.ascontiguousarray(targets - origin)  # a kernel is compiled for each order of memory
    points, atoms, factors = np.zeros((n, d)), np.zeros((n, 1, d)), np.zeros((n, 1, 1))
    scales, aims, weights, counts = np.zeros(n), np.zeros((n, 1)), np.ones((n, 1)), np.ones(n, np.intp)
    for _ in range(max_iter):
        if len(rows) == 0:
            break
        residual = points[rows] - targets[rows]
        decisions = minimize(residual, rows)
        vertices = decisions - origin[rows]
        rounding = 1e-14 * row_dot(np.abs(residual), np.abs(decisions) + np.abs(origin[rows]))
        is_open = row_dot(residual, points[rows] - vertices) > np.maximum(tol, rounding)
        rows, vertices = rows[is_open], np.ascontiguousarray(vertices[is_open])

        if counts[rows].max(initial=0) == len(weights[0]):
            k = 4 + 2 * len(weights[0])
            atoms, factors = _with_more_places(atoms, (n, k, d)), _with_more_places(factors, (n, k, k))
            aims, weights = _with_more_places(aims, (n, k)), _with_more_places(weights, (n, k))
        kept = add_vertices(rows, vertices, targets, atoms, factors, scales, aims, weights, counts, points)
        rows = rows[kept]  # a vertex that got no weight would be found again, forever
    if len(rows):
        message = f"Frank–Wolfe did not converge in {max_iter} steps. Raise max_iter, tol or lambd."
        raise SolverError(message, row=int(rows[0]))
    weights[np.arange(weights.shape[1]) >= counts[:, np.newaxis]] = 0.0
    return Projection(origin + points, atoms, weights, counts, factors)


def _with_more_places(array: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return a copy of larger shape; what is added takes no memory before it is written to, so there may be much."""
    larger = np.zeros(shape)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger


@kernel(**_settings)
def add_vertices(  # type: ignore[no-untyped-def]
    rows, vertices, targets, atoms, factors, scales, aims, weights, counts, points
):
    """Add a vertex to the atoms of each of the rows, and move its point to the nearest one in the hull of its atoms.

    Return which rows gave their vertex a positive weight.

    Parameters
    ----------
    rows : int64 ndarray of shape (b,)
    vertices : ndarray of shape (b, d)
    targets : ndarray of shape (n, d)
    atoms, factors, scales, aims, weights, counts, points : ndarrays
        The state of all n rows, changed in place. Row i uses the first `counts[i]` places of its atoms (n, k, d),
        factors (n, k, k), inner products with the target `aims` (n, k) and weights (n, k). One place must be free.
    """
    kept = np.zeros(len(rows), np.bool_)
    goal, even = np.empty(weights.shape[1]), np.empty(weights.shape[1])
    for i in range(len(rows)):
        row = rows[i]
        atom, factor, weight, aim = atoms[row], factors[row], weights[row], aims[row]
        last = counts[row]
        square = _dot(vertices[i], vertices[i], len(vertices[i]))
        if scales[row] == 0.0:  # the first atom, which is the origin, is alone
            scales[row], factor[0, 0] = square, np.sqrt(square)
        for j in range(len(vertices[i])):
            atom[last, j] = vertices[i, j]
        aim[last], weight[last] = _dot(vertices[i], targets[row], len(vertices[i])), 0.0
        _extend_factor(factor, atom, last, square, scales[row])
        counts[row], kept[i] = _move_weights(factor, atom, aim, weight, last + 1, goal, even)
        _combine(weight, atom, counts[row], points[row])
    return kept


@kernel(**_settings)
def along_faces(vectors, atoms, factors, counts):  # type: ignore[no-untyped-def]
    """Return the part of each vector (n, d) that is parallel to the affine hull of the atoms of its row."""
    along = np.empty_like(vectors)
    for row in range(len(vectors)):
        aim, even = np.empty(counts[row]), np.empty(counts[row])
        for i in range(counts[row]):
            aim[i] = _dot(atoms[row, i], vectors[row], vectors.shape[1])
        if counts[row] == 1:
            aim[0] = 0.0  # one atom has no directions
        else:
            _find_affine(factors[row], aim, counts[row], 0.0, aim, even)
        _combine(aim, atoms[row], counts[row], along[row])
    return along


@kernel(**_inner)
def _dot(a, b, size):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


@kernel(**_inner)
def _combine(weight, atom, size, point):  # type: ignore[no-untyped-def]
    for j in range(len(point)):
        point[j] = 0.0
    for i in range(size):
        for j in range(len(point)):
            point[j] += weight[i] * atom[i, j]


@kernel(**_inner)
def _extend_factor(factor, atom, last, square, scale):  # type: ignore[no-untyped-def]
    """Add the row of atom number `last`, whose squared length is `square`, to the factor."""
    for i in range(last):
        product = _dot(atom[last], atom[i], atom.shape[1]) + scale
        factor[last, i] = (product - _dot(factor[last], factor[i], i)) / factor[i, i]
    pivot = square + scale - _dot(factor[last], factor[last], last)
    factor[last, last] = np.sqrt(max(pivot, _DEPENDENT * (square + scale)))


@kernel(**_inner)
def _move_weights(factor, atom, aim, weight, size, goal, even):  # type: ignore[no-untyped-def]
    """Move to the nearest point of the affine hull of the atoms, and remove those whose weight falls to zero.

    Return the number of atoms that are left, and whether the last is one of them.
    """
    entering = size - 1
    while True:
        _find_affine(factor, aim, size, 1.0, goal, even)
        step = 1.0
        for i in range(size):
            if goal[i] < _NO_WEIGHT:
                step = min(step, weight[i] / max(weight[i] - goal[i], _NO_WEIGHT))
        for i in range(size - 1, -1, -1):
            old = weight[i]
            weight[i] += step * (goal[i] - old)
            falls = goal[i] < _NO_WEIGHT and old <= step * max(old - goal[i], _NO_WEIGHT)
            if falls or weight[i] < _NO_WEIGHT:
                entering = -1 if i == entering else entering
                size -= 1
                _remove(factor, atom, aim, weight, i, size)
        if step == 1.0:
            break
    total = 0.0
    for i in range(size):
        total += weight[i]
    for i in range(size):
        weight[i] /= total  # it is 1 up to rounding
    return size, entering >= 0


@kernel(**_inner)
def _remove(factor, atom, aim, weight, leaving, size):  # type: ignore[no-untyped-def]
    """Remove an atom, so that `size` are left: move the later ones forward and rotate their rows of the factor."""
    for i in range(leaving, size):
        aim[i], weight[i] = aim[i + 1], weight[i + 1]
        for j in range(atom.shape[1]):  # not by slices, which take seconds to compile
            atom[i, j] = atom[i + 1, j]
        for j in range(i + 2):
            factor[i, j] = factor[i + 1, j]
    # Each row now has one entry too many. The rotations of columns that remove it in earlier rows come first.
    cosine, sine = np.empty(size), np.empty(size)
    for i in range(leaving, size):
        for j in range(leaving, i):
            here, next_ = factor[i, j], factor[i, j + 1]
            factor[i, j] = cosine[j] * here + sine[j] * next_
            factor[i, j + 1] = cosine[j] * next_ - sine[j] * here
        here, next_ = factor[i, i], factor[i, i + 1]
        length = np.sqrt(here * here + next_ * next_)
        cosine[i], sine[i] = here / length, next_ / length
        factor[i, i] = length


@kernel(**_inner)
def _find_affine(factor, aim, size, total, goal, even):  # type: ignore[no-untyped-def]
    """Set `goal` to the weights of sum `total` whose combination of atoms is nearest to the target."""
    for i in range(size):
        goal[i] = (aim[i] - _dot(factor[i], goal, i)) / factor[i, i]
        even[i] = (1.0 - _dot(factor[i], even, i)) / factor[i, i]
    sum_goal = sum_even = 0.0
    for i in range(size - 1, -1, -1):
        goal[i] /= factor[i, i]
        even[i] /= factor[i, i]
        for j in range(i):
            goal[j] -= factor[i, j] * goal[i]
            even[j] -= factor[i, j] * even[i]
        sum_goal += goal[i]
        sum_even += even[i]
    for i in range(size):
        goal[i] += (total - sum_goal) / sum_even * even[i]
