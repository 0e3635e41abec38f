"""Perturbed optimisers: a solver smoothed by Gaussian noise, in a Fenchel–Young loss (PFY) and in the regret (DPO).

Berthet, Blondel, Teboul, Cuturi, Vert & Bach, "Learning with Differentiable Perturbed Optimizers", NeurIPS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray, as_flag
from decidewise.losses.base import Loss, count, parameter, positive
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad, row_dot


@dataclass(frozen=True)
class Pfy(Loss):
    """The perturbed Fenchel–Young loss `p·w - mean_s (p + σξ_s)·z_s`, with `z_s = z*(p + σξ_s)` and `ξ_s` normal.

    Parameters
    ----------
    n_samples : int
        Solves per row, all in one batch.
    sigma : float
        The amplitude `σ` of the noise, in the units of the prediction.

    Notes
    -----
    The value omits the term of the Fenchel–Young loss that does not depend on `p`. For fixed noise it is convex, with
    subgradient `w - mean_s z_s`. Value and gradient are unbiased estimates of those of the expected loss, which is
    smooth and at least `p·w - min_z p·z`. If the decisions `w` come from the smoothed solver at some `p`, the expected
    gradient at that `p` is zero.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Pfy(n_samples=3, sigma=0.1)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))[1]
    array([[ 1., -1.,  0.]])
    """

    n_samples: int = count(10)
    sigma: float = positive(1.0)

    gradient = "subgradient"
    random = True

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        noise = target.predicted_only(rng.standard_normal((self.n_samples, *prediction.shape)))
        perturbed = prediction + self.sigma * noise
        sampled = target.minimize(perturbed)
        smoothed_minimum = np.einsum("sij,sij->i", perturbed, sampled) / self.n_samples
        return row_dot(prediction, target.decisions) - smoothed_minimum, target.decisions - sampled.mean(axis=0)


@dataclass(frozen=True)
class Dpo(Loss):
    """The regret `mean_s c·z_s - c·w` of the decisions `z_s = z*(p + σξ_s)`, with `ξ_s` normal.

    Its gradient is `mean_s (c·z_s - b_s) ξ_s / σ`, where the baseline `b_s` is the mean of `c·z` over the other
    samples.

    Parameters
    ----------
    n_samples, sigma
        As for `Pfy`.
    variance_reduction : bool
        Whether to subtract the baseline, which does not change the expected gradient. With one sample there is none.

    Notes
    -----
    For fixed noise the value is constant almost everywhere, so this is not its gradient. It is an unbiased estimate of
    the gradient of the expected value, which is smooth. Its variance grows with `d / σ²`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Dpo(n_samples=1000)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> values, gradient = loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))
    >>> np.sign(gradient)  # a step against it lowers the first prediction and raises the others
    array([[ 1., -1., -1.]])
    """

    n_samples: int = count(10)
    sigma: float = positive(1.0)
    variance_reduction: bool = parameter(True, as_flag)

    gradient = "surrogate"
    random = True

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        noise = target.predicted_only(rng.standard_normal((self.n_samples, *prediction.shape)))
        sampled = target.minimize(prediction + self.sigma * noise)
        sampled_costs = np.einsum("ij,sij->si", target.costs, sampled)
        values = sampled_costs.mean(axis=0) - target.values
        if self.variance_reduction and self.n_samples > 1:
            # The same as subtracting from each sample the mean of the others.
            sampled_costs = (sampled_costs - sampled_costs.mean(axis=0)) * (self.n_samples / (self.n_samples - 1))
        return values, np.einsum("si,sij->ij", sampled_costs, noise) / (self.n_samples * self.sigma)
