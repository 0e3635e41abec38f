"""Weighted sums over rows, and the exact least-squares fit from them.

The sums over two sets of rows add up to the sums over both. So one pass over blocks, a series of `partial_fit` calls
and the partitions of a cluster all give the same coefficients. On fewer rows than features, `WideMoments` keep the rows
themselves: all that a fit takes from n rows is in a matrix of n times n numbers. The answers are those of `Moments`,
whose matrix has p times p: 50,000 features of 12 rows would take 20 GB there, and milliseconds here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import eigh, qr, solve, solve_triangular

from decidewise.kit.checks import FloatArray, check_finite
from decidewise.models.linear.blocks import BLOCK_ROWS, Block, Blocks, RowBlocks
from decidewise.models.linear.column_sums import column_sums
from decidewise.models.linear.units import (
    is_constant,
    least_value,
    out_of_units,
    ridge_in,
    solve_semidefinite,
    tame_unit,
    whiten,
)
from decidewise.rows.passes import Passes
from decidewise.rows.source import ColumnMatrix

_EPS = float(np.finfo(np.float64).eps)
# Features up to this size need no unit: their products with targets and weights are well within float64.
_TAME = 2.0**26
# Numbers of the scaled features that are held at once: few enough for the second-level cache.
_SCRATCH = 2**16
# Means up to this many standard deviations need no shift: squares lose three digits of sixteen.
_NEAR_ZERO = 30.0
# With fewer features the matrices are small either way.
_MANY_FEATURES = 200
# Products of features in the caller's units are in range for units up to this, and down to its inverse.
_LARGEST_UNIT = 2.0**200
# Features whose sizes differ by at most this factor need no orthogonal basis: the products of rows are as exact.
_ALIKE = 2.0


@dataclass
class RowSums(ABC):
    """Sums over rows, to which those of more rows can be added."""

    shift: FloatArray
    unit: FloatArray
    gram: FloatArray
    cross: FloatArray

    def plus(self, blocks: Blocks) -> Passes[Self]:
        """Return the sums with the rows of all blocks added, in parallel if there are many blocks."""
        gram, cross = yield from blocks.sum(self._sum, start=(self.gram, self.cross))
        check_sums(gram, cross, blocks)
        return replace(self, gram=gram, cross=cross)

    def multiplied(self, factor: float) -> Self:
        """Return the sums of targets `factor` times as large."""
        return replace(self, cross=self.cross * factor)

    @abstractmethod
    def _sum(self, blocks: RowBlocks, task: range) -> tuple[FloatArray, FloatArray]:
        """Return `gram` and `cross` over a range of blocks alone."""


class Moments(RowSums):
    """The sums `Σ w a aᵀ` and `Σ w a zᵀ` with `a = (1, (x - shift) / unit)`.

    Attributes
    ----------
    shift : ndarray of shape (p,)
        Roughly the mean of the features, so that large offsets do not cost precision.
    unit : ndarray of shape (p,)
        Powers of two that keep the squares of very large and very small features in range; 1 for ordinary features.
    gram : ndarray of shape (p + 1, p + 1)
    cross : ndarray of shape (p + 1, d)
    """

    @classmethod
    def zeros(cls, shift: FloatArray, unit: FloatArray, n_outputs: int) -> Moments:
        """Return the moments of no rows."""
        size = len(shift) + 1
        return cls(shift, unit, np.zeros((size, size)), np.zeros((size, n_outputs)))

    @classmethod
    def for_rows_like(cls, block: Block, fit_intercept: bool) -> Moments:
        """Return the moments of no rows, with a shift and units that suit the rows of a block."""
        return cls.zeros(*cls.shift_and_unit(block, fit_intercept), block.targets.shape[1] if block.X.ndim == 2 else 1)

    @staticmethod
    def shift_and_unit(block: Block, fit_intercept: bool) -> tuple[FloatArray, FloatArray]:
        """Return a shift and units that suit the rows of a block."""
        with np.errstate(over="ignore", invalid="ignore"):
            X = block.long().X[:BLOCK_ROWS]
            shift = X.mean(axis=0) if fit_intercept else np.zeros(X.shape[1])
            if block.n_items is not None and (np.abs(shift) <= _NEAR_ZERO * X.std(axis=0)).all():
                shift = np.zeros_like(shift)
            sizes = np.abs(X - shift).max(axis=0)
            # The rounding of a constant feature is no size: in its unit, it would outweigh all others.
            sizes = np.where(sizes <= np.minimum(1.0, 8 * _EPS * np.abs(shift)), 0.0, sizes)
            return shift, tame_unit(sizes, bound=_TAME)

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(self.gram[0, 0])

    def sums(self, blocks: RowBlocks) -> tuple[FloatArray, FloatArray]:
        """Return the sums `gram` and `cross` over the rows of some blocks alone, with the shift and unit of these."""
        return self._sum(blocks, range(len(blocks)))

    def _sum(self, blocks: RowBlocks, task: range) -> tuple[FloatArray, FloatArray]:
        if isinstance(blocks.X, ColumnMatrix) and len(task) == len(blocks) and (self.unit == 1).all():
            found = column_sums(blocks, self.shift)
            if found is not None:
                return found
        part = Moments.zeros(self.shift, self.unit, self.cross.shape[1])
        # Reused memory stays in the cache; new arrays for every block would double the time.
        scratch: list[FloatArray] = []
        with np.errstate(over="ignore", invalid="ignore"):  # `plus` checks the sums
            for index in task:
                block = blocks.weighted(index)
                if block.n_items is None:
                    scratch = scratch or _scratch_like(block.X)
                    part._add_block(block, *scratch)
                else:
                    size = block.X[0].size
                    scratch = scratch or [np.empty((max(1, _SCRATCH // size), size))]
                    part._add_items(block, *scratch)
        return part.gram, part.cross

    def _add_block(self, block: Block, design: FloatArray, scratch: FloatArray) -> None:
        """Add a block whose targets are multiplied by their weights."""
        for first in range(0, len(block.X), len(design)):
            rows = slice(first, first + len(design))
            X, targets = block.X[rows], block.targets[rows]
            a = weighted = design[: len(X)]
            a[:, 0] = 1.0
            np.subtract(X, self.shift, out=a[:, 1:])
            if (self.unit != 1).any():
                a[:, 1:] /= self.unit
            if block.weights is not None:
                weighted = np.multiply(a, block.weights[rows, None], out=scratch[: len(X)])
            self.gram += weighted.T @ a
            self.cross += a.T @ targets

    def _add_items(self, block: Block, scratch: FloatArray) -> None:
        """Add a block with features per item (b, d, q), whose targets are multiplied by their weights.

        All items of a row have its weight. So the rows are scaled by the roots of the weights, in long lines of d·q
        numbers, and one product of the scaled features with themselves is the sum over rows and items.
        """
        n_rows, n_items, n_features = block.X.shape
        X, targets, roots = block.X.reshape(n_rows, -1), block.targets, np.ones(n_rows)
        if block.weights is not None:
            roots = np.sqrt(block.weights)
            targets = targets / np.where(roots > 0, roots, 1.0)[:, None]
        shift = np.tile(self.shift, n_items) if self.shift.any() else None
        unit = np.tile(self.unit, n_items) if (self.unit != 1).any() else None
        center = np.zeros(n_items * n_features)
        for first in range(0, n_rows, len(scratch)):
            rows = slice(first, first + len(scratch))
            lines, own = X[rows], scratch[: min(len(scratch), n_rows - first)]
            if shift is not None:
                lines = np.subtract(lines, shift, out=own)
            if unit is not None:
                lines = np.divide(lines, unit, out=own)
            if block.weights is not None:
                lines = np.multiply(lines, roots[rows, None], out=own)
            pairs = lines.reshape(-1, n_features)
            center += roots[rows] @ lines
            self.gram[1:, 1:] += pairs.T @ pairs
            self.cross[1:, 0] += targets[rows].ravel() @ pairs
        total = center.reshape(n_items, n_features).sum(axis=0)
        self.gram[0, 0] += n_items * (roots @ roots)
        self.gram[0, 1:] += total
        self.gram[1:, 0] += total
        self.cross[0, 0] += block.targets.sum()

    def solve(self, alpha: float, fit_intercept: bool) -> tuple[FloatArray, FloatArray]:
        """Return coefficients (p, d) and intercepts (d,) that minimise the weighted mean square plus the ridge.

        If there is no ridge and the features do not have full rank, the coefficients have least norm.
        """
        mean, level, gram, cross = self.centered(fit_intercept)
        ridge = ridge_in(self.unit, alpha, self.total_weight, np.diag(gram))
        coefficients = solve_semidefinite(gram + np.diag(ridge), cross, self.unit)
        return coefficients, level - mean @ coefficients if fit_intercept else level

    def ridges(self) -> Callable[[float], tuple[FloatArray, FloatArray]]:
        """Return a function that solves for any ridge, with an intercept, after one decomposition."""
        mean, level, gram, cross = self.centered(fit_intercept=True)
        exact = bool((self.unit == 1).all())
        if exact:
            values, vectors = eigh(gram)
            projected = vectors.T @ cross

        def solved(alpha: float) -> tuple[FloatArray, FloatArray]:
            if alpha == 0 or not exact:
                return self.solve(alpha, fit_intercept=True)
            coefficients = vectors @ (projected / (np.maximum(values, 0.0) + alpha * self.total_weight)[:, None])
            return coefficients, level - mean @ coefficients

        return solved

    def whitened(self, fit_intercept: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the means of the features, a basis (p, q) of directions of mean square one, and its inverse (q, p)."""
        center, _, gram, _ = self.centered(fit_intercept)
        covariance = gram / self.total_weight
        basis = whiten(covariance, self.unit)
        return center, basis, (basis * self.unit[:, None]).T @ covariance * self.unit

    def centered(self, fit_intercept: bool) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the means of the features and of the targets, and the sums of products about these means, in `unit`.

        Without an intercept, nothing is centred and the means are zero.
        """
        weight = self.total_weight
        gram, cross = self.gram[1:, 1:], self.cross[1:]
        mean, level = np.zeros(len(self.shift)), np.zeros(cross.shape[1])
        if fit_intercept:
            center, level = self.gram[1:, 0] / weight, self.cross[0] / weight
            mean = self.shift + center * self.unit
            gram = gram - weight * np.outer(center, center)
            cross = cross - weight * np.outer(center, level)
            constant = is_constant(np.diag(gram), center, self.shift / self.unit, weight)
            gram[constant], gram[:, constant], cross[constant] = 0.0, 0.0, 0.0
        return mean, level, gram, cross


def _scratch_like(X: FloatArray) -> list[FloatArray]:
    """Return memory for two designs (BLOCK_ROWS, p + 1) in the order of the features, by rows or by columns."""
    n_columns = X.shape[1] + 1
    if X.strides[0] < X.strides[1]:  # columns of a file: a third faster than turning them into rows
        return list(np.empty((2, n_columns, BLOCK_ROWS)).transpose(0, 2, 1))
    return list(np.empty((2, BLOCK_ROWS, n_columns)))


def check_sums(gram: FloatArray, cross: FloatArray, blocks: Blocks) -> None:
    """Raise if the sums over the blocks are not finite: name the entry of the features that is not, if there is one."""
    if np.isfinite(gram).all() and np.isfinite(cross).all():
        return
    if blocks.in_memory is not None:  # other rows are checked as they are read
        check_finite(np.asarray(blocks.in_memory.X), name="X")
    raise ValueError("the products of features and targets overflow float64. Scale the features or the costs.")


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
