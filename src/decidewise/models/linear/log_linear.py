"""Log-linear models of many outputs: each pass over the row blocks gives one Newton step for every output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.machine import one_library_thread
from decidewise.models.linear.blocks import Blocks, RowBlocks
from decidewise.models.linear.deviances import Deviance
from decidewise.models.linear.moments import Moments, WideMoments
from decidewise.models.linear.newton import Curvature, Derivatives, Preconditioner, minimize
from decidewise.models.linear.units import check_ridge
from decidewise.rows.passes import Passes
from decidewise.rows.source import Sums

# Entries of the Hessians in memory at once (128 MB): if there are more, the outputs are fitted in groups.
_HESSIAN_ENTRIES = 2**24
# Entries of targets, and pairs of directions, that are processed at once: few enough for the second-level cache.
_ENTRIES = 2**15
_MIN_ROWS = 32
_PAIRS = 512
# From this many directions on, products with the Hessians take less time than the Hessians.
_MANY_DIRECTIONS = 20
# They need the rows in memory: this many entries of the design (32 MB).
_DESIGN_ENTRIES = 2**22
# This part of the curvature of a perfect gamma fit keeps the preconditioner positive definite.
_LEAST_CURVATURE = 1e-3
# A block takes several milliseconds, so threads pay off even for few blocks.
BLOCKS_PER_TASK = 4
# This fraction of the mean target is added to each target before its logarithm is taken.
_ABOVE_ZERO = 0.03


class LinearFit(NamedTuple):
    """Coefficients (p, d) and intercepts (d,); for each output, the number of passes and whether it converged."""

    coefficients: FloatArray
    intercepts: FloatArray
    n_iter: IntArray
    converged: BoolArray


def fit_log_linear(
    blocks: Blocks,
    moments: Moments | WideMoments,
    deviance: Deviance,
    model: Any,
    start: tuple[FloatArray, FloatArray] | None,
) -> Passes[LinearFit]:
    """Minimise the penalised mean deviance of the predictions `exp(X @ b + a)`, for each output.

    Parameters
    ----------
    blocks : Blocks
        All targets must be admitted by the deviance.
    moments : Moments
        The moments of the blocks; no output may have mean zero.
    model : GeneralizedLinear
        Whose `alpha`, `fit_intercept`, `max_iter` and `tol` count.
    start : (coefficients (p, d), intercepts (d,)), optional
        By default, least squares on the logarithms of the targets (plus 3 % of their mean, since some may be zero).
    """
    coordinates = Coordinates.of(moments, model.fit_intercept)
    objective = Objective(blocks, moments, coordinates, deviance, model.alpha)
    parameters = (yield from objective.start()) if start is None else coordinates.enter(*start)
    size, n_outputs = parameters.shape
    n_iter, converged = np.zeros(n_outputs, dtype=np.int64), np.zeros(n_outputs, dtype=bool)
    n_groups = 1 if objective.is_wide else max(1, math.ceil(n_outputs * size**2 / _HESSIAN_ENTRIES))
    for group in np.array_split(np.arange(n_outputs), n_groups):
        parameters[:, group], n_iter[group], converged[group] = yield from minimize(
            objective.of(group), parameters[:, group], max_iter=model.max_iter, tol=model.tol
        )
    return LinearFit(*coordinates.leave(parameters), n_iter, converged)


@dataclass(frozen=True)
class Coordinates:
    """The features as q uncorrelated directions of mean square one; with an intercept, the first is constant 1.

    Newton's steps do not depend on the coordinates, but rounding and the limit on the length of a step do. Redundant
    directions are removed here once for all outputs and steps, so that the coefficients have least norm.
    """

    center: FloatArray
    basis: FloatArray
    inverse: FloatArray
    fit_intercept: bool

    @classmethod
    def of(cls, moments: Moments | WideMoments, fit_intercept: bool) -> Coordinates:
        """Return the coordinates for the rows of the moments."""
        return cls(*moments.whitened(fit_intercept), fit_intercept)

    def design(self, X: FloatArray) -> FloatArray:
        """Return the rows of X (b, p) in these coordinates, as columns (q, b)."""
        directions = self.basis.T @ (X - self.center).T
        return np.vstack([np.ones(len(X)), directions]) if self.fit_intercept else directions

    def enter(self, coefficients: FloatArray, intercepts: FloatArray) -> FloatArray:
        """Return the parameters (q, d) in these coordinates of coefficients (p, d) and intercepts (d,)."""
        slopes = self.inverse @ coefficients
        return np.vstack([intercepts + self.center @ coefficients, slopes]) if self.fit_intercept else slopes

    def leave(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients (p, d) and intercepts (d,) of parameters (q, d)."""
        if not self.fit_intercept:
            return self.basis @ parameters, np.zeros(parameters.shape[1])
        coefficients = self.basis @ parameters[1:]
        return coefficients, parameters[0] - self.center @ coefficients

    @property
    def ridge(self) -> FloatArray:
        """The matrix (q, q) of the quadratic form that is the squared norm of the coefficients."""
        with np.errstate(over="ignore", invalid="ignore"):
            norm = self.basis.T @ self.basis
        return np.pad(norm, ((1, 0), (1, 0))) if self.fit_intercept else norm


