"""Newton steps of log-linear models with many features, without their Hessians: conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from decidewise.kit.batches import check_time
from decidewise.kit.checks import BoolArray, FloatArray

# A step is solved until what it misses is this part of what it gains: a rough step is good enough far from the
# minimum, since the next one starts anew, and only there is the gain large.
_ROUGHEST, _FINEST, _SLOPE = 1e-2, 1e-6, 1e-1


@dataclass(frozen=True)
class Preconditioner:
    """The inverse of `shared + alpha · ridge` for any alpha, where `shared` is close to the Hessian of every output.

    Attributes
    ----------
    vectors : ndarray of shape (q, q)
        In these directions `shared` is the identity, and the ridge is diagonal.
    strengths : ndarray of shape (q,)
        The ridge in these directions.
    """

    vectors: FloatArray
    strengths: FloatArray

    @classmethod
    def of(cls, shared: FloatArray, ridge: FloatArray) -> Preconditioner:
        """Return the preconditioner of a positive definite matrix and a semidefinite ridge, both (q, q)."""
        strengths, vectors = eigh(ridge, shared)
        return cls(vectors, np.maximum(strengths, 0.0))

    def solve(self, right: FloatArray, alphas: FloatArray) -> FloatArray:
        """Return the solutions (q, k) for right-hand sides (q, k) with alphas (k,)."""
        return self.vectors @ ((self.vectors.T @ right) / (1 + self.strengths[:, None] * alphas))


@dataclass(frozen=True)
class Curvature:
    """The Hessians `design · diag(curvatures_j) · designᵀ + alpha_j · ridge` of k outputs, as products with vectors.

    Attributes
    ----------
    design : ndarray of shape (q, n)
    curvatures : ndarray of shape (n, k)
        Not negative; with the weights of the rows.
    alphas : ndarray of shape (k,)
    ridge : ndarray of shape (q, q)
    near : Preconditioner
    """

    design: FloatArray
    curvatures: FloatArray
    alphas: FloatArray
    ridge: FloatArray
    near: Preconditioner

    def __getitem__(self, outputs: BoolArray) -> Curvature:
        """Return the Hessians of some of the outputs."""
        if outputs.all():
            return self
        return replace(self, curvatures=self.curvatures[:, outputs], alphas=self.alphas[outputs])

    def times(self, vectors: FloatArray) -> FloatArray:
        """Return the products (q, k) of the Hessians with vectors (q, k)."""
        along = self.design.T @ vectors
        along *= self.curvatures
        return self.design @ along + self.alphas * (self.ridge @ vectors)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the solutions (q, k) of the linear systems, each as exact as a Newton step needs to be.

        All outputs take their steps of conjugate gradients together, until the last of them is done.
        """
        solution, residual = np.zeros_like(right), right.copy()
        direction = towards = self.near.solve(residual, self.alphas)
        energy = np.einsum("qk,qk->k", residual, towards)
        gain = np.zeros_like(energy)
        for _ in range(len(right)):
            check_time()
            product = self.times(direction)
            bend = np.einsum("qk,qk->k", direction, product)
            length = np.divide(energy, bend, out=np.zeros_like(bend), where=bend > 0)
            solution += length * direction
            residual -= length * product
            gain += 0.5 * length * energy
            towards = self.near.solve(residual, self.alphas)
            before, energy = energy, np.einsum("qk,qk->k", residual, towards)
            if (0.5 * energy <= gain * np.clip(_SLOPE * gain, _FINEST, _ROUGHEST)).all():
                break
            direction = towards + np.divide(energy, before, out=np.zeros_like(before), where=before > 0) * direction
        return solution
