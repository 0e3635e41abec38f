"""Routes among points in the plane, whose edges cost their length and a polynomial of the features."""

from __future__ import annotations

import numpy as np

from decidewise.data.dataset import Dataset
from decidewise.data.travelling_salesman import make_travelling_salesman
from decidewise.kit.checks import as_integer, as_number
from decidewise.problems import VehicleRouting


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
