"""Tours through points in the plane; the cost of an edge is its length plus a polynomial of the features."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from decidewise.data.dataset import Dataset
from decidewise.data.polynomial import as_degree, as_noise, single_precision, streams
from decidewise.kit.checks import as_integer
from decidewise.problems import TravellingSalesman


def make_travelling_salesman(
    n: int, *, n_nodes: int, degree: int, seed: int, noise: float = 0.5, n_features: int = 10
) -> Dataset:
    """Draw features and edge costs for tours through `n_nodes` nodes.

    `c_j = d_j + ((B x)_j / √p + 3)^degree / 3^(degree - 1) · u_j`, rounded to four decimals, with `x ~ N(0, I)` and
    `u_j ~ Uniform(1 - noise, 1 + noise)`. `d_j` is the distance between two nodes. Half of the nodes, rounded down, are
    uniform in the square of side 4 around the origin; the others are standard normal. An entry of `B` is 0 or 1 with
    equal probability, times a uniform draw from (-2, 2).

    Parameters
    ----------
    n : int
        Number of samples. To train and test on one instance, call this once and use `split`.
    n_nodes : int
        Number of nodes, at least 3.
    degree : int
        Degree of the polynomial; with 1 the mean costs are linear in `x`. If it is odd, costs can be negative, though
        rarely.
    seed : int
        Seed of the nodes, `B`, the features and the noise, in this order.
    noise : float
        Half-width of the multiplicative noise, in [0, 1].
    n_features : int
        The number `p` of features.

    Returns
    -------
    Dataset
        The same numbers as PyEPO 2.2.7 (its `genData` with `noise_width=noise`). The costs are rounded to float32 as in
        PyEPO, and stored as float64. `mean_costs` is the formula without noise and rounding. It differs from the mean
        of the rounded costs by less than 0.00005; above 1,000 the rounding to float32 adds to that.

    Examples
    --------
    >>> data = make_travelling_salesman(3, n_nodes=20, degree=2, seed=42)
    >>> data.costs.shape, data.costs[0, :3].round(4)
    ((3, 190), array([4.4692, 8.265 , 6.0748]))
    """
    n, degree = as_integer(n, name="n"), as_degree(degree)
    n_features = as_integer(n_features, name="n_features")
    noise = as_noise(noise)
    problem = TravellingSalesman(n_nodes)
    rng, _ = streams(seed)
    square = rng.uniform(-2, 2, (n_nodes // 2, 2))
    nodes = np.concatenate([square, rng.normal(0, 1, (n_nodes - n_nodes // 2, 2))])
    size = (problem.n_costs, n_features)
    B = rng.binomial(1, 0.5, size) * rng.uniform(-2, 2, size)
    X = rng.normal(0, 1, (n, n_features))
    distances = pdist(nodes)
    with np.errstate(over="ignore"):  # `single_precision` raises if a cost is not finite
        predictable = (X @ B.T / np.sqrt(n_features) + 3) ** degree / 3 ** (degree - 1)
    costs = distances + predictable * rng.uniform(1 - noise, 1 + noise, predictable.shape)
    return Dataset(X, single_precision(np.around(costs, 4)), problem, distances + predictable)
