"""Tours and routes among points in the plane; an edge costs its length plus a polynomial of the features."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from decidewise.data.dataset import Dataset
from decidewise.data.polynomial import checked, single_precision, streams
from decidewise.kit.checks import as_integer, as_number
from decidewise.problems import TravellingSalesman, VehicleRouting


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
    n, degree, n_features, noise = checked(n, degree, n_features, noise)
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


def make_vehicle_routing(
    n: int,
    *,
    degree: int,
    seed: int,
    n_customers: int = 20,
    capacity: float = 30.0,
    n_vehicles: int | None = None,
    noise: float = 0.5,
    n_features: int = 10,
) -> Dataset:
    """Draw features and edge costs for routes from a depot, node 0, to `n_customers` customers.

    The costs are those of `make_travelling_salesman` with a node more than customers. The demands are whole numbers
    from 1 to 9.

    Parameters
    ----------
    n : int
        Number of samples; train and test of one instance come from one call and `split`.
    degree : int
        Degree of the polynomial; 1 is a linear truth.
    seed : int
        Seed of the nodes, the features, the costs and, in a stream of their own, the demands.
    n_customers : int
        Number of customers, at least 2.
    capacity : float
        The largest load of a vehicle.
    n_vehicles : int, optional
        The largest number of routes; by default one more than the total demand fills.
    noise : float
        Half-width of the multiplicative noise, in [0, 1].
    n_features : int
        The number of features.

    Returns
    -------
    Dataset
        Features and costs are, number for number, those of PyEPO 2.2.7 for nodes in the plane (`pyepo.data.tsp`), which
        has no generator of demands.

    Examples
    --------
    >>> data = make_vehicle_routing(3, degree=2, seed=42, n_customers=8)
    >>> data.costs.shape, data.problem.demands, data.problem.n_vehicles
    ((3, 36), array([5., 8., 1., 1., 9., 3., 8., 2.]), 3)
    """
    n_customers = as_integer(n_customers, name="n_customers", minimum=2)
    capacity = as_number(capacity, name="capacity", above=0)
    data = make_travelling_salesman(
        n, n_nodes=n_customers + 1, degree=degree, seed=seed, noise=noise, n_features=n_features
    )
    demands = np.random.RandomState([seed, 1]).randint(1, 10, n_customers).astype(np.float64)
    if n_vehicles is None:
        n_vehicles = int(np.ceil(demands.sum() / capacity)) + 1
    return Dataset(data.X, data.costs, VehicleRouting(demands, capacity, n_vehicles), data.mean_costs)
