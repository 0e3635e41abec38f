"""LODL, locally optimised decision losses: for each row a weighted squared error, fitted to sampled regrets.

Shah, Wang, Wilder, Perrault & Tambe, "Decision-Focused Learning without Differentiable Optimization: Learning Locally
Optimized Decision Losses", NeurIPS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.optimize import nnls

from decidewise.kit.checks import FloatArray, as_flag
from decidewise.kit.errors import NotForProblemError
from decidewise.kit.machine import one_library_thread
from decidewise.kit.progress import tracked
from decidewise.losses.base import Loss, count, not_negative, parameter, positive
from decidewise.losses.parts.target import Target, ValueAndGrad, row_dot, solve_labels
from decidewise.problems.contract import Problem
from decidewise.problems.views import n_predicted

# The largest number of sampled costs in memory at a time: they stay in the cache of the processor.
_MOST_ENTRIES = 2**18
# A column of unit length whose squared distance to the span of others is below this depends on them.
_DEPENDENT = 1e-8


@dataclass(frozen=True)
class WeightedTarget(Target):
    """Costs, and the weights `(n, d)` of errors above and below each of them."""

    above: FloatArray
    below: FloatArray


class WeightedSquares(Loss):
    """The loss `mean_j a_j (p_j - c_j)²` with the weights of a `WeightedTarget`; a subclass finds them in `label`."""

    target_type = WeightedTarget
    gradient = "exact"
    solves = False

    def evaluate(self, prediction: FloatArray, target: WeightedTarget, rng: np.random.Generator) -> ValueAndGrad:
        error = prediction - target.costs
        above = np.maximum(error, 0)
        weighted = (target.above * above + target.below * (error - above)) / error.shape[1]
        return row_dot(weighted, error), 2 * weighted


@dataclass(frozen=True)
class Lodl(WeightedSquares):
    """The loss `mean_j a_j (p_j - c_j)²`, where the weights `a` of each row fit the regrets of predictions near `c`.

    For every row, `n_samples` predictions `c + σ s ξ` are drawn, with `ξ` normal and `s` the standard deviation of each
    cost over the rows. The weights are the least-squares fit of the loss to their regrets, at least `floor`.

    Parameters
    ----------
    n_samples : int
        Predictions to draw per row; each takes one solve, before training. At least the number of weights.
    sigma : float
        The size `σ` of the deviations, in standard deviations of each cost.
    directed : bool
        Whether errors above and below a cost have weights of their own.
    floor : float
        The smallest weight, relative to the mean weight of the row.

    Notes
    -----
    The original code fits the weights, and moves the centre `c`, by 100 steps of Adam. The loss is linear in the
    weights, so non-negative least squares finds the best ones exactly. It is not Fisher consistent: weights by
    coordinate move the minimiser to `E[a c]/E[a]`, while the single weight per row of WISE keeps the direction.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Lodl(n_samples=2000)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 1.5, 9.0], [2.0, 1.0, 3.0]])
    >>> bool(target.above[0, 2] < target.above[0, 0])  # the third item is too expensive to matter in the first row
    True
    """

    n_samples: int = count(500)
    sigma: float = positive(1.0)
    directed: bool = parameter(False, as_flag)
    floor: float = not_negative(1e-3)

    def label(
        self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator
    ) -> WeightedTarget:
        n, d = costs.shape
        n_weights = n_predicted(problem) * (2 if self.directed else 1)
        if self.n_samples < n_weights:
            raise NotForProblemError(
                f"Lodl fits {n_weights} weights per row, and {self.n_samples} samples do not determine them. Set "
                f"n_samples to {n_weights} or more; several times as many are better."
            )
        scale = self.sigma * spread_of(costs)
        best = row_dot(costs, solve_labels(problem, costs))
        weights = np.empty((n, 2, d))
        part = max(1, _MOST_ENTRIES // (self.n_samples * d))
        for first in tracked(range(0, n, part), "Fitting local losses"):
            rows = np.arange(first, min(first + part, n))
            target = Target(problem.take(rows), costs[rows])
            errors = target.predicted_only(rng.standard_normal((len(rows), self.n_samples, d)))
            errors *= scale
            sampled = (errors + costs[rows, None]).reshape(-1, d)
            decisions = target.minimize(sampled, np.repeat(np.arange(len(rows)), self.n_samples))
            regrets = np.einsum("bd,bsd->bs", target.costs, decisions.reshape(errors.shape)) - best[rows, None]
            with one_library_thread():  # for matrices so small, several would wait for each other
                weights[rows] = self._fit(errors, regrets)
        return WeightedTarget(problem, costs, weights[:, 0], weights[:, 1])

    def _fit(self, errors: FloatArray, regrets: FloatArray) -> FloatArray:
        """Return the weights above and below (b, 2, d) that fit the regrets (b, s) of errors (b, s, d) best."""
        b, _, d = errors.shape
        squares = errors**2 / d
        if self.directed:
            squares = np.concatenate([np.where(errors > 0, squares, 0.0), np.where(errors > 0, 0.0, squares)], axis=2)
        size = np.sqrt(np.einsum("bsk,bsk->bk", squares, squares))
        size[size == 0] = 1.0  # the known part has no error
        squares /= size[:, None]
        weights = np.array([nonnegative_fit(*row) for row in zip(squares, regrets, strict=True)]) / size
        least = self.floor * np.maximum(weights.mean(axis=1, keepdims=True), np.finfo(float).tiny)
        weights = np.maximum(weights, least).reshape(b, -1, d)
        return np.broadcast_to(weights, (b, 2, d))


def nonnegative_fit(design: FloatArray, values: FloatArray) -> FloatArray:
    """Return the weights (k,), none negative, for which `design @ weights` is nearest to the values (s,).

    Least squares needs the samples only through a triangular factor, which is far smaller: that of Cholesky, or where
    columns depend on each other that of QR.
    """
    factor, dependent = dpotrf(design.T @ design, lower=True)
    if dependent or (np.diagonal(factor) ** 2).min() < _DEPENDENT:
        Q, R = np.linalg.qr(design)
        return np.asarray(nnls(R, Q.T @ values)[0])
    aim, _ = dtrtrs(factor, values @ design, lower=True)
    return np.asarray(nnls(np.tril(factor).T, aim)[0])


def spread_of(costs: FloatArray) -> FloatArray:
    """Return the standard deviation (d,) of each cost; of a cost that is constant, that of a typical one."""
    spread = costs.std(axis=0)
    typical = spread[spread > 0].mean() if spread.any() else np.abs(costs).mean()
    return np.where(spread > 0, spread, typical if typical > 0 else 1.0)
