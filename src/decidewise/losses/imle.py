"""I-MLE, implicit maximum likelihood: interpolation, as in DBB, of a solver smoothed by Sum-of-Gamma noise.

Niepert, Minervini & Franceschi, "Implicit MLE: Backpropagating Through Discrete Exponential Family Distributions",
NeurIPS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from decidewise.kit.checks import FloatArray, IndexArray
from decidewise.kit.kernels import kernel
from decidewise.losses.base import Loss, count, positive
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad, row_dot

# Below this κ the table of counts is long, and the noise hardly varies.
_LEAST_KAPPA = 0.1
# Entries of the guide to the table of counts.
_GUIDE = 1024


def sum_of_gamma(
    rng: np.random.Generator, shape: tuple[int, ...], *, kappa: float = 5.0, n_terms: int = 10
) -> FloatArray:
    """Draw noise such that the sum of `kappa` independent entries is approximately a standard Gumbel variable.

    Each entry is distributed as `(Σ_i Gamma(1/κ, κ/i) - log m) / κ` over `i = 1, ..., m`; exact as `m = n_terms` grows.
    """
    total = np.zeros(shape)
    if type(rng) is np.random.Generator and kappa >= _LEAST_KAPPA:
        add_gamma(rng, total.ravel(), *_counts(float(kappa), n_terms), n_terms / kappa, kappa / n_terms)
    else:
        for i in range(1, n_terms + 1):
            total += rng.gamma(1 / kappa, kappa / i, shape)
    total -= np.log(n_terms)
    total /= kappa
    return total


@lru_cache(maxsize=16)
def _counts(kappa: float, n_terms: int) -> tuple[FloatArray, IndexArray]:
    """Return the distribution function of the number `K` in `Σ_i Gamma(1/κ, κ/i) ~ Gamma(m/κ + K, κ/m)`, and a guide.

    A gamma variable of a larger scale is one of a smaller scale `β` whose shape grows by a negative binomial number:
    `Gamma(a, β/p) ~ Gamma(a + NB(a, p), β)`. So all terms have the scale of the last, with `p = i/m`, and add up
    (Moschopoulos 1985). The probabilities are the coefficients of the generating function `Π_i (p / (1 - (1-p) x))^a`,
    by a Fourier transform. Entry j of the guide is the number at the quantile j / len(guide).
    """
    p = np.arange(1, n_terms + 1) / n_terms
    mean, variance = np.sum((1 - p) / p) / kappa, np.sum((1 - p) / p**2) / kappa
    length = 1 << int(np.ceil(np.log2(mean + 12 * np.sqrt(variance) + 40 * n_terms)))  # what is beyond has < 1e-16
    roots = np.exp(-2j * np.pi * np.arange(length) / length)
    logarithm = sum(np.log(chance / (1 - (1 - chance) * roots)) for chance in p)
    cumulative = np.cumsum(np.maximum(np.fft.ifft(np.exp(logarithm / kappa)).real, 0))
    cumulative = cumulative[: 1 + np.searchsorted(cumulative, (1 - 1e-15) * cumulative[-1])]
    cumulative[-1] = np.inf
    return cumulative, np.searchsorted(cumulative, np.arange(_GUIDE) / _GUIDE, side="right")


@kernel
def add_gamma(rng, total, cumulative, guide, shape, scale):  # type: ignore[no-untyped-def]
    """Add `Gamma(shape + K, scale)` to each entry of the total (n,), with `K` from a distribution function."""
    for i in range(len(total)):
        uniform = rng.random()
        count = guide[int(uniform * len(guide))]
        while cumulative[count] <= uniform:
            count += 1
        total[i] += scale * rng.standard_gamma(shape + count)


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
    with `λ`. The noise of each entry is one gamma variable of a random shape (`sum_of_gamma`); the public code draws
    ten, which takes longer than the solves.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Imle(n_samples=3, sigma=0.1)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))
    (array([1.]), array([[ 0.1, -0.1,  0. ]]))
    """

    n_samples: int = count(10)
    sigma: float = positive(1.0)
    lambd: float = positive(10.0)
    kappa: float = positive(5.0)

    gradient = "surrogate"
    random = True

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        noise = target.predicted_only(sum_of_gamma(rng, (self.n_samples, *prediction.shape), kappa=self.kappa))
        noise *= self.sigma
        perturbed = np.add(noise, prediction, out=noise)
        mean = target.minimize(perturbed).mean(axis=0)
        perturbed += self.lambd * target.costs
        shifted_mean = target.minimize(perturbed).mean(axis=0)
        return row_dot(target.costs, mean) - target.values, (shifted_mean - mean) / self.lambd
