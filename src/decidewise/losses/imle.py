"""I-MLE, implicit maximum likelihood: interpolation, as in DBB, of a solver smoothed by Sum-of-Gamma noise.

Niepert, Minervini & Franceschi, "Implicit MLE: Backpropagating Through Discrete Exponential Family Distributions",
NeurIPS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.checks import FloatArray, as_integer, as_positive
from decidewise.losses.base import DecisionTarget, Loss, row_dot
from decidewise.runtime.kernels import kernel

# A power that is a product of more factors takes longer than the logarithm and exponential that it replaces.
_MOST_FACTORS = 16


def sum_of_gamma(
    rng: np.random.Generator, shape: tuple[int, ...], *, kappa: float = 5.0, n_terms: int = 10
) -> FloatArray:
    """Draw noise such that the sum of `kappa` independent entries is approximately a standard Gumbel variable.

    Each entry is `(Σ_i Gamma(1/κ, κ/i) - log m) / κ` over `i = 1, ..., m`; exact as `m = n_terms` grows.
    """
    total = np.zeros(shape)
    if type(rng) is np.random.Generator and 1 < kappa <= _MOST_FACTORS and float(kappa).is_integer():
        add_gammas(rng, total.ravel(), kappa, int(kappa), n_terms)
    else:
        for i in range(1, n_terms + 1):
            total += rng.gamma(1 / kappa, kappa / i, shape)
    total -= np.log(n_terms)
    total /= kappa
    return total


@kernel
def add_gammas(rng: np.random.Generator, total: FloatArray, kappa: float, whole: int, n_terms: int) -> None:
    """Add `Gamma(1/κ, κ/i)` for `i = 1, ..., m` to each entry of the total (n,), for a whole `κ` above 1.

    The method (Ahrens & Dieter 1974) and the random numbers are those of `Generator.gamma`, which takes twice the time,
    since its power `1/κ` may be any number; here it is a product. The results agree up to rounding.
    """
    shape = 1 / kappa
    for i in range(1, n_terms + 1):
        scale = kappa / i
        for k in range(len(total)):
            while True:
                uniform, exponential = rng.random(), rng.standard_exponential()
                root, limit = uniform, exponential
                if uniform > 1.0 - shape:
                    tail = -np.log((1 - uniform) / shape)
                    root, limit = 1.0 - shape + shape * tail, exponential + tail
                gamma = root
                for _ in range(whole - 1):
                    gamma *= root
                if gamma <= limit:
                    break
            total[k] += scale * gamma


@dataclass(frozen=True)
class Imle(Loss):
    """The regret `mean_s c·z_s - c·w` with the gradient `mean_s (z*(p + σε_s + λc) - z_s) / λ`, `z_s = z*(p + σε_s)`.

    Parameters
    ----------
    n_samples : int
        Samples per row; each takes two solves.
    sigma : float
        The temperature `σ` of the noise, in the units of the prediction.
    lambd : float
        The interpolation step `λ`. A small step is faithful to the regret; a large one changes more decisions.
    kappa : float
        The shape of the Sum-of-Gamma noise `ε`; set it to about the number of ones in a decision.

    Notes
    -----
    The surrogate is that of `Dbb`, averaged over the noise: the gradient of the mean of
    `(V(p + σε + λc) - V(p + σε)) / λ` with `V(t) = min_z t·z`. For the expected regret it is biased; the bias shrinks
    with `λ`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Imle(n_samples=3, sigma=0.1)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))
    (array([1.]), array([[ 0.1, -0.1,  0. ]]))
    """

    n_samples: int = 10
    sigma: float = 1.0
    lambd: float = 10.0
    kappa: float = 5.0

    gradient = "surrogate"
    random = True

    def __post_init__(self) -> None:
        as_integer(self.n_samples, name="n_samples")
        as_positive(self.sigma, name="sigma")
        as_positive(self.lambd, name="lambd")
        as_positive(self.kappa, name="kappa")

    def evaluate(
        self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return regrets and surrogate gradient for one draw of the noise."""
        noise = target.predicted_only(sum_of_gamma(rng, (self.n_samples, *prediction.shape), kappa=self.kappa))
        noise *= self.sigma
        perturbed = np.add(noise, prediction, out=noise)
        mean = target.minimize(perturbed).mean(axis=0)
        perturbed += self.lambd * target.costs
        shifted_mean = target.minimize(perturbed).mean(axis=0)
        return row_dot(target.costs, mean) - target.values, (shifted_mean - mean) / self.lambd
