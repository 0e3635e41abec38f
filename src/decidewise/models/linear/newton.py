"""Newton's method for many small problems at once, with a step length for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from decidewise.kit.batches import check_time
from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.models.linear.conjugate import Curvature
from decidewise.rows.passes import Passes

# A step of this length changes the linear predictor by 3 in root mean square, that is, predictions by a factor of 20:
# the quadratic model is useless further out.
_LONGEST_STEP = 3.0
_ROUNDING = 1e-13


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
        step[:, moved], promised = _newton_steps(gradients[:, accepted], hessians[accepted])
        last = moved[promised <= tol]
        best[:, last] += step[:, last]
        converged[last] = True
    return Minimum(best, n_iter, converged)


def _newton_steps(gradients: FloatArray, hessians: FloatArray | Curvature) -> tuple[FloatArray, FloatArray]:
    """Return steps (q, k) of limited length, and by how much the full steps lower the quadratic models (k,)."""
    steps = hessians.solve(-gradients) if isinstance(hessians, Curvature) else _solve(hessians, -gradients)
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
