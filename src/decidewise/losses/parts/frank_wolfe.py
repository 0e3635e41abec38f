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

from decidewise.kit.checks import FloatArray, IndexArray
from decidewise.kit.errors import SolverError
from decidewise.losses.parts.nearest_point import add_vertices, along_faces
from decidewise.losses.parts.target import row_dot


@dataclass(frozen=True, eq=False)
class Projection:
    """Points `(n, d)` of the hull, each a combination of atoms `(n, k, d)` with weights `(n, k)`.

    Atoms are vertices minus the first vertex found. A row uses the first of its places for atoms, as many as `counts`
    `(n,)` says; the weights of the others are zero. `factors` `(n, k, k)` are those of `nearest_point`.
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
