"""LTR, learning to rank: predict costs that order a pool of decisions `v` as the true costs do.

Mandi, Bucarey, Mulamba & Guns, "Decision-Focused Learning: Through the Lens of Learning to Rank", ICML 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import not_negative, positive
from decidewise.losses.parts.pool import PoolLoss, PoolTarget
from decidewise.losses.parts.target import ValueAndGrad, row_dot


@dataclass(frozen=True)
class LtrPointwise(PoolLoss):
    """Regression on the objectives of the pool, `mean_v ((p - c)·v)²`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = LtrPointwise()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target[[0]], np.random.default_rng(0))
    (array([1.]), array([[ 1., -1.,  0.]]))
    """

    gradient = "exact"

    def evaluate(self, prediction: FloatArray, target: PoolTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and gradient `2 mean_v ((p - c)·v) v`."""
        residuals = target.pool.objectives(prediction - target.costs)
        return (residuals**2).mean(axis=1), (2 / len(target.pool)) * residuals @ target.pool.decisions


@dataclass(frozen=True)
class LtrPairwise(PoolLoss):
    """The hinge `max(0, margin + p·(w - v))`, averaged over the decisions `v ≠ w` of the pool.

    Parameters
    ----------
    margin : float
        By how much `w`, the best of the pool under the true costs, should be better under the prediction.

    Notes
    -----
    The authors' code counts decisions of equal true cost once; PyEPO, which has no margin, and this class count all.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = LtrPairwise()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    >>> values, gradient = loss.value_and_grad([[2.0, 1.0, 4.0]], target[[0]], np.random.default_rng(0))
    >>> values.round(3), gradient.round(3)
    (array([1.]), array([[ 1., -1.,  0.]]))
    """

    margin: float = not_negative(0.0)

    gradient = "subgradient"

    def evaluate(self, prediction: FloatArray, target: PoolTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and subgradient; a hinge at its kink has subgradient 0."""
        best = row_dot(prediction, target.decisions)
        hinges = target.pool.objectives(prediction)
        np.subtract(self.margin + best[:, None], hinges, out=hinges)
        np.maximum(hinges, 0, out=hinges)
        violated = (hinges > 0).astype(float)
        n_pairs = max(len(target.pool) - 1, 1)
        n_violated = violated @ np.ones((len(target.pool), 1))
        subgradient = n_violated * target.decisions - violated @ target.pool.decisions
        # The pair of w with itself has the hinge `margin`, which is subtracted, and no gradient.
        return (hinges.sum(axis=1) - self.margin) / n_pairs, subgradient / n_pairs


@dataclass(frozen=True)
class LtrListwise(PoolLoss):
    """The cross-entropy of `softmax_v(-c·v / temperature)` and `softmax_v(-p·v / temperature)`.

    Parameters
    ----------
    temperature : float
        The lower it is, the more weight the best decisions have.

    Notes
    -----
    The authors' code divides by the size of the pool; PyEPO and this class sum.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = LtrListwise()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    >>> values, gradient = loss.value_and_grad([[2.0, 1.0, 4.0]], target[[0]], np.random.default_rng(0))
    >>> values.round(3), gradient.round(3)
    (array([1.044]), array([[ 0.462, -0.462,  0.   ]]))
    """

    temperature: float = positive(1.0)

    gradient = "exact"

    def evaluate(self, prediction: FloatArray, target: PoolTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and gradient: the difference of the two expected decisions, divided by the temperature."""
        true = softmax(target.pool.objectives(target.costs) / -self.temperature, axis=1)
        log_predicted = log_softmax(target.pool.objectives(prediction) / -self.temperature, axis=1)
        gradient = (true - np.exp(log_predicted)) @ target.pool.decisions / self.temperature
        return -row_dot(true, log_predicted), gradient
