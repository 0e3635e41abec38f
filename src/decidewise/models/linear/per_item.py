"""Intercepts or coefficients of each item beside the shared ones, fitted exactly.

The model of item j is `a_j + x·b_j`. With own intercepts, all `b_j` are the same `b`. With own coefficients,
`b_j = b + δ_j` with the ridge `alpha/2 (‖b‖² + Σ_j ‖δ_j‖²)`, which pulls the items towards each other. Minimised over
`b`, that is `b = Σ_j b_j / (d + 1)`, the ridge is `alpha/2 (Σ_j ‖b_j‖² - ‖Σ_j b_j‖² / (d + 1))`. Without a ridge each
item is fitted by itself. Intercepts are never penalised.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.models.linear.blocks import Block, Blocks, RowBlocks
from decidewise.models.linear.deviances import Deviance
from decidewise.models.linear.log_linear import BLOCKS_PER_TASK, Coordinates, LinearFit
from decidewise.models.linear.moments import Moments, RowSums, ridge_in
from decidewise.models.linear.newton import Derivatives, minimize
from decidewise.models.linear.units import solve_semidefinite
from decidewise.rows.passes import Passes
from decidewise.rows.source import Sums

PerItem = Literal["none", "intercept", "coefficients"]

# Added to Hessians, whose directions have a curvature of about one: a feature that is constant for an item gets no
# effect there, beside its intercept.
_LEAST_CURVATURE = 1e-10


class ItemMoments(RowSums):
    """The sums of `Moments` for each of d items, over the rows.

    Attributes
    ----------
    shift, unit : ndarrays of shape (q,)
    gram : ndarray of shape (d, q + 1, q + 1)
    cross : ndarray of shape (d, q + 1)
    """

    @classmethod
    def for_rows_like(cls, block: Block, fit_intercept: bool) -> ItemMoments:
        """Return the moments of no rows, with a shift and units that suit the rows of a block (b, d, q)."""
        alike = Moments.for_rows_like(block, fit_intercept)
        n_items, size = block.X.shape[1], len(alike.shift) + 1
        return cls(alike.shift, alike.unit, np.zeros((n_items, size, size)), np.zeros((n_items, size)))

    def _sum(self, blocks: RowBlocks, task: range) -> tuple[FloatArray, FloatArray]:
        gram, cross = np.zeros_like(self.gram), np.zeros_like(self.cross)
        with np.errstate(over="ignore", invalid="ignore"):  # `plus` checks the sums
            for index in task:
                block = blocks.weighted(index)
                design = np.concatenate([np.ones((*block.X.shape[:2], 1)), (block.X - self.shift) / self.unit], axis=2)
                weighted = design if block.weights is None else design * block.weights[:, None, None]
                gram += weighted.transpose(1, 2, 0) @ design.transpose(1, 0, 2)
                cross += (design.transpose(1, 2, 0) @ block.targets.T[:, :, None])[:, :, 0]
        return gram, cross

    @property
    def total_weight(self) -> float:
        """The sum of the weights over rows and items."""
        return float(self.gram[:, 0, 0].sum())

    def solve(self, alpha: float, fit_intercept: bool, per_item: PerItem) -> tuple[FloatArray, FloatArray]:
        """Return coefficients (q, 1), or (q, d) if each item has its own, and intercepts (d,)."""
        each = [
            Moments(self.shift, self.unit, gram, cross[:, None]).centered(fit_intercept)
            for gram, cross in zip(self.gram, self.cross, strict=True)
        ]
        means, levels, grams, crosses = (np.stack(parts) for parts in zip(*each, strict=True))
        ridge = ridge_in(self.unit, alpha, self.total_weight, np.diag(grams.sum(axis=0)))
        if per_item == "intercept":
            coefficients = solve_semidefinite(grams.sum(axis=0) + np.diag(ridge), crosses.sum(axis=0), self.unit)
        elif alpha == 0:
            fits = [solve_semidefinite(gram, cross, self.unit) for gram, cross in zip(grams, crosses, strict=True)]
            coefficients = np.hstack(fits)
        else:
            coefficients = _pooled(grams, crosses[:, :, 0], ridge).T / self.unit[:, None]
        intercepts = levels[:, 0] - (means * coefficients.T).sum(axis=1) if fit_intercept else np.zeros(len(means))
        return coefficients, intercepts


def _pooled(grams: FloatArray, crosses: FloatArray, ridge: FloatArray) -> FloatArray:
    """Return the coefficients (d, q) of least squares with a ridge that pulls the items towards each other.

    `(G_j + R) b_j = r_j + R s` with the shared part `s = Σ_j b_j / (d + 1)`, which solves a system of q equations.
    """
    inverses = np.linalg.inv(grams + np.diag(ridge))
    alone = (inverses @ crosses[:, :, None])[:, :, 0]
    pull = inverses * ridge
    n_items = len(grams)
    shared = np.linalg.solve((n_items + 1) * np.eye(len(ridge)) - pull.sum(axis=0), alone.sum(axis=0))
    return alone + pull @ shared


def fit_log_linear_items(
    blocks: Blocks,
    moments: Moments,
    shared: LinearFit,
    deviance: Deviance,
    model: Any,
) -> Passes[LinearFit]:
    """Minimise the penalised mean deviance of `exp(a_j + x·b_j)`, from the shared fit of a `GeneralizedLinear` on.

    Parameters
    ----------
    blocks : Blocks
        With features per item; all targets must be admitted by the deviance.
    moments : Moments
        Over all items.
    """
    coordinates = Coordinates.of(moments, model.fit_intercept)
    objective = ItemObjective(blocks, moments, coordinates, deviance, model.alpha, model.per_item)
    n_items, limits = objective.n_items, {"max_iter": model.max_iter, "tol": model.tol}
    start = np.repeat(coordinates.enter(shared.coefficients, shared.intercepts), n_items, axis=1)
    if model.per_item == "coefficients" and model.alpha == 0:
        objective.total_weight /= n_items  # each item by itself
        parameters, n_iter, converged = yield from minimize(objective.of_items, start, **limits)
    else:
        found = yield from minimize(objective.joint, objective.tie(start), **limits)
        parameters, n_iter, converged = objective.untie(found.parameters), found.n_iter, found.converged
    coefficients, intercepts = coordinates.leave(parameters)
    own = coefficients[:, :1] if model.per_item == "intercept" else coefficients
    return LinearFit(own, intercepts, n_iter, converged)


class ItemObjective:
    """The penalised mean deviance of models that differ by item, as a function of their parameters (q, d).

    `joint` takes the free parameters as one column: with own intercepts, the d intercepts and then the shared slopes;
    with own coefficients, all parameters of the first item, then of the second, and so on.
    """

    def __init__(
        self,
        blocks: Blocks,
        moments: Moments,
        coordinates: Coordinates,
        deviance: Deviance,
        alpha: float,
        per_item: PerItem,
    ) -> None:
        self.blocks, self.coordinates, self.deviance, self.per_item = blocks, coordinates, deviance, per_item
        self.total_weight = moments.total_weight
        self.mean = float(moments.cross[0, 0] / self.total_weight)
        self.alpha = alpha * np.clip(self.mean, 1e-100, 1e100) ** (deviance.power - 2)
        self.ridge = coordinates.ridge if alpha > 0 else np.zeros_like(coordinates.ridge)
        self.n_items = blocks.first().X.shape[1]

    def tie(self, parameters: FloatArray) -> FloatArray:
        """Return the free parameters (m, 1) of parameters (q, d)."""
        if self.per_item == "intercept":
            return np.concatenate([parameters[0], parameters[1:, 0]])[:, None]
        return parameters.T.reshape(-1, 1)

    def untie(self, free: FloatArray) -> FloatArray:
        """Return the parameters (q, d) of free parameters (m, 1)."""
        if self.per_item == "intercept":
            slopes = np.repeat(free[self.n_items :], self.n_items, axis=1)
            return np.vstack([free[: self.n_items].T, slopes])
        return free.reshape(self.n_items, -1).T

    def of_items(self, parameters: FloatArray, items: IntArray) -> Passes[Derivatives]:
        """Evaluate the deviance of each of k items at its parameters (q, k), in one pass over the rows."""
        return Derivatives(*(yield from self._expand(parameters, items)))

    def _expand(self, parameters: FloatArray, items: IntArray) -> Passes[tuple[FloatArray, FloatArray, FloatArray]]:
        size, k = parameters.shape
        work = partial(self._sum, parameters=parameters, items=items)
        (sums,) = yield from self.blocks.sum(work, per_task=BLOCKS_PER_TASK)
        sums = sums / self.total_weight
        hessians = sums[:, 1 + size :].reshape(k, size, size) + _LEAST_CURVATURE * np.eye(size)
        return sums[:, 0], sums[:, 1 : 1 + size].T, hessians

    def joint(self, free: FloatArray, _: IntArray) -> Passes[Derivatives]:
        """Evaluate the deviance of all items, and the ridge, at free parameters (m, 1)."""
        parameters = self.untie(free)
        size, d = parameters.shape
        values, gradients, hessians = yield from self._expand(parameters, np.arange(d))
        if self.per_item == "intercept":
            hessian = np.diag(np.concatenate([hessians[:, 0, 0], np.zeros(size - 1)]))
            hessian[:d, d:] = hessians[:, 0, 1:]
            hessian[d:, :d] = hessian[:d, d:].T
            hessian[d:, d:] = hessians[:, 1:, 1:].sum(axis=0)
            gradient = np.concatenate([gradients[0], gradients[1:].sum(axis=1)])
            penalty = np.zeros_like(hessian)
            penalty[d:, d:] = self.alpha * self.ridge[1:, 1:]
        else:
            hessian = np.zeros((d, size, d, size))
            hessian[np.arange(d), :, np.arange(d)] = hessians
            hessian = hessian.reshape(d * size, d * size)
            gradient = gradients.T.ravel()
            penalty = self.alpha * np.kron(np.eye(d) - 1 / (d + 1), self.ridge)
        pull = penalty @ free[:, 0]
        value = values.sum() + 0.5 * free[:, 0] @ pull
        return Derivatives(np.array([value]), (gradient + pull)[:, None], (hessian + penalty)[None])

    def _sum(self, blocks: RowBlocks, task: range, parameters: FloatArray, items: IntArray) -> Sums:
        """Return for each item the sums over rows: value, gradient and Hessian, in one line (k, 1 + q + q²)."""
        size, k = parameters.shape
        sums, level = np.zeros((k, 1 + size + size**2)), np.log(self.mean)
        # A step that is too long may overflow; its value is then infinite or NaN, and the step is rejected.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for index in task:
                X, targets, weights = blocks[index]
                if weights is not None and not weights.all():
                    # Rows of weight zero may have targets that the deviance does not admit, or extreme features.
                    X, targets, weights = X[weights > 0], targets[weights > 0], weights[weights > 0]
                flat = self.coordinates.design(X[:, items].reshape(-1, X.shape[2]))
                design = flat.T.reshape(len(X), k, size).transpose(1, 0, 2)
                predictor = (design @ parameters.T[:, :, None])[:, :, 0]
                values, slopes, curvatures = self.deviance.expand(targets[:, items].T / self.mean, predictor - level)
                if weights is not None:
                    values, slopes, curvatures = values * weights, slopes * weights, curvatures * weights
                sums[:, 0] += values.sum(axis=1)
                across = design.transpose(0, 2, 1)
                sums[:, 1 : 1 + size] += (across @ slopes[:, :, None])[:, :, 0]
                sums[:, 1 + size :] += (across @ (design * curvatures[:, :, None])).reshape(k, -1)
        return (sums,)
