from functools import cache
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest

from decidewise import SolverError
from decidewise.data import make_vehicle_routing
from decidewise.problems import TravellingSalesman, VehicleRouting, from_pyepo


def least_by_enumeration(problem, costs):
    """The least cost over all partitions into sets of customers, and all orders of each set."""
    n = len(problem.demands)
    price = {tuple(ends): cost for ends, cost in zip(problem.ends.T.tolist(), costs, strict=True)}
    route = {}
    for size in range(2, n + 1):
        for customers in combinations(range(1, n + 1), size):
            if sum(problem.demands[i - 1] for i in customers) <= problem.capacity:
                route[frozenset(customers)] = min(
                    sum(price[min(a, b), max(a, b)] for a, b in pairwise((0, *order, 0)))
                    for order in permutations(customers)
                )

    @cache
    def least(left, n_vehicles):
        if not left:
            return 0.0
        if n_vehicles == 0:
            return np.inf
        return min(
            (
                cost + least(left - served, n_vehicles - 1)
                for served, cost in route.items()
                if min(left) in served <= left
            ),
            default=np.inf,
        )

    return least(frozenset(range(1, n + 1)), problem.n_vehicles)


@pytest.mark.parametrize(("n", "n_vehicles"), [(2, 1), (5, 1), (5, 2), (7, 3), (8, 2)])
def test_equals_enumeration(n, n_vehicles):
    rng = np.random.default_rng([n, n_vehicles])
    demands = rng.integers(1, 6, size=n)
    capacity = float(demands.sum()) if n_vehicles == 1 else 4 + np.ceil(demands.sum() / n_vehicles)
    problem = VehicleRouting(demands, capacity, n_vehicles)
    costs = np.vstack([rng.exponential(size=(3, problem.n_costs)), rng.normal(size=(2, problem.n_costs))])
    values = (costs * problem.solve(costs)).sum(axis=1)
    np.testing.assert_allclose(values, [least_by_enumeration(problem, row) for row in costs], rtol=1e-9)


def test_routes_serve_all_customers_within_the_capacity():
    data = make_vehicle_routing(2, degree=3, seed=1)
    for decision in data.problem.solve(data.costs):
        neighbours = {node: [] for node in range(21)}
        for a, b in data.problem.ends.T[decision > 0].tolist():
            neighbours[a].append(b)
            neighbours[b].append(a)
        assert all(len(neighbours[node]) == 2 for node in range(1, 21))
        served = set()
        for start in neighbours[0]:
            before, here, load, visited = 0, start, 0.0, set()
            while here != 0:
                visited.add(here)
                load += data.problem.demands[here - 1]
                before, here = here, next(node for node in neighbours[here] if node != before)
            assert load <= data.problem.capacity
            served |= visited
        assert served == set(range(1, 21))
        assert len(neighbours[0]) <= 2 * data.problem.n_vehicles


def test_one_large_vehicle_makes_a_tour():
    costs = np.random.default_rng(0).exponential(size=(5, 45))
    tours = TravellingSalesman(10).solve(costs)
    np.testing.assert_array_equal(VehicleRouting(np.ones(9), 9.0, 1).solve(costs), tours)


def test_equals_pyepo():
    pytest.importorskip("gurobipy")
    grb = pytest.importorskip("pyepo.model.grb")
    data = make_vehicle_routing(4, degree=2, seed=3, n_customers=9)
    demands, capacity, n_vehicles = data.problem.demands, data.problem.capacity, data.problem.n_vehicles
    peer = from_pyepo(grb.vrpRCIModel(10, demands, capacity, n_vehicles))
    np.testing.assert_array_equal(data.problem.solve(data.costs), peer.solve(data.costs))


def test_a_forbidden_edge_does_not_blur_the_others():
    problem = VehicleRouting(np.ones(6), 3.0, 3)
    costs = np.random.default_rng(1).uniform(1, 2, size=(10, problem.n_costs))
    costs[:, 7] = 1e3
    expected = problem.solve(costs)
    assert not expected[:, 7].any()
    costs[:, 7] = 1e15
    np.testing.assert_array_equal(problem.solve(costs), expected)


def test_too_many_ties_are_an_error_with_the_row():
    problem = VehicleRouting(np.ones(14), 4.0, 7)
    costs = np.random.default_rng(2).uniform(size=(2, problem.n_costs))
    costs[1] = 1.0
    with pytest.raises(SolverError, match="row 1: no choice of routes was proved to be the cheapest"):
        problem.solve(costs)


@pytest.mark.parametrize(
    ("demands", "capacity", "n_vehicles", "message"),
    [
        ([1.0], 2.0, 1, "demands must be those of 2 to 60 customers; got 1"),
        ([1.0, 3.0], 2.0, 2, "demands must lie between 0 and the capacity, 2; customer 1 has 3"),
        ([1.0, -1.0], 2.0, 2, "customer 1 has -1"),
        ([1.0, 1.0, 1.0], 2.0, 5, "5 vehicles of capacity 2 cannot serve all customers on routes of two or more"),
        ([2.0, 2.0, 2.0, 2.0], 4.0, 1, "1 vehicles of capacity 4 cannot serve"),
        ([2.0, 2.0], 3.0, 2, "cannot serve all customers"),
        (np.ones(25), 25.0, 2, "more than 500,000 sets of customers fit into one vehicle"),
        ([1.0, 1.0], 0.0, 1, "capacity must be a number above 0"),
        ([1.0, 1.0], 2.0, 0, "n_vehicles must be at least 1"),
    ],
)
def test_bad_arguments(demands, capacity, n_vehicles, message):
    with pytest.raises(ValueError, match=message):
        VehicleRouting(demands, capacity, n_vehicles)
