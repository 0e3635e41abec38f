"""Weighted sums over rows, and the exact least-squares answer from them.

The sums of two sets of rows add up to those of both, so that one pass over blocks, a stream of `partial_fit` calls and
the partitions of a cluster all lead to the same coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from decidewise.checks import FloatArray
from decidewise.models.blocks import BLOCK_ROWS, Block, Blocks, map_tasks, weighted_block

_EPS = float(np.finfo(np.float64).eps)


@dataclass
class Moments:
    """The sums `Σ w a aᵀ` and `Σ w a zᵀ` with `a = (1, x - shift)`.

    Attributes
    ----------
    shift : ndarray of shape (p,)
        Roughly the mean of the features, so that large offsets do not cost digits.
    gram : ndarray of shape (p + 1, p + 1)
    cross : ndarray of shape (p + 1, d)
    """

    shift: FloatArray
    gram: FloatArray
    cross: FloatArray

    @classmethod
    def zeros(cls, shift: FloatArray, n_outputs: int) -> Moments:
        """Return the moments of no rows."""
        size = len(shift) + 1
        return cls(shift, np.zeros((size, size)), np.zeros((size, n_outputs)))

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(self.gram[0, 0])

    def add(self, blocks: Blocks) -> None:
        """Add the rows of all blocks, in parallel when there are many."""
        for part in map_tasks(lambda task: self._sum(blocks, task), len(blocks)):
            self.gram += part.gram
            self.cross += part.cross

    def _sum(self, blocks: Blocks, task: range) -> Moments:
        part = Moments.zeros(self.shift, self.cross.shape[1])
        # Memory that is used again stays in the cache; new arrays for every block would double the time.
        design, scratch = np.empty((2, BLOCK_ROWS, len(self.shift) + 1))
        for index in task:
            part._add_block(weighted_block(blocks, index), design, scratch)
        return part

    def _add_block(self, block: Block, design: FloatArray, scratch: FloatArray) -> None:
        """Add a block whose targets are multiplied by their weights."""
        for first in range(0, len(block.X), len(design)):
            rows = slice(first, first + len(design))
            X, targets = block.X[rows], block.targets[rows]
            a = weighted = design[: len(X)]
            a[:, 0] = 1.0
            np.subtract(X, self.shift, out=a[:, 1:])
            if block.weights is not None:
                weighted = np.multiply(a, block.weights[rows, None], out=scratch[: len(X)])
            self.gram += weighted.T @ a
            self.cross += a.T @ targets

    def solve(self, alpha: float, fit_intercept: bool) -> tuple[FloatArray, FloatArray]:
        """Return coefficients (p, d) and intercepts (d,) that minimise the weighted mean square plus the ridge.

        Without a ridge and without full rank it is the answer of least norm.
        """
        center, level, gram, cross = self.centered(fit_intercept)
        ridge = alpha * self.total_weight * np.eye(len(gram))
        coefficients = _solve_semidefinite(gram + ridge, cross)
        return coefficients, level - (self.shift + center) @ coefficients if fit_intercept else level

    def centered(self, fit_intercept: bool) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the means of the features (less the shift) and of the targets, and the sums of products about them.

        Without an intercept nothing is centred and the means are zero.
        """
        weight = self.total_weight
        gram, cross = self.gram[1:, 1:], self.cross[1:]
        center, level = np.zeros(len(self.shift)), np.zeros(cross.shape[1])
        if fit_intercept:
            center, level = self.gram[1:, 0] / weight, self.cross[0] / weight
            gram = gram - weight * np.outer(center, center)
            cross = cross - weight * np.outer(center, level)
            # What rounding leaves of a constant feature is not variance: its coefficient is zero.
            rounding = 100 * _EPS * center**2 + (10 * _EPS * (self.shift + center)) ** 2
            constant = np.diag(gram) <= weight * rounding
            gram[constant], gram[:, constant], cross[constant] = 0.0, 0.0, 0.0
        return center, level, gram, cross


def whiten(matrix: FloatArray) -> FloatArray:
    """Return `T` (p, r) with `Tᵀ matrix T = I`, for a positive semidefinite matrix (p, p) of rank r.

    The columns of `T` are orthogonal to the null space, so that `T @ c` is the shortest of all equivalent vectors.
    """
    scale, values, basis, null = _decompose(matrix)
    result = basis / np.sqrt(values) / scale[:, None]
    return result - null @ (null.T @ result)


def _solve_semidefinite(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return the least-norm solution of `matrix @ b = right` for a symmetric positive semidefinite matrix."""
    scale, values, basis, null = _decompose(matrix)
    solution = (basis @ ((basis.T @ (right / scale[:, None])) / values[:, None])) / scale[:, None]
    return solution - null @ (null.T @ solution)


def _decompose(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Decompose a semidefinite matrix (p, p), scaled to a unit diagonal so that its rank does not depend on units.

    Returns the scale (p,), the r eigenvalues that are not zero, their vectors (p, r), and an orthonormal basis
    (p, p - r) of the null space of the matrix itself.
    """
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = eigh(matrix / np.outer(scale, scale))
    keep = values > 64 * len(matrix) * _EPS
    null, _ = np.linalg.qr(vectors[:, ~keep] / scale[:, None])
    return scale, values[keep], vectors[:, keep], null
