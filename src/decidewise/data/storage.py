"""Daily curves of electricity prices, with spikes, for a battery."""

from __future__ import annotations

import numpy as np

from decidewise.data.dataset import Dataset
from decidewise.data.polynomial import checked, polynomial, single_precision, streams
from decidewise.kit.checks import as_number
from decidewise.problems import Storage

#: The size of a spike, in units of the price that it is added to, is at least this.
SMALLEST_SPIKE = 8.0


def make_storage(
    n: int,
    *,
    degree: int,
    seed: int,
    periods: int = 24,
    power: float = 1.0,
    energy: float = 4.0,
    efficiency: float = 0.9,
    n_features: int = 5,
    noise: float = 0.5,
    spike_rate: float = 0.01,
    tail: float = 1.5,
) -> Dataset:
    """Draw features and price curves for a battery, with rare and violent spikes.

    `p_t = 50 h_t (((B x)_t / √p + 3)^degree + 1) / 3.5^degree · u_t (1 + j_t z_t)` with `x ~ N(0, I)`. The shape `h` of
    the day is lowest in the night and highest in the evening. The columns of `B` are random curves of one or two waves
    a day, so that the prices of neighbouring periods move together. `u_t ~ Uniform(1 - noise, 1 + noise)`; `j_t` is 1
    with probability `spike_rate` and else 0; `z_t` has the Pareto distribution `P(z > y) = (8/y)^tail` for `y > 8`.
    With the default tail its variance is infinite.

    Parameters
    ----------
    n : int
        Number of days.
    degree : int
        Degree of the polynomial; 1 is a linear truth.
    seed : int
        Seed of `B`, the features, the noise and the spikes, in this order.
    periods : int
        Number of periods of the day.
    power, energy, efficiency : float
        Of `Storage`; it is empty before the first period.
    n_features : int
        The number `p` of features.
    noise : float
        Half-width of the multiplicative noise, in [0, 1].
    spike_rate : float
        The probability of a spike in a period, in [0, 1].
    tail : float
        The index of the tail of a spike, above 1.

    Returns
    -------
    Dataset
        The costs (prices, to be maximised over) are rounded to float32 and stored as float64. `mean_costs` is exact up
        to that: the polynomial times `1 + 8 spike_rate · tail / (tail - 1)`.

    Examples
    --------
    >>> data = make_storage(3, degree=2, seed=42)
    >>> data.costs.shape, data.costs[0, [3, 12, 19]].round(1)
    ((3, 24), array([23.9, 48.7, 22.7]))
    """
    n, degree, n_features, noise = checked(n, degree, n_features, noise)
    spike_rate = as_number(spike_rate, name="spike_rate", at_least=0, at_most=1)
    tail = as_number(tail, name="tail", above=1)
    problem = Storage(periods, power, energy, efficiency=efficiency)
    rng, _ = streams(seed)
    time = 2 * np.pi * np.arange(periods) / periods
    waves = np.column_stack([np.cos(time), np.sin(time), np.cos(2 * time), np.sin(2 * time)])
    B = waves @ rng.normal(0, 0.5, (4, n_features))
    X = rng.normal(0, 1, (n, n_features))
    shape = 1 - 0.35 * np.cos(time - np.pi / 3) + 0.2 * np.cos(2 * time - 4 * np.pi / 3)
    prices = 50 * shape * polynomial(X, B, degree)
    spikes = (rng.uniform(size=prices.shape) < spike_rate) * SMALLEST_SPIKE * (1 + rng.pareto(tail, prices.shape))
    costs = prices * rng.uniform(1 - noise, 1 + noise, prices.shape) * (1 + spikes)
    mean_factor = 1 + spike_rate * SMALLEST_SPIKE * tail / (tail - 1)
    return Dataset(X, single_precision(costs), problem, prices * mean_factor)
