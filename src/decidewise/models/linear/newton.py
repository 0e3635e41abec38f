"""Newton's method for many small problems at once, with a step length for each.

With many features, conjugate gradients find its steps without the Hessians.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from decidewise.kit.batches import check_time
from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.rows.passes import Passes

# A step is solved until what it misses is this part of what it gains: a rough step is good enough far from the
# minimum, since the next one starts anew, and only there is the gain large.
_ROUGHEST, _FINEST, _SLOPE = 1e-2, 1e-6, 1e-1
# But it may always miss this part of the tolerance of the minimum.
_MISSED = 1e-5
# A step of this length changes the linear predictor by 3 in root mean square, that is, predictions by a factor of 20:
# the quadratic model is useless further out.
_LONGEST_STEP = 3.0
_ROUNDING = 1e-13


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

    def solve(self, right: FloatArray, enough: float) -> FloatArray:
        """Return the solutions (q, k) of the linear systems, each as exact as a Newton step needs to be.

        A step may miss a gain of `enough`. All outputs take their steps of conjugate gradients together, until the last
        of them is done.
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
            if (0.5 * energy <= np.maximum(gain * np.clip(_SLOPE * gain, _FINEST, _ROUGHEST), enough)).all():
                break
            direction = towards + np.divide(energy, before, out=np.zeros_like(before), where=before > 0) * direction
        return solution


class Derivatives(NamedTuple):
    """Values (k,), gradients (q, k) and Hessians of k problems: matrices (k, q, q), or what solves with them."""

    values: FloatArray
    gradients: FloatArray
    hessians: FloatArray | Curvature


class Minimum(NamedTuple):
    """The result of Newton's method: parameters (q, d); for each problem, its evaluations and whether it converged."""

    parameters: FloatArray
    n_iter: IntArray
    converged: BoolArray


def minimize(
    evaluate: Callable[[FloatArray, IntArray], Passes[Derivatives]], start: FloatArray, *, max_iter: int, tol: float
) -> Passes[Minimum]:
    """Minimise d smooth functions of q parameters each, from a start (q, d).

    A step that increases its function is rejected, halved and tried again, while the other functions go on. If a
    Hessian is not positive definite, the absolute values of its eigenvalues are used, which leads away from saddle
    points.

    Parameters
    ----------
    evaluate : callable
        Takes parameters (q, k) and the indices (k,) of their problems, and returns the passes over rows that find the
        derivatives. If a value is not finite, the step is rejected.
    max_iter : int
        The largest number of evaluations for one problem.
    tol : float
        A problem has converged if its quadratic model predicts an improvement of at most this; the last step is still
        taken.

    Examples
    --------
    >>> from decidewise.rows.passes import in_memory
    >>> def cosh(x, problems):
    ...     yield from ()  # it needs no rows
    ...     return Derivatives(np.cosh(x[0]), np.sinh(x), np.cosh(x[0])[:, None, None])
    >>> minimum = in_memory(minimize(cosh, np.array([[1.0, 2.0]]), max_iter=20, tol=1e-10))
    >>> minimum.parameters.round(8) + 0.0, minimum.n_iter
    (array([[0., 0.]]), array([4, 5]))
    """
    best, step = start.copy(), np.zeros_like(start)
    lowest = np.full(start.shape[1], np.inf)
    n_iter, converged = np.zeros(start.shape[1], dtype=np.int64), np.zeros(start.shape[1], dtype=bool)
    for _ in range(max_iter):
        active = np.flatnonzero(~converged)
        if not len(active):
            break
        check_time()
        trial = best[:, active] + step[:, active]
        values, gradients, hessians = yield from evaluate(trial, active)
        n_iter[active] += 1
        bound = lowest[active]
        accepted = np.isfinite(values) & (values <= bound + _ROUNDING * np.maximum(1.0, np.abs(bound)))
        step[:, active[~accepted]] /= 2
        moved = active[accepted]
        best[:, moved], lowest[moved] = trial[:, accepted], values[accepted]
        step[:, moved], promised = _newton_steps(gradients[:, accepted], hessians[accepted], _MISSED * tol)
        last = moved[promised <= tol]
        best[:, last] += step[:, last]
        converged[last] = True
    return Minimum(best, n_iter, converged)


def _newton_steps(
    gradients: FloatArray, hessians: FloatArray | Curvature, enough: float
) -> tuple[FloatArray, FloatArray]:
    """Return steps (q, k) of limited length, and by how much the full steps lower the quadratic models (k,)."""
    steps = hessians.solve(-gradients, enough) if isinstance(hessians, Curvature) else _solve(hessians, -gradients)
    promised = -0.5 * np.einsum("qk,qk->k", gradients, steps)
    lengths = np.linalg.norm(steps, axis=0)
    return steps * (_LONGEST_STEP / np.maximum(lengths, _LONGEST_STEP)), promised


def _solve(hessians: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solutions (q, k) of k systems, with the absolute values of the eigenvalues if some are negative."""
    right = right.T[:, :, None]
    try:
        np.linalg.cholesky(hessians)  # raises unless all are positive definite
        steps = np.linalg.solve(hessians, right)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(hessians)
        sizes = np.abs(values)
        sizes = np.maximum(sizes, np.finfo(np.float64).eps * sizes.max(axis=1, keepdims=True))
        steps = vectors @ ((vectors.mT @ right) / np.maximum(sizes, np.finfo(np.float64).tiny)[:, :, None])
    return np.asarray(steps[:, :, 0].T, dtype=np.float64)
