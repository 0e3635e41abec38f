"""A polyhedron as an affine space within bounds: both are easy to project on, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack

from decidewise.kit.checks import FloatArray
from decidewise.solvers.program import Polyhedron

# Singular values below this fraction of the largest are zero: that is rounding.
_RANK = 1e-10
# Up to this many entries a dense basis of the directions takes less time than sparse factors of the equations.
_FEW_ENTRIES = 2**16
# Added to the squares of the rows, relative to their mean, so that a redundant equation does no harm.
_RIDGE = 1e-13


@dataclass(frozen=True)
class SplitRegion:
    """A polyhedron as the points `w` of an affine space `rows · w = right` within bounds.

    Each inequality has a slack of its own, after the decisions.

    Attributes
    ----------
    rows : csr_array of shape (m, D)
    right : ndarray of shape (m,)
    lower, upper : ndarray of shape (D,)
    """

    rows: csr_array
    right: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, region: Polyhedron) -> SplitRegion:
        """Return the split form of a polyhedron."""
        n_slacks = region.A_ub.shape[0]
        rows = vstack(
            [
                hstack([region.A_eq, csr_array((region.A_eq.shape[0], n_slacks))]),
                hstack([region.A_ub, csr_array(eye_array(n_slacks))]),
            ],
            format="csr",
        )
        return cls(
            rows=csr_array(rows),
            right=np.concatenate([region.b_eq, region.b_ub]),
            lower=np.concatenate([region.lower, np.zeros(n_slacks)]),
            upper=np.concatenate([region.upper, np.full(n_slacks, np.inf)]),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_factors"}  # which stay in the process

    @cached_property
    def origin(self) -> FloatArray:
        """The point of the affine space with the least norm (D,)."""
        if self._directions is None:
            return np.asarray(self.rows.T @ self._factors.solve(self.right))
        return np.asarray(np.linalg.lstsq(self.rows.toarray(), self.right, rcond=_RANK)[0])

    def along(self, vectors: FloatArray) -> FloatArray:
        """Return the part of vectors (n, D) that is parallel to the affine space."""
        if self._directions is None:
            return vectors - (self.rows.T @ self._factors.solve(self.rows @ vectors.T)).T
        return (vectors @ self._directions) @ self._directions.T

    @cached_property
    def _directions(self) -> FloatArray | None:
        """An orthonormal basis of the directions of the affine space, (D, r), by one decomposition, unless large."""
        m, n = self.rows.shape
        if n * max(n - m, m) > _FEW_ENTRIES:
            return None
        _, values, axes = np.linalg.svd(self.rows.toarray())
        rank = int((values > _RANK * values.max(initial=0.0)).sum())
        return np.ascontiguousarray(axes[rank:].T)

    @cached_property
    def _factors(self) -> Any:
        """The sparse factors of the inner products of the rows."""
        from scipy.sparse.linalg import splu  # noqa: PLC0415  (slow to import; small regions do not need it)

        products = self.rows @ self.rows.T
        ridge = _RIDGE * products.diagonal().mean() * eye_array(len(self.right))
        symmetric = {"SymmetricMode": True}
        return splu((products + ridge).tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)
