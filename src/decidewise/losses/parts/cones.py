"""The normal cone of a polyhedron at a decision: the constraints that bind there, and projections on the cone.

A decision is optimal for the costs `c` exactly if `-c` lies in its normal cone, the cone spanned by the normals `a` of
the constraints `a·w <= b` that bind at the decision. All cones of a polyhedron are spanned by subsets of the same
normals, so each cone is stored as one row of small integers, one per normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import null_space
from scipy.sparse import csr_array, eye_array, vstack

from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import SolverError
from decidewise.losses.parts.interior_point import interior_projection

SignArray = npt.NDArray[np.int8]


@dataclass(frozen=True)
class NormalCones:
    """The normals of a polyhedron, in the order equalities, inequalities, bounds.

    Parameters
    ----------
    polyhedron : object with `A_ub, b_ub, A_eq, b_eq, lower, upper`
    tolerance : float
        A constraint binds if its slack is at most this.

    Examples
    --------
    At the upper corner of the unit square, cut by `w_1 + w_2 <= 2`, three constraints bind:

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
        """All normals as sparse rows (m, d). The last d are unit vectors, for the bounds; lower bounds reverse them."""
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
    def upper_rows(self) -> tuple[csr_array, FloatArray]:
        """Unit normals (k, d) and offsets (k,) of all `normal·w <= offset`: the inequalities and the upper bounds."""
        rows = slice(self.polyhedron.A_eq.shape[0], None)
        lengths = np.where(self.lengths[rows] > 0, self.lengths[rows], 1)
        return self.units[rows], np.concatenate([self.polyhedron.b_ub, self.polyhedron.upper]) / lengths

    @cached_property
    def directions(self) -> FloatArray:
        """An orthonormal basis (d, r) of the directions that keep all equalities and all fixed variables."""
        fixed = np.flatnonzero(self._fixed) + self.normals.shape[0] - self.normals.shape[1]
        equal = self.normals[[*range(self.polyhedron.A_eq.shape[0]), *fixed]]
        return np.ascontiguousarray(null_space(equal.toarray()))

    @cached_property
    def generators(self) -> FloatArray:
        """The unit normals in the coordinates of `directions` (m, r); zero where an equality implies the normal."""
        reduced = self.units @ self.directions
        lengths = np.linalg.norm(reduced, axis=1, keepdims=True)
        return np.divide(reduced, lengths, out=np.zeros_like(reduced), where=lengths > 1e-9)

    def binding(self, decisions: FloatArray) -> SignArray:
        """Return how each normal takes part in the cone at each decision: (n, d) -> (n, m).

        0 means not at all, 1 with its sign, -1 reversed (a lower bound), 2 with both signs (an equality).
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

    def mean_unit_normal(self, binding: SignArray) -> FloatArray:
        """Return the mean (n, d) of the unit normals of each cone; an equality counts as two normals, which cancel."""
        one_sided = np.where(binding == 2, 0, binding)
        count = np.abs(binding).sum(axis=1, dtype=np.float64, keepdims=True)
        return np.asarray(one_sided @ self.units) / np.maximum(count, 1)

    def project(self, points: FloatArray, binding: SignArray) -> FloatArray:
        """Return the nearest point of its cone for each point: (n, d), (n, m) -> (n, d)."""
        # A cone contains the span of the equalities, so the projection keeps the component in that span.
        inside = points @ self.directions
        moved = project_on_cones(inside, binding, self.generators) - inside
        projections = points + moved @ self.directions.T
        # If the apex is the nearest point, rounding would leave a small vector of arbitrary direction: set it to zero.
        lost = np.linalg.norm(projections, axis=1) <= 1e-12 * np.linalg.norm(points, axis=1)
        projections[lost] = 0
        return projections

    def approach(self, points: FloatArray, binding: SignArray, max_iter: int) -> FloatArray:
        """Return the points after `max_iter` interior-point steps towards `project`, which stop before the boundary."""
        rows = self.normals
        return interior_projection(
            points, binding, (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data), max_iter
        )

    @cached_property
    def _fixed(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.polyhedron.upper - self.polyhedron.lower <= self.tolerance)


def project_on_cones(points: FloatArray, binding: SignArray, generators: FloatArray) -> FloatArray:
    """Project each point (n, r) on the cone spanned by its own choice of signed unit generators (m, r).

    `binding` (n, m) is 1 where a generator is used and -1 where it is used reversed; others are not used. What a
    projection leaves of a point is the nearest point of the polar cone, at which no generator ascends (Moreau): a
    quadratic program for the active set of DAQP.
    """
    import daqp  # noqa: PLC0415  (few losses need it)

    signs = np.where(np.abs(binding) == 1, binding, 0)
    sizes = np.linalg.norm(points, axis=1)
    units, identity = points / np.where(sizes > 0, sizes, 1.0)[:, None], np.eye(points.shape[1])
    projections = np.zeros_like(points)
    for row in np.flatnonzero(sizes):
        used = np.flatnonzero(signs[row])
        zeros, kinds = np.zeros(len(used)), np.zeros(len(used), np.intc)
        spanning = signs[row, used, None] * generators[used]
        rest, _, flag, _ = daqp.solve(identity, -units[row], spanning, zeros, zeros - 1e30, kinds, primal_tol=1e-12)
        if flag != 1:
            raise SolverError(
                f"DAQP found no projection on the normal cone of the decision (status {flag}). Bring the coefficients "
                "of the constraints nearer to 1, or choose a loss without cones, such as SpoPlus.",
                row=int(row),
            )
        projections[row] = sizes[row] * (units[row] - rest)
    return projections
