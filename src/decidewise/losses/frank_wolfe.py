"""The projection on the convex hull of a feasible region, by Frank–Wolfe steps, which need only the solver.

This is the fully corrective variant, which for a projection is Wolfe's nearest-point method: each solve adds a vertex,
and then the point moves to the nearest point of the hull of the vertices kept so far. On a polytope it reaches the
exact projection after finitely many solves, with affinely independent vertices that span the face of the projection.

Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11, 1976.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.errors import SolverError
from decidewise.losses.base import IndexArray, row_dot


@dataclass(frozen=True, eq=False)
class Projection:
    """Points `(n, d)` of the hull, each a combination of atoms `(n, k, d)` with weights `(n, k)`.

    Atoms are vertices minus the first vertex found. Atoms of weight zero are unused places.
    """

    points: FloatArray
    atoms: FloatArray
    weights: FloatArray

    def along_face(self, vectors: FloatArray) -> FloatArray:
        """Return the part of each vector `(n, d)` that is parallel to the face spanned by the atoms."""
        gram = self.atoms @ self.atoms.transpose(0, 2, 1)
        inner = np.einsum("ikd,id->ik", self.atoms, vectors)
        coefficients = _nearest_in_affine_hull(gram, inner, self.weights > 0, total=0.0)
        return np.einsum("ik,ikd->id", coefficients, self.atoms)


def project_on_hull(
    minimize: Callable[[FloatArray, IndexArray], FloatArray], targets: FloatArray, *, max_iter: int, tol: float
) -> Projection:
    """Return the points nearest to `targets` `(n, d)` in the convex hull of the region that `minimize` solves over.

    `minimize(costs, rows)` returns decisions for costs `(b, d)` of some rows `(b,)`, as `Target.minimize` does.
    The Frank–Wolfe gap bounds half the squared distance to the exact projection. A row is finished when its gap is at
    most `tol` or within rounding; only unfinished rows are solved again.
    """
    rows = np.arange(len(targets))
    origin = minimize(-targets, rows)
    targets = targets - origin
    points, atoms = np.zeros_like(targets), np.zeros((len(targets), 1, targets.shape[1]))
    gram, inner, weights = np.zeros((len(targets), 1, 1)), np.zeros(atoms.shape[:2]), np.ones(atoms.shape[:2])
    for _ in range(max_iter):
        if len(rows) == 0:
            break
        residual = points[rows] - targets[rows]
        decisions = minimize(residual, rows)
        vertices = decisions - origin[rows]
        rounding = 1e-14 * row_dot(np.abs(residual), np.abs(decisions) + np.abs(origin[rows]))
        is_open = row_dot(residual, points[rows] - vertices) > np.maximum(tol, rounding)
        rows, vertices = rows[is_open], vertices[is_open]

        if (weights[rows] > 0).all(axis=1).any():
            more = (0, 4)  # add places for atoms, several at a time
            atoms, gram = np.pad(atoms, ((0, 0), more, (0, 0))), np.pad(gram, ((0, 0), more, more))
            inner, weights = np.pad(inner, ((0, 0), more)), np.pad(weights, ((0, 0), more))
        free = weights[rows].argmin(axis=1)
        atoms[rows, free] = vertices
        gram[rows, free] = gram[rows, :, free] = np.einsum("ikd,id->ik", atoms[rows], vertices)
        inner[rows, free] = row_dot(vertices, targets[rows])

        weights[rows] = _nearest_in_hull(gram[rows], inner[rows], weights[rows], free)
        points[rows] = np.einsum("ik,ikd->id", weights[rows], atoms[rows])
        rows = rows[weights[rows, free] > 0]  # a vertex that got no weight would be found again, forever
    if len(rows):
        message = f"Frank–Wolfe did not converge in {max_iter} steps. Raise max_iter, tol or lambd."
        raise SolverError(message, row=int(rows[0]))
    return Projection(origin + points, atoms, weights)


def _nearest_in_hull(
    gram: FloatArray, inner: FloatArray, weights: FloatArray, entering: npt.NDArray[np.intp]
) -> FloatArray:
    """Return the weights of the point nearest to the target in the hull of the used atoms and the entering one.

    `gram` (n, k, k) holds the inner products of the atoms with each other and `inner` (n, k) those with the target.
    """
    weights, active = weights.copy(), weights > 0
    rows = np.arange(len(weights))
    active[rows, entering] = True
    while len(rows):
        old = weights[rows]
        affine = _nearest_in_affine_hull(gram[rows], inner[rows], active[rows], total=1.0)
        # Move to the nearest point of the affine hull, or stop where the first weight falls to zero.
        reach = np.full_like(old, np.inf)
        falling = active[rows] & (affine < 1e-12)
        reach[falling] = old[falling] / np.maximum(old[falling] - affine[falling], 1e-12)
        step = np.minimum(reach.min(axis=1, keepdims=True), 1.0)
        new = old + step * (affine - old)
        new[(reach <= step) | (new < 1e-12)] = 0.0
        weights[rows], active[rows] = new, new > 0
        rows = rows[step[:, 0] < 1]
    return weights / weights.sum(axis=1, keepdims=True)  # the sum is 1 up to rounding


def _nearest_in_affine_hull(
    gram: FloatArray, inner: FloatArray, active: npt.NDArray[np.bool_], *, total: float
) -> FloatArray:
    """Return the coefficients, of sum `total`, whose combination of the active atoms is nearest to the target."""
    n, k = active.shape
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = np.where(active[:, :, None] & active[:, None, :], gram, 0.0)
    diagonal = np.einsum("ikk->ik", system[:, :k, :k])
    scale = diagonal.max(axis=1, keepdims=True)
    scale[scale == 0] = 1.0
    # An inactive atom gets coefficient zero. The ridge keeps the system regular if active atoms nearly coincide.
    diagonal += np.where(active, 1e-14, 1.0) * scale
    system[:, :k, k] = system[:, k, :k] = active * scale
    right = np.concatenate([np.where(active, inner, 0.0), total * scale], axis=1)
    return np.linalg.solve(system, right[:, :, None])[:, :k, 0]
