"""EGL, efficient global losses: squared errors with weights that one network finds from the features of a row.

Shah, Wilder, Perrault & Tambe, "Leaving the Nest: Going Beyond Local Loss Functions for Predict-Then-Optimize",
AAAI 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import NotForProblemError
from decidewise.losses.base import count, not_negative, positive
from decidewise.losses.lodl import WeightedSquares, WeightedTarget, spread_of
from decidewise.losses.parts.small_network import SmallNetwork
from decidewise.losses.parts.target import Target, row_dot, solve_labels
from decidewise.problems.contract import Problem


@dataclass(frozen=True)
class Egl(WeightedSquares):
    """The loss `mean_j a_j(x) (p_j - c_j)²`, where the network `a` of the features `x` fits sampled regrets.

    `Lodl` fits the weights of each row to hundreds of regrets of that row. Here all rows share one network, so that
    each needs far fewer. The predictions whose regrets it is fitted to are those that training meets: of `n_samples`
    linear models of least squares, each trained from random coefficients for a random part of the way.

    Parameters
    ----------
    n_samples : int
        Half-trained models; each takes one solve per row, before training.
    n_hidden : int
        The width of both layers of the network; the public code has 4 layers of 500.
    n_steps : int
        Steps of Adam in the fit of the network.
    learning_rate : float
        Of these steps.
    floor : float
        The smallest weight, relative to the mean weight of the row.

    Notes
    -----
    It needs the features: `loss.prepare(problem, costs, X=X)`. Training then calls no solver. Like
    `Lodl`, the loss is not Fisher consistent. The public code shares its weights between the items of a row; here every
    cost has an output of its own, so that rows may have features of any kind.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], size=(60, 1))
    >>> costs = rng.normal([1.0, 1.2, 5.0], 0.3, size=(60, 3)) + np.where(X > 0, [0, 0, -4.0], [0, 0, 4.0])
    >>> target = Egl().prepare(TopK(3, 1, sense="min"), costs, X=X)
    >>> weights = target.above[:, 2] / target.above.sum(axis=1)
    >>> bool(weights[X[:, 0] > 0].min() > 2 * weights[X[:, 0] < 0].max())  # there the third item may be the best
    True
    """

    n_samples: int = count(30)
    n_hidden: int = count(32)
    n_steps: int = count(200)
    learning_rate: float = positive(1e-2)
    floor: float = not_negative(1e-3)

    requires = frozenset({"features"})

    def label(
        self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator
    ) -> WeightedTarget:
        """Solve for the regrets of half-trained models, and fit the network from features to weights."""
        inputs = _standardised(cast("FloatArray", X))  # `prepare` refuses to go on without them
        spread = spread_of(costs)
        best = row_dot(costs, solve_labels(problem, costs))
        plain = Target(problem, costs)
        squares, regrets = [], []
        for prediction in half_trained(inputs, costs, spread, self.n_samples, rng):
            errors = plain.predicted_only(prediction - costs)
            squares.append((errors / spread) ** 2 / costs.shape[1])
            regrets.append(row_dot(costs, solve_labels(problem, costs + errors)) - best)
        found = np.concatenate(regrets)
        if len(found) < costs.shape[1]:
            raise NotForProblemError(
                f"Egl fits {costs.shape[1]} weights, and {len(found)} regrets do not determine them. Pass more rows, "
                "or raise n_samples."
            )
        scale = float(found.mean()) or 1.0
        network = SmallNetwork.drawn(inputs.shape[1], self.n_hidden, rng, n_outputs=costs.shape[1]).fitted(
            np.tile(inputs, (self.n_samples, 1)),
            found / scale,
            rng,
            n_steps=self.n_steps,
            factors=np.concatenate(squares),
            learning_rate=self.learning_rate,
        )
        weights = scale * network.outputs(inputs) / spread**2
        weights = np.maximum(weights, self.floor * weights.mean(axis=1, keepdims=True))
        return WeightedTarget(problem, costs, weights, weights)


def half_trained(
    X: FloatArray, costs: FloatArray, spread: FloatArray, n_models: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Return the predictions (n, d) of linear models of standardised features, at random moments of their training.

    Each begins at random coefficients, whose predictions have the given spread (d,), and moves by gradient descent to
    the fit of least squares; `(1 - η λ)ᵗ` of each principal direction, of variance `λ`, is left to go.
    """
    axes, values, _ = np.linalg.svd(X, full_matrices=False)
    kept = values > 1e-10 * values.max(initial=0.0)
    axes, values = axes[:, kept], values[kept]
    mean = costs.mean(axis=0)
    fitted = axes @ (axes.T @ (costs - mean))
    predictions = []
    for _ in range(n_models):
        start = X @ rng.normal(scale=spread / np.sqrt(X.shape[1]), size=(X.shape[1], costs.shape[1]))
        left = (1 - 0.5 * (values / values.max(initial=0.0)) ** 2) ** rng.uniform(0, 5)
        predictions.append(mean + fitted + axes @ (left[:, None] * (axes.T @ (start - fitted))))
    return predictions


def _standardised(X: FloatArray) -> FloatArray:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
