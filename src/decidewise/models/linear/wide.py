"""The exact least-squares fit on fewer rows than features, from products of rows with rows.

All that a linear fit takes from n rows of p features is in a matrix of n times n numbers. The answers are those of
`Moments`, whose matrix has p times p: 50,000 features of 12 rows would take 20 GB there, and milliseconds here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, qr, solve, solve_triangular

from decidewise.kit.checks import FloatArray
from decidewise.models.linear.blocks import Block, Blocks
from decidewise.models.linear.moments import Moments, check_sums, is_constant, least_value, ridge_in
from decidewise.models.linear.units import out_of_units
from decidewise.rows.passes import Passes

# With fewer features the matrices are small either way.
_MANY_FEATURES = 200
# Products of features in the caller's units are in range for units up to this, and down to its inverse.
_LARGEST_UNIT = 2.0**200
# Features whose sizes differ by at most this factor need no orthogonal basis: the products of rows are as exact.
_ALIKE = 2.0


@dataclass
class WideMoments:
    """What `Moments` are, as the rows whose products they would be the sums of.

    So the `moments_` of such a fit, and a file of the model, hold the weighted training rows themselves.

    Attributes
    ----------
    shift, unit : ndarrays of shape (p,)
        As in `Moments`.
    design : ndarray of shape (n, p + 1)
        `a = (1, (x - shift) / unit)` of each row, times the root of its weight.
    targets : ndarray of shape (n, d)
        The targets, times the roots of the weights.
    """

    shift: FloatArray
    unit: FloatArray
    design: FloatArray
    targets: FloatArray

    @classmethod
    def for_blocks(cls, blocks: Blocks, first: Block, fit_intercept: bool) -> WideMoments | None:
        """Return the moments of no rows, or None unless the blocks are fewer rows in memory than many tame features."""
        rows = blocks.in_memory
        if rows is None or rows.X.ndim != 2 or not len(rows.X) < rows.X.shape[1] >= _MANY_FEATURES:
            return None
        shift, unit = Moments.shift_and_unit(first, fit_intercept)
        if unit.max() > _LARGEST_UNIT or unit.min() < 1 / _LARGEST_UNIT:
            return None
        return cls(shift, unit, np.empty((0, len(shift) + 1)), np.empty((0, first.targets.shape[1])))

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(self.design[:, 0] @ self.design[:, 0])

    @property
    def cross(self) -> FloatArray:
        """The sums `Σ w a zᵀ`, (p + 1, d)."""
        return self.design.T @ self.targets

    def multiplied(self, factor: float) -> WideMoments:
        """Return the moments of targets `factor` times as large."""
        return replace(self, targets=self.targets * factor)

    def plus(self, blocks: Blocks) -> Passes[Moments | WideMoments]:
        """Return the moments with the rows of all blocks added; sums, if there are now more rows than features."""
        rows = blocks.in_memory
        if rows is None:
            return (yield from self._in_sums().plus(blocks))
        designs, targets = [self.design], [self.targets]
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            for index in range(len(rows)):
                block = rows.weighted(index)
                roots = np.ones(len(block.X)) if block.weights is None else np.sqrt(block.weights)
                design = np.column_stack([np.ones(len(roots)), (block.X - self.shift) / self.unit])
                designs.append(design * roots[:, None])
                targets.append(block.targets / np.where(roots > 0, roots, 1.0)[:, None])
            total = replace(self, design=np.vstack(designs), targets=np.vstack(targets))
            check_sums(np.einsum("ij,ij->j", total.design, total.design), total.cross, blocks)
        return total if len(total.design) < len(self.shift) else total._in_sums()

    def _in_sums(self) -> Moments:
        return Moments(self.shift, self.unit, self.design.T @ self.design, self.cross)

    def solve(self, alpha: float, fit_intercept: bool) -> tuple[FloatArray, FloatArray]:
        """Return coefficients (p, d) and intercepts (d,), as `Moments.solve` does."""
        mean, level, rows, targets = self._centered(fit_intercept)
        if alpha > 0:
            ridge = ridge_in(self.unit, alpha, self.total_weight, np.einsum("ij,ij->j", rows, rows))
            scaled = rows / np.sqrt(ridge)
            shares = _shrunk(*_directions(scaled), targets, 1.0)
            coefficients = out_of_units((scaled.T @ shares) / np.sqrt(ridge)[:, None], self.unit)
        else:
            space = self._row_space(rows)
            coefficients = self._shortest(rows, space, space.T @ targets)
        return coefficients, level - mean @ coefficients if fit_intercept else level

    def ridges(self) -> Callable[[float], tuple[FloatArray, FloatArray]]:
        """Return a function that solves for any ridge, with an intercept, after one decomposition."""
        mean, level, rows, targets = self._centered(fit_intercept=True)
        values, vectors = _directions(rows)

        def solved(alpha: float) -> tuple[FloatArray, FloatArray]:
            if alpha == 0 or (self.unit != 1).any():
                return self.solve(alpha, fit_intercept=True)
            coefficients = rows.T @ _shrunk(values, vectors, targets, alpha * self.total_weight)
            return coefficients, level - mean @ coefficients

        return solved

    def whitened(self, fit_intercept: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the means of the features, a basis and its inverse, as `Moments.whitened` does."""
        mean, _, rows, _ = self._centered(fit_intercept)
        space, root = self._row_space(rows), np.sqrt(self.total_weight)
        basis = self._shortest(rows, space, root * np.eye(space.shape[1]))
        return mean, basis, (space.T @ rows) * self.unit / root

    def _centered(self, fit_intercept: bool) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the means of features and targets, and rows (n, p) and targets (n, d) about them; see `Moments`."""
        roots, rows = self.design[:, 0], self.design[:, 1:]
        mean, level = np.zeros(len(self.shift)), np.zeros(self.targets.shape[1])
        if not fit_intercept:
            return mean, level, rows, self.targets
        center, level = roots @ rows / self.total_weight, roots @ self.targets / self.total_weight
        rows = rows - np.outer(roots, center)
        squares = np.einsum("ij,ij->j", rows, rows)
        rows[:, is_constant(squares, center, self.shift / self.unit, self.total_weight)] = 0.0
        return self.shift + center * self.unit, level, rows, self.targets - np.outer(roots, level)

    def _row_space(self, rows: FloatArray) -> FloatArray:
        """Return an orthonormal basis (n, r) of the combinations of rows that do not vanish, whatever the units."""
        sizes = np.sqrt(np.einsum("ij,ij->j", rows, rows))
        scaled = rows / np.where(sizes > 0, sizes, 1.0)
        values, vectors = eigh(scaled @ scaled.T)
        return vectors[:, values > least_value(rows.shape[1])]

    def _shortest(self, rows: FloatArray, space: FloatArray, right: FloatArray) -> FloatArray:
        """Return the shortest `b` (p, k) in the caller's units with `spaceᵀ rows b = right` (r, k)."""
        own = rows * self.unit
        sizes = np.sqrt(np.einsum("ij,ij->j", own, own))
        if sizes.max() <= _ALIKE * sizes[sizes > 0].min(initial=np.inf):
            products = space.T @ (own @ own.T) @ space
            return own.T @ (space @ solve(products, right, assume_a="sym"))
        basis, triangle = qr(own.T @ space, mode="economic")
        return basis @ solve_triangular(triangle, right, trans="T")


def _directions(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues (r,) and vectors (n, r) of the products of rows (n, p), without those that are rounding.

    Such a vector, of twice the same row for example, stands for no coefficients at all, but its rounding would.
    """
    values, vectors = eigh(rows @ rows.T)
    keep = values > least_value(len(rows)) * values[-1]
    return values[keep], vectors[:, keep]


def _shrunk(values: FloatArray, vectors: FloatArray, targets: FloatArray, ridge: float) -> FloatArray:
    """Return the shares (n, d) of the rows in the coefficients, for targets (n, d) and a ridge."""
    return vectors @ ((vectors.T @ targets) / (values + ridge)[:, None])
