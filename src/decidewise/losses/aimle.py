"""AI-MLE, I-MLE with an interpolation step that adapts to the density of the gradient.

Minervini, Franceschi & Niepert, "Adaptive Perturbation-Based Gradient Estimation for Discrete Latent Variable Models",
AAAI 2023.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss, count, positive
from decidewise.losses.imle import sum_of_gamma
from decidewise.losses.parts.target import SHARED, DecisionTarget, ValueAndGrad, row_dot

#: A change of an entry of a decision by at most this is rounding of the solver.
TOLERANCE = 1e-8


@dataclass
class AdaptiveStep:
    """The step `alpha`, relative to the prediction, and the running mean of the non-zero entries per gradient."""

    alpha: float = 1.0
    density: float = 1.0

    def update(self, density: float, rate: float) -> None:
        """Lengthen the step if gradients have less than one non-zero entry on average; otherwise shorten it."""
        self.density = 0.9 * self.density + 0.1 * density
        # The authors allow a step of 0, at which there is no gradient; the shortest step here is `rate`.
        self.alpha = max(self.alpha + (rate if self.density < 1 else -rate), rate)


@dataclass(frozen=True)
class AdaptiveTarget(DecisionTarget):
    """Optimal decisions, and the adaptive step, which all batches of a training share."""

    step: AdaptiveStep = field(default_factory=AdaptiveStep, metadata=SHARED)


@dataclass(frozen=True)
class Aimle(Loss):
    """I-MLE with the step `λ = α‖p‖/‖c‖`, norms taken over the batch, and `α` adapted after every batch.

    `α` starts at 1. After a batch it grows by `rate` if `z*(p + σε_s + λc) - z*(p + σε_s)` has less than one non-zero
    entry per sample, in a running mean over the batches, and shrinks by `rate` otherwise.

    Parameters
    ----------
    n_samples, sigma, kappa
        As for `Imle`.
    rate : float
        By how much `α` changes after a batch.

    Notes
    -----
    The surrogate is that of `Imle`, with about the shortest step that still changes decisions. `α` is in the target,
    and every evaluation changes it. Where all predictions are zero there is no gradient: do not start training there.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Aimle(n_samples=3, sigma=0.1)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[3.0, 1.0, 4.0]], target, np.random.default_rng(0))
    (array([1.]), array([[0., 0., 0.]]))
    >>> target.step  # no decision changed, so the next step is longer
    AdaptiveStep(alpha=1.001, density=0.9)
    """

    n_samples: int = count(10)
    sigma: float = positive(1.0)
    kappa: float = positive(5.0)
    rate: float = positive(1e-3)

    gradient = "surrogate"
    target_type = AdaptiveTarget
    random = True

    def evaluate(self, prediction: FloatArray, target: AdaptiveTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return regrets and surrogate gradient for one draw of the noise, then adapt the step."""
        noise = target.predicted_only(sum_of_gamma(rng, (self.n_samples, *prediction.shape), kappa=self.kappa))
        perturbed = prediction + self.sigma * noise
        cost_norm = np.linalg.norm(target.costs)
        lambd = target.step.alpha * np.linalg.norm(prediction) / cost_norm if cost_norm > 0 else 0.0
        sampled = target.minimize(perturbed)
        change = target.minimize(perturbed + lambd * target.costs) - sampled
        target.step.update(float((np.abs(change) > TOLERANCE).sum(axis=-1).mean()), self.rate)
        values = row_dot(target.costs, sampled.mean(axis=0)) - target.values
        return values, change.mean(axis=0) / (lambd if lambd > 0 else 1.0)
