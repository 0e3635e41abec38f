"""Knapsacks whose item values are a polynomial of the features, rounded up to integers."""

from __future__ import annotations

import numpy as np

from decidewise.data.dataset import Dataset
from decidewise.data.polynomial import checked, polynomial, single_precision, streams
from decidewise.kit.checks import FloatArray, as_integer, as_number
from decidewise.problems import Knapsack


def make_knapsack(
    n: int,
    *,
    degree: int,
    seed: int,
    n_items: int = 16,
    n_features: int = 5,
    dimension: int = 2,
    capacity: float = 20.0,
    noise: float = 0.5,
    instance_seed: int | None = None,
) -> Dataset:
    """Draw features and item values for a knapsack with one capacity in each dimension.

    `c_j = ⌈5 / 3.5^degree · (((B x)_j / √p + 3)^degree + 1) · u_j⌉` with `x ~ N(0, I)`, entries of `B` 0 or 1 with
    equal probability, and `u_j ~ Uniform(1 - noise, 1 + noise)`. Item weights are uniform on 3.00, 3.01, …, 7.99.

    Parameters
    ----------
    n : int
        Number of samples.
    degree : int
        Degree of the polynomial; with 1 the mean costs are linear in `x`, except for the rounding.
    seed : int
        Seed of the weights, `B`, the features and the noise, in this order.
    n_items, n_features, dimension : int
        The numbers of items, features (`p`) and capacities.
    capacity : float
        The capacity, the same in every dimension.
    noise : float
        Half-width of the multiplicative noise, in [0, 1].
    instance_seed : int, optional
        Seed of the weights and `B` alone, to draw several samples of one instance with different `seed`.

    Returns
    -------
    Dataset
        Without `instance_seed`, the same numbers as PyEPO 2.2.7 (its `genData` with `noise_width=noise`). `mean_costs`
        is exact: it accounts for the rounding.

    Examples
    --------
    >>> data = make_knapsack(3, degree=1, seed=42)
    >>> data.costs[0, :8]
    array([9., 7., 9., 8., 5., 4., 5., 5.])
    >>> data.mean_costs[0, :8].round(2)
    array([6.81, 6.28, 6.86, 6.15, 6.28, 6.34, 6.86, 4.99])
    """
    n, degree, n_features, noise = checked(n, degree, n_features, noise)
    n_items, dimension = as_integer(n_items, name="n_items"), as_integer(dimension, name="dimension")
    capacity = as_number(capacity, name="capacity", at_least=0)
    instance, rng = streams(seed, instance_seed)
    weights = instance.choice(range(300, 800), size=(dimension, n_items)) / 100
    B = instance.binomial(1, 0.5, (n_items, n_features))
    X = rng.normal(0, 1, (n, n_features))
    values = polynomial(X, B, degree, scale=5.0)
    costs = np.ceil(values * rng.uniform(1 - noise, 1 + noise, values.shape))
    problem = Knapsack(weights, np.full(dimension, capacity))
    return Dataset(X, single_precision(costs), problem, mean_of_ceil(values, noise))


def mean_of_ceil(values: FloatArray, noise: float) -> FloatArray:
    """Return `E⌈a u⌉`, `u ~ Uniform(1 - noise, 1 + noise)`, for every entry `a` of `values`.

    With `{t}` the fractional part, `⌈t⌉ = t + 1 - {t}` almost everywhere, and `1 - {t}` is the derivative of
    `⌊t⌋/2 + {t} - {t}²/2`. Only this periodic part is integrated, which avoids cancellation if the noise is small.

    >>> mean_of_ceil(np.array([2.0, 0.5, 0.0, -0.5]), 0.5)
    array([2.5, 1. , 0. , 0. ])
    """
    low, high = np.sort([values * (1 - noise), values * (1 + noise)], axis=0)
    floor_low, floor_high = np.floor(low), np.floor(high)
    part_low, part_high = low - floor_low, high - floor_high
    integral = (floor_high - floor_low) / 2 + (part_high - part_low) * (1 - (part_high + part_low) / 2)
    width = high - low
    noisy = width > 0
    return np.where(noisy, values + integral / np.where(noisy, width, 1.0), np.ceil(values))
