"""Log-linear models of many outputs: passes over row blocks, with a Newton step for all outputs after each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decidewise.checks import FloatArray
from decidewise.models.blocks import Block, Blocks, map_tasks
from decidewise.models.deviances import Deviance
from decidewise.models.moments import Moments, whiten
from decidewise.models.newton import BoolArray, Derivatives, IntArray, minimize

# Entries of the Hessians in memory at once (128 MB): more outputs are fitted in groups.
_HESSIAN_ENTRIES = 2**24
# Entries of targets, and pairs of directions, that are worked on at once: few enough for the second-level cache.
_PIECE_ENTRIES = 2**15
_FEWEST_ROWS = 32
_PAIRS = 512


class LinearFit(NamedTuple):
    """Coefficients (p, d) and intercepts (d,); per output, the passes that it took and whether it converged."""

    coefficients: FloatArray
    intercepts: FloatArray
    n_iter: IntArray
    converged: BoolArray


def fit_log_linear(
    blocks: Blocks,
    moments: Moments,
    deviance: Deviance,
    *,
    alpha: float,
    fit_intercept: bool,
    start: tuple[FloatArray, FloatArray] | None,
    max_iter: int,
    tol: float,
) -> LinearFit:
    """Minimise the penalised mean deviance of the predictions `exp(X @ b + a)`, for each output.

    Parameters
    ----------
    blocks : Blocks
        With targets that the deviance admits.
    moments : Moments
        Those of the blocks; no output has mean zero.
    start : (coefficients (p, d), intercepts (d,)), optional
        By default the mean of each output, whatever the features.
    """
    coordinates = Coordinates.of(moments, fit_intercept)
    means = moments.cross[0] / moments.total_weight
    objective = Objective(blocks, deviance, coordinates, means, alpha, moments.total_weight)
    parameters = coordinates.enter(*start) if start else np.outer(coordinates.one, np.log(means))
    n_iter, converged = np.zeros(len(means), dtype=np.int64), np.zeros(len(means), dtype=bool)
    n_groups = math.ceil(len(means) * len(parameters) ** 2 / _HESSIAN_ENTRIES) or 1
    for group in np.array_split(np.arange(len(means)), n_groups):
        parameters[:, group], n_iter[group], converged[group] = minimize(
            objective.of(group), parameters[:, group], max_iter=max_iter, tol=tol
        )
    return LinearFit(*coordinates.leave(parameters), n_iter, converged)


@dataclass(frozen=True)
class Coordinates:
    """The features as q uncorrelated directions of mean square one, the first of them 1 where there is an intercept.

    Newton's steps do not depend on coordinates, but rounding does, and what counts as a long step. Features that are
    redundant are left out here, for all outputs and steps, in favour of the coefficients of least norm.

    Attributes
    ----------
    one : ndarray of shape (q,)
        The linear predictor that is closest to 1.
    """

    center: FloatArray
    covariance: FloatArray
    basis: FloatArray
    one: FloatArray
    fit_intercept: bool

    @classmethod
    def of(cls, moments: Moments, fit_intercept: bool) -> Coordinates:
        """Return the coordinates for the rows that the moments sum up."""
        center, _, gram, _ = moments.centered(fit_intercept)
        covariance = gram / moments.total_weight
        basis = whiten(covariance)
        if fit_intercept:
            one = np.eye(1, basis.shape[1] + 1)[0]
        else:
            one = basis.T @ moments.gram[1:, 0] / moments.total_weight
        return cls(moments.shift + center, covariance, basis, one, fit_intercept)

    def design(self, X: FloatArray) -> FloatArray:
        """Return the rows of X (b, p) as columns (q, b)."""
        directions = self.basis.T @ (X - self.center).T
        return np.vstack([np.ones(len(X)), directions]) if self.fit_intercept else directions

    def enter(self, coefficients: FloatArray, intercepts: FloatArray) -> FloatArray:
        """Return the parameters (q, d) of a model."""
        slopes = self.basis.T @ self.covariance @ coefficients
        return np.vstack([intercepts + self.center @ coefficients, slopes]) if self.fit_intercept else slopes

    def leave(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients (p, d) and intercepts (d,) of parameters (q, d)."""
        if not self.fit_intercept:
            return self.basis @ parameters, np.zeros(parameters.shape[1])
        coefficients = self.basis @ parameters[1:]
        return coefficients, parameters[0] - self.center @ coefficients

    @property
    def ridge(self) -> FloatArray:
        """The matrix (q, q) of the squared norm of the coefficients."""
        norm = self.basis.T @ self.basis
        return np.pad(norm, ((1, 0), (1, 0))) if self.fit_intercept else norm


