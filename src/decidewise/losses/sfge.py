"""SFGE, score-function gradient estimation: the regret of decisions for noisy predictions, standardised.

Silvestri, Berden, Mandi, Mahmutoğulları, Mulamba, De Filippo, Guns & Lombardi, "Score Function Gradient Estimation to
Widen the Applicability of Decision-Focused Learning", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from decidewise.kit.checks import FloatArray, as_integer
from decidewise.losses.base import Loss, choice, positive
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad


@dataclass(frozen=True)
class Sfge(Loss):
    """The regret `mean_s r_s`, `r_s = c·z*(p + σξ_s) - c·w`, with the score-function gradient of standardised regrets.

    The gradient is `mean_s (r_s - m) / d · ξ_s / σ`, and 0 where `d = 0`. By default `m` and `d` are the mean and the
    standard deviation of the row's own samples, a variant of ours; its authors take those of the whole batch.

    Parameters
    ----------
    n_samples : int
        Solves per row, all in one batch; at least 2 to standardise per row. The authors draw 1.
    sigma : float
        The standard deviation `σ` of the noise, in the units of the prediction. The paper also learns it; here it is
        given, so that a model stays one prediction per cost.
    standardize : {"row", "batch"}
        The regrets that `m` and `d` are taken of. `Sfge(n_samples=1, standardize="batch")` is the published form, in
        which the gradient of a row depends on the other rows of its batch.

    Notes
    -----
    DPO with its score function is the same estimate without the division by the standard deviation, and unbiased for
    the smoothed regret. Dividing per row gives all rows about the same weight, whatever their costs, and the mean of a
    row is a better baseline for it than that of the batch; `docs/notes/field.md` compares the two.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Sfge(n_samples=1000)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> values, gradient = loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))
    >>> np.sign(gradient)  # a step against it lowers the first prediction and raises the others
    array([[ 1., -1., -1.]])
    """

    n_samples: int = 10
    sigma: float = positive(1.0)
    standardize: Literal["row", "batch"] = choice("row", "batch")

    gradient = "surrogate"
    random = True

    def __post_init__(self) -> None:
        super().__post_init__()
        as_integer(self.n_samples, name="n_samples", minimum=2 if self.standardize == "row" else 1)

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        noise = target.predicted_only(rng.standard_normal((self.n_samples, *prediction.shape)))
        sampled = target.minimize(prediction + self.sigma * noise)
        achieved = np.einsum("ij,sij->si", target.costs, sampled)
        regrets = achieved - target.values
        together = 0 if self.standardize == "row" else None
        spread, rounding = regrets.std(axis=together), 1e-12 * np.abs(achieved).max(axis=together)
        standard = (regrets - regrets.mean(axis=together)) / np.where(spread > rounding, spread, np.inf)
        return regrets.mean(axis=0), np.einsum("si,sij->ij", standard, noise) / (self.n_samples * self.sigma)