class Piece(NamedTuple):
    """Rows of positive weight: design (q, b), targets (b, d) divided by their means, weights (b,) or None for ones."""

    design: FloatArray
    targets: FloatArray
    weights: FloatArray | None


def _joined(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    designs, targets, weights = zip(*pieces, strict=True)
    given = None if weights[0] is None else np.concatenate(weights)
    return Piece(np.hstack(designs), np.vstack(targets), given)


class Objective:
    """The penalised mean deviance as a function of the parameters.

    Targets are divided by their means, which divides the deviance by `means**(2 - power)`. So neither the values nor
    the test of convergence depend on the units of an output.
    """

    def __init__(
        self,
        blocks: Blocks,
        moments: Moments | WideMoments,
        coordinates: Coordinates,
        deviance: Deviance,
        alpha: float,
    ) -> None:
        self.blocks, self.coordinates, self.deviance = blocks, coordinates, deviance
        self.total_weight = moments.total_weight
        self.means = moments.cross[0] / self.total_weight
        self.only: Piece | None = None
        self.is_wide, rows = self._is_wide(), blocks.in_memory
        if rows is not None and (len(rows) == 1 or self.is_wide):
            # Saves preparing it again in every pass.
            self.only = _joined([self._piece(rows, index) for index in range(len(rows))])
        self.near: Preconditioner | None = None
        self.alphas = alpha * np.clip(self.means, 1e-100, 1e100) ** (deviance.power - 2)
        self.ridge = coordinates.ridge if alpha > 0 else np.zeros_like(coordinates.ridge)
        # The directions have mean square one, so the deviance has a curvature of about one in each.
        strengths = self.alphas.min() * np.diag(self.ridge)[coordinates.fit_intercept :]
        check_ridge(alpha, strengths, np.ones_like(strengths))
        self.upper = np.triu_indices(len(self.ridge))

    def _is_wide(self) -> bool:
        """Whether products with the Hessians replace them: many directions, rows in memory, a convex deviance."""
        size, rows = len(self.coordinates.ridge), self.blocks.in_memory
        if rows is None or size < _MANY_DIRECTIONS or self.deviance.power < 1:
            return False
        return len(rows) == 1 or len(rows) * rows[0].X[..., 0].size * size <= _DESIGN_ENTRIES

    def start(self) -> Passes[FloatArray]:
        """Return the parameters (q, d) of least squares on logarithms, from one pass over the rows."""
        return (yield from self._sum_up(self._sum_logarithms)) / self.total_weight

    def of(self, group: IntArray) -> Callable[[FloatArray, IntArray], Passes[Derivatives]]:
        """Return the objective of a group of outputs, which are numbered within the group."""
        return lambda parameters, outputs: self(parameters, group[outputs])

    def __call__(self, parameters: FloatArray, outputs: IntArray) -> Passes[Derivatives]:
        """Evaluate the objective of k outputs at parameters (q, k) in one pass over the rows."""
        if self.is_wide:
            return self._evaluate_wide(parameters, outputs)
        size, k = parameters.shape
        sums = yield from self._sum_up(partial(self._sum_expansions, parameters=parameters, outputs=outputs))
        values, gradients, upper = np.split(sums / self.total_weight, [1, 1 + size])
        hessians = np.empty((k, size, size))
        first, second = self.upper
        hessians[:, first, second] = hessians[:, second, first] = upper.T
        alphas, pull = self.alphas[outputs], self.ridge @ parameters
        return Derivatives(
            values[0] + 0.5 * alphas * np.einsum("qk,qk->k", parameters, pull),
            gradients + alphas * pull,
            hessians + alphas[:, None, None] * self.ridge,
        )

    def _evaluate_wide(self, parameters: FloatArray, outputs: IntArray) -> Derivatives:
        """Evaluate the objective on rows that are all in memory, with products in place of Hessians."""
        assert self.only is not None
        design, targets, weights = self.only
        targets = targets if len(outputs) == len(self.means) else targets[:, outputs]
        shares = (np.ones(len(targets)) if weights is None else weights) / self.total_weight
        alphas, pull = self.alphas[outputs], self.ridge @ parameters
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"), one_library_thread():
            predictor = design.T @ parameters - np.log(self.means[outputs])
            values, slopes, curvatures = self.deviance.expand(targets, predictor)
            slopes *= shares[:, None]
            curvatures *= shares[:, None]
            gradients = design @ slopes + alphas * pull
        if self.near is None:  # from the start of the fit: any matrix like the Hessians will do
            mean = curvatures.mean(axis=1)
            likely = mean + _LEAST_CURVATURE * shares if np.isfinite(mean).all() else shares
            self.near = Preconditioner.of((design * likely) @ design.T, self.ridge)
        return Derivatives(
            shares @ values + 0.5 * alphas * np.einsum("qk,qk->k", parameters, pull),
            gradients,
            Curvature(design, curvatures, alphas, self.ridge, self.near),
        )

    def _sum_up(self, work: Callable[[Iterable[Piece]], FloatArray]) -> Passes[FloatArray]:
        """Return the sum of the results of `work` on all rows, some pieces of them at a time."""

        def on_one_thread(blocks: RowBlocks, task: range) -> Sums:
            with one_library_thread():  # also for a single task: its matrices are too small for several threads
                return (work(self._piece(blocks, index) for index in task),)

        if self.only is not None:
            with one_library_thread():
                return work([self.only])
        return (yield from self.blocks.sum(on_one_thread, per_task=BLOCKS_PER_TASK))[0]

    def _piece(self, blocks: RowBlocks, index: int) -> Piece:
        """Return a block in the form that the objective needs."""
        X, targets, weights = blocks[index].long()
        if weights is not None and not weights.all():
            # Rows of weight zero may have targets that the deviance does not admit, or extreme features.
            rows = weights > 0
            X, targets, weights = X[rows], targets[rows], weights[rows]
        return Piece(self.coordinates.design(X), targets / self.means, weights)

    def _sum_logarithms(self, pieces: Iterable[Piece]) -> FloatArray:
        sums = np.zeros((len(self.ridge), len(self.means)))
        level = np.log(self.means / (1 + _ABOVE_ZERO))
        for design, targets, weights in self._rows(pieces, np.arange(len(self.means))):
            sums += (design if weights is None else design * weights) @ (np.log(targets + _ABOVE_ZERO) + level)
        return sums

    def _sum_expansions(self, pieces: Iterable[Piece], parameters: FloatArray, outputs: IntArray) -> FloatArray:
        """Return sums over blocks, stacked: the values, the gradients, the upper triangles of the Hessians."""
        size, k = parameters.shape
        sums = np.zeros((1 + size + len(self.upper[0]), k))
        level = np.log(self.means[outputs])
        # A step that is too long may overflow; its value is then infinite or NaN, and the step is rejected.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for design, targets, weights in self._rows(pieces, outputs):
                predictor = design.T @ parameters
                predictor -= level
                values, slopes, curvatures = self.deviance.expand(targets, predictor)
                if weights is not None:
                    slopes, curvatures = slopes * weights[:, None], curvatures * weights[:, None]
                sums[0] += values.sum(axis=0) if weights is None else weights @ values
                sums[1 : 1 + size] += design @ slopes
                sums[1 + size :] += self._sum_curvatures(design, curvatures)
        return sums

    def _sum_curvatures(self, design: FloatArray, curvatures: FloatArray) -> FloatArray:
        """Return the upper triangles (q(q + 1)/2, k) of the Hessians of rows with curvatures (b, k)."""
        first, second = self.upper
        if curvatures.shape[1] <= len(design):
            # One product for each output; with more outputs, the products of pairs below cost less.
            return np.array([((design * own) @ design.T)[first, second] for own in curvatures.T]).T
        # The Hessians of all outputs are one matrix product with the products of pairs of directions.
        pieces = (slice(start, start + _PAIRS) for start in range(0, len(first), _PAIRS))
        return np.vstack([(design[first[pairs]] * design[second[pairs]]) @ curvatures for pairs in pieces])

    def _rows(self, pieces: Iterable[Piece], outputs: IntArray) -> Iterator[Piece]:
        """Yield the rows of some pieces, with the targets of the given outputs, a few rows at a time."""
        n_rows = max(_MIN_ROWS, _ENTRIES // len(outputs))
        everything = len(outputs) == len(self.means)
        for design, targets, weights in pieces:
            for first in range(0, len(targets), n_rows):
                rows = slice(first, first + n_rows)
                some = targets[rows] if everything else targets[rows, outputs]
                yield Piece(design[:, rows], some, None if weights is None else weights[rows])