class Objective:
    """The penalised mean deviance as a function of the parameters.

    Targets are divided by their means, which divides the deviance by `means**(2 - power)`: values, and what counts as
    converged, do not depend on the units of an output.
    """

    def __init__(
        self,
        blocks: Blocks,
        deviance: Deviance,
        coordinates: Coordinates,
        means: FloatArray,
        alpha: float,
        total_weight: float,
    ) -> None:
        self.blocks, self.deviance, self.coordinates = blocks, deviance, coordinates
        self.means, self.total_weight = means, total_weight
        self.ridge = coordinates.ridge
        self.upper = np.triu_indices(len(self.ridge))
        self.alphas = alpha * means ** (deviance.power - 2) if alpha else np.zeros(len(means))

    def of(self, group: IntArray) -> Callable[[FloatArray, IntArray], Derivatives]:
        """Return the objective of some outputs, which are then counted among themselves."""
        return lambda parameters, outputs: self(parameters, group[outputs])

    def __call__(self, parameters: FloatArray, outputs: IntArray) -> Derivatives:
        """Evaluate the objective of k outputs at parameters (q, k) in one pass over the rows."""
        size, k = parameters.shape
        sums = sum(map_tasks(lambda task: self._sum(task, parameters, outputs), len(self.blocks)))
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

    def _sum(self, task: range, parameters: FloatArray, outputs: IntArray) -> FloatArray:
        """Return sums over blocks: the values, below them the gradients, then the upper triangles of the Hessians."""
        size, k = parameters.shape
        sums = np.zeros((1 + size + size * (size + 1) // 2, k))
        n_rows = max(_FEWEST_ROWS, _PIECE_ENTRIES // k)
        for index in task:
            X, targets, weights = _rows_that_count(self.blocks[index])
            for first in range(0, len(X), n_rows):
                rows = slice(first, first + n_rows)
                piece = Block(X[rows], targets[rows, outputs], None if weights is None else weights[rows])
                self._add_piece(sums, piece, parameters, self.means[outputs])
        return sums

    def _add_piece(self, sums: FloatArray, piece: Block, parameters: FloatArray, means: FloatArray) -> None:
        design, weights = self.coordinates.design(piece.X), piece.weights
        # Too long a step may overflow; its value is then infinite or not a number, and the step is taken back.
        with np.errstate(over="ignore", invalid="ignore"):
            predictor = design.T @ parameters - np.log(means)
            values, slopes, curvatures = self.deviance.expand(piece.targets / means, predictor)
            if weights is not None:
                slopes, curvatures = slopes * weights[:, None], curvatures * weights[:, None]
            size = len(design)
            sums[0] += values.sum(axis=0) if weights is None else weights @ values
            sums[1 : 1 + size] += design @ slopes
            # The Hessians of all outputs are one matrix product with the products of pairs of directions.
            first, second = self.upper
            for start in range(0, len(first), _PAIRS):
                pairs = slice(start, start + _PAIRS)
                sums[1 + size :][pairs] += (design[first[pairs]] * design[second[pairs]]) @ curvatures


def _rows_that_count(block: Block) -> Block:
    """Leave out rows of weight zero, whose targets a deviance may not admit."""
    X, targets, weights = block
    if weights is None or weights.all():
        return block
    rows = weights > 0
    return Block(X[rows], targets[rows], weights[rows])
