"""A polyhedron as an affine space within bounds: both are easy to project on, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack

from decidewise.checks import FloatArray
from decidewise.polyhedra.polyhedron import Polyhedron

# Singular values below this fraction of the largest are zero: that is rounding.
_RANK = 1e-10


@dataclass(frozen=True)
class SplitRegion:
    """A polyhedron as the points of an affine space within bounds; each inequality has a slack of its own.

    Attributes
    ----------
    directions : ndarray of shape (D, r)
        An orthonormal basis of the directions of the affine space, in decisions and slacks.
    origin : ndarray of shape (D,)
        Its point of least norm.
    lower, upper : ndarray of shape (D,)
    """

    directions: FloatArray
    origin: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, region: Polyhedron) -> SplitRegion:
        """Return the split form of a polyhedron, by one singular value decomposition."""
        n_slacks = region.A_ub.shape[0]
        rows = vstack(
            [
                hstack([region.A_eq, csr_array((region.A_eq.shape[0], n_slacks))]),
                hstack([region.A_ub, csr_array(eye_array(n_slacks))]),
            ],
            format="csr",
        ).toarray()
        right = np.concatenate([region.b_eq, region.b_ub])
        left, values, axes = np.linalg.svd(rows)
        rank = int((values > _RANK * values.max(initial=0.0)).sum())
        origin = axes[:rank].T @ ((left[:, :rank].T @ right) / values[:rank])
        return cls(
            directions=np.ascontiguousarray(axes[rank:].T),
            origin=origin,
            lower=np.concatenate([region.lower, np.zeros(n_slacks)]),
            upper=np.concatenate([region.upper, np.full(n_slacks, np.inf)]),
        )

    def along(self, vectors: FloatArray) -> FloatArray:
        """Return the part of vectors (n, D) that is parallel to the affine space."""
        return (vectors @ self.directions) @ self.directions.T
