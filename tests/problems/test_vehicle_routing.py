from functools import cache
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest

from decidewise import SolverError
from decidewise.data import make_vehicle_routing
from decidewise.problems import TravellingSalesman, VehicleRouting, from_pyepo
from decidewise.problems.vehicle_routing import cuts
from decidewise.problems.vehicle_routing import problem as vehicle_routing
from decidewise.problems.vehicle_routing.fleet import Fleet


def least_by_enumeration(problem, costs):
    """The least cost over all partitions into sets of customers, and all orders of each set."""
    n = len(problem.demands)
    price = {tuple(ends): cost for ends, cost in zip(problem.ends.T.tolist(), costs, strict=True)}
    route = {}
    for size in range(2 - problem.round_trips, n + 1):
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


@pytest.mark.parametrize("round_trips", [False, True], ids=["two or more", "round trips"])
@pytest.mark.parametrize("by", ["routes", "cuts"])
@pytest.mark.parametrize(("n", "n_vehicles"), [(2, 1), (5, 1), (5, 2), (7, 3), (8, 2)])
def test_equals_enumeration(n, n_vehicles, by, round_trips, monkeypatch):
    if by == "cuts":
        monkeypatch.setattr(vehicle_routing, "sets_that_fit", lambda *_: None)
    rng = np.random.default_rng([n, n_vehicles])
    demands = rng.integers(1, 6, size=n)
    capacity = float(demands.sum()) if n_vehicles == 1 else 4 + np.ceil(demands.sum() / n_vehicles)
    problem = VehicleRouting(demands, capacity, n_vehicles + round_trips, round_trips=round_trips)
    costs = np.vstack([rng.exponential(size=(3, problem.n_costs)), rng.normal(size=(2, problem.n_costs))])
    costs[0, :n] = costs[0, :n] / 9  # so that round trips pay
    decisions = problem.solve(costs)
    values = (costs * decisions).sum(axis=1)
    np.testing.assert_allclose(values, [least_by_enumeration(problem, row) for row in costs], rtol=1e-9)
    check_routes(problem, decisions)
    assert (decisions > 1).any() == round_trips or n == 2
    assert np.all(np.linalg.norm(decisions, axis=1) <= problem.B_S + 1e-9)


def check_routes(problem, decisions):
    """Assert that all customers are served within the capacity."""
    for decision in decisions:
        neighbours = {node: [] for node in range(len(problem.demands) + 1)}
        for a, b in problem.ends.T[np.repeat(np.arange(problem.n_costs), decision.astype(int))].tolist():
            neighbours[a].append(b)
            neighbours[b].append(a)
        assert all(len(of_node) == 2 for of_node in list(neighbours.values())[1:])
        served = set()
        for start in neighbours[0]:
            before, here, load, visited = 0, start, 0.0, set()
            while here != 0:
                visited.add(here)
                load += problem.demands[here - 1]
                onward = list(neighbours[here])
                onward.remove(before)
                before, here = here, onward[0]
            assert load <= problem.capacity
            served |= visited
        assert served == set(range(1, len(problem.demands) + 1))
        assert len(neighbours[0]) <= 2 * problem.n_vehicles


def test_forty_customers_have_good_routes_and_a_bound():
    problem = VehicleRouting(*forty_customers(), time_limit=2, on_limit="best")
    costs = make_vehicle_routing(1, degree=1, seed=5, n_customers=40).costs
    details = problem.solve_details(costs)
    check_routes(problem, details.decisions)
    assert details.bound[0] <= details.objective[0]
    assert details.status[0] in {"limit", "optimal"}
    assert (details.gap[0] > 0) == (details.status[0] == "limit")


def forty_customers():
    return np.random.default_rng(4).integers(1, 9, size=40), 50.0, 5


def test_routes_serve_all_customers_within_the_capacity():
    data = make_vehicle_routing(2, degree=3, seed=1)
    check_routes(data.problem, data.problem.solve(data.costs))


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


def test_too_many_ties_go_to_highs():
    problem = VehicleRouting(np.ones(14), 4.0, 7)
    costs = np.random.default_rng(2).uniform(size=(2, problem.n_costs))
    alone = problem.solve(costs[:1])
    costs[1] = 1.0
    details = problem.solve_details(costs)
    np.testing.assert_array_equal(details.decisions[:1], alone)
    check_routes(problem, details.decisions)
    assert (details.objective[1], details.gap[1]) == (18.0, 0.0)  # 14 customers on 4 routes


def test_a_first_bound_above_the_relaxation_rules_out_no_better_routes(monkeypatch):
    # A relaxation may have one vehicle and a half: its edges to the depot cost less than those of one or of two.
    costs = np.array([-1.0, -1.0, -1.0, 0.8, 0.2, 0.6, 0.3, 0.7, 0.0, 0.0])
    second = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    monkeypatch.setattr(cuts, "good_routes", lambda *_: second)
    found, bound = cuts.cheapest_routes(costs, Fleet(np.zeros(4), 1.0, 2), 10.0, 0.0)
    np.testing.assert_array_equal(found, [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    assert bound == pytest.approx(costs @ found)


def test_no_routes_for_all_is_said(monkeypatch):
    monkeypatch.setattr(vehicle_routing, "sets_that_fit", lambda *_: None)
    problem = VehicleRouting([1.0, 1.0, 1.0], 2.0, 2)  # one would be alone
    with pytest.raises(SolverError, match="row 0: no routes serve all customers: allow more vehicles, or a larger"):
        problem.solve(np.ones(6))
    assert VehicleRouting([1.0, 1.0, 1.0], 2.0, 2, round_trips=True).solve(np.ones(6)).sum() == 5


@pytest.mark.parametrize(
    ("demands", "capacity", "n_vehicles", "message"),
    [
        ([1.0], 2.0, 1, "demands must be those of 2 customers or more; got 1"),
        ([1.0, 3.0], 2.0, 2, "demands must lie between 0 and the capacity, 2; customer 1 has 3"),
        ([1.0, -1.0], 2.0, 2, "customer 1 has -1"),
        ([1.0, 1.0, 1.0], 2.0, 5, "5 vehicles of capacity 2 cannot serve all customers on routes of two or more"),
        ([2.0, 2.0, 2.0, 2.0], 4.0, 1, "1 vehicles of capacity 4 cannot serve"),
        ([2.0, 2.0], 3.0, 2, "cannot serve all customers"),
        (np.ones(70), 25.0, 2, "2 vehicles of capacity 25 cannot serve"),
        ([1.0, 1.0], 0.0, 1, "capacity must be a number above 0"),
        ([1.0, 1.0], 2.0, 0, "n_vehicles must be at least 1"),
    ],
)
def test_bad_arguments(demands, capacity, n_vehicles, message):
    with pytest.raises(ValueError, match=message):
        VehicleRouting(demands, capacity, n_vehicles)
