"""What every problem promises, checked on every problem: add a case here with each new one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from decidewise import problems
from decidewise.problems import (
    Assignment,
    Ball,
    ConicProgram,
    Ellipsoid,
    Inventory,
    Knapsack,
    KnownCosts,
    Levels,
    LinearProgram,
    Matching,
    MinCostFlow,
    Portfolio,
    Problem,
    Quadratic,
    QuadraticProgram,
    Ranking,
    ShortestPath,
    Storage,
    TopK,
    TravellingSalesman,
    VehicleRouting,
)
from decidewise.problems.views import View
from decidewise.testing import check_problem


@dataclass(frozen=True)
class Case:
    build: Callable[..., Problem]  # takes `sense`
    sample: Callable[[np.random.Generator], np.ndarray]  # a feasible decision, found without the solver
    tolerance: float = 0.0  # decisions of finite sets are equal to the bit
    known: Callable[[np.ndarray], np.ndarray] = lambda decisions: np.zeros(
        len(decisions)
    )  # what decisions cost besides


def random_path(problem, rng):
    """Walk at random from the source; start again at a dead end."""
    decision, node = np.zeros(problem.n_costs), problem.source
    while node != problem.target:
        edges = np.flatnonzero(problem.tails == node)
        if len(edges) == 0:
            decision[:], node = 0.0, problem.source
            continue
        edge = rng.choice(edges)
        decision[edge], node = 1.0, problem.heads[edge]
    return decision


def random_items(weights, capacities, rng):
    """Take items in random order as long as they fit, and stop at random."""
    decision = np.zeros(weights.shape[1])
    for item in rng.permutation(len(decision))[: rng.integers(len(decision) + 1)]:
        decision[item] = 1.0
        if np.any(weights @ decision > capacities):
            decision[item] = 0.0
    return decision


def random_levels(levels, most, rng, *, least=-np.inf):
    """Take random levels until their sum is allowed."""
    while True:
        chosen = [rng.integers(len(own)) for own in levels]
        if least <= sum(own[j] for own, j in zip(levels, chosen, strict=True)) <= most:
            return np.concatenate([np.eye(len(own))[j] for own, j in zip(levels, chosen, strict=True)])


def random_tour(problem, rng):
    """Visit the nodes in random order."""
    places = rng.permutation(problem.n_nodes)
    apart = np.abs(places[problem.ends[0]] - places[problem.ends[1]])
    return np.isin(apart, [1, problem.n_nodes - 1]).astype(float)


def random_routes(problem, rng):
    """Cut a random order of the customers into routes of two or more, until all loads fit."""
    n = len(problem.demands)
    while True:
        order = rng.permutation(n)
        routes = np.split(order, np.sort(rng.choice(n, size=rng.integers(problem.n_vehicles), replace=False)))
        if all(len(route) >= 2 and problem.demands[route].sum() <= problem.capacity for route in routes):
            break
    edges = {tuple(sorted(pair)) for route in routes for pair in zip([0, *(route + 1)], [*(route + 1), 0], strict=True)}
    return np.array([float(tuple(pair) in edges) for pair in problem.ends.T.tolist()])


def random_weights(covariance, risk, budget, rng):
    """Scale a random portfolio down to its budget and its risk."""
    weights = rng.exponential(size=len(covariance)) * rng.integers(0, 2, size=len(covariance))
    weights *= budget / max(weights.sum(), 1e-9)
    return weights * min(1.0, np.sqrt(risk / max(weights @ covariance @ weights, 1e-9)))


def random_production(A, b, rng):
    """Scale a random plan down to what there is."""
    plan = rng.uniform(0.0, 2.0, size=A.shape[1]) * rng.integers(0, 2, size=A.shape[1])
    return plan * min(1.0, np.min(b / np.maximum(A @ plan, 1e-9)))


def quadratic_program(matrix, sense="min"):
    return QuadraticProgram(matrix if sense == "min" else -matrix, USE, STOCK, upper=2, sense=sense)


def random_in_ellipsoid(matrix, radius, rng):
    point = rng.normal(size=len(matrix))
    return point * rng.uniform() * radius / np.sqrt(point @ matrix @ point)


def random_pairs(problem, rng):
    """Match edges in random order as long as both nodes are free; start again if a complete matching is missed."""
    while True:
        decision, taken = np.zeros(problem.n_costs), set()
        for edge in rng.permutation(problem.n_costs)[: problem.n_costs if problem.complete else rng.integers(99)]:
            ends = {("left", problem.edges[edge, 0]), ("right", problem.edges[edge, 1])}
            if not ends & taken:
                decision[edge] = 1.0
                taken |= ends
        if not problem.complete or decision.sum() == min(problem.left, problem.right):
            return decision


def random_trades(store, rng):
    """Trade at random within the limits of each period and of cycles, on a store that need not be full at the end."""
    sales, level = np.empty(store.n_costs), store.initial
    left = np.inf if store.cycles is None else store.cycles * store.energy
    out = store.discharge_efficiency
    for period in range(store.n_costs):
        most = min(store.discharge_power or store.power, out * min(level, left))
        sales[period] = rng.choice([rng.uniform(-store.power, most), -store.power, 0.0])
        taken = max(sales[period], 0.0) / out
        left -= taken
        level = min(level - taken + store.efficiency * max(-sales[period], 0.0), store.energy)
    return sales


def random_purchases(problem, rng):
    """Buy at random within the limits of each period, and what is needed to meet the demand to come."""
    purchases, stock = np.empty(problem.n_costs), problem.initial
    for period, demand in enumerate(problem.demand):
        ahead = np.cumsum(problem.demand[period + 1 :] - problem.limit)
        needed = demand - stock + max(0.0, ahead.max(initial=0.0))
        most = min(problem.limit, problem.capacity + demand - stock)
        purchases[period] = rng.choice([rng.uniform(max(needed, 0.0), most), max(needed, 0.0), most])
        stock += purchases[period] - demand
    return purchases


def random_flow(problem, rng):
    """Try whole flows until one meets all supplies."""
    while True:
        flow = rng.integers(0, problem.capacity + 1).astype(float)
        net = np.bincount(problem.tails, flow, minlength=4) - np.bincount(problem.heads, flow, minlength=4)
        if np.array_equal(net, problem.supply):
            return flow


EDGES = {"tails": [0, 0, 2, 2, 5, 5, 5, 2, 3], "heads": [2, 5, 5, 9, 9, 9, 7, 7, 0], "source": 0, "target": 9}
PAIRS = {"edges": [[4, 0], [0, 0], [0, 3], [1, 1], [1, 2], [2, 2], [3, 2], [3, 3], [4, 1]]}
DEMAND = np.array([0.5, 2.0, 1.0, 2.5, 0.0, 3.0])
NETWORK = {"tails": [0, 0, 1, 1, 2, 3, 2], "heads": [1, 2, 2, 3, 3, 0, 1], "supply": [2, 1, 0, -3], "capacity": 2.0}
FLEET = [3.0, 1.0, 2.0, 2.0, 1.0], 5.0, 2
WEIGHTS = np.random.default_rng(0).uniform(3.0, 8.0, size=(2, 12)).round(1)
MANY = np.random.default_rng(6).uniform(3.0, 8.0, size=(2, 30)).round(1)  # too many packs to list
CAPACITIES = np.array([20.0, 25.0])
STEPS = [[0.0, 1.0, 3.0], [0.0, 2.0], [1.0, 2.0, 3.0, 4.0], [0.0, 5.0]]
ROOT = np.random.default_rng(1).normal(size=(6, 6))
MATRIX = ROOT @ ROOT.T + 0.1 * np.eye(6)
USE = np.random.default_rng(7).integers(0, 5, size=(5, 9)).astype(float)
STOCK = np.full(5, 12.0)

WEAR = np.eye(USE.shape[1]) + USE.T @ USE / 10
AS_SOLD = {"discharge_power": 1.1, "discharge_efficiency": 0.95, "initial": 0.4}
CASES = {
    "grid": Case(partial(ShortestPath, 5, 5), partial(random_path, ShortestPath(5, 5))),
    "wide-grid": Case(partial(ShortestPath, 2, 7), partial(random_path, ShortestPath(2, 7))),
    "graph": Case(partial(ShortestPath.from_edges, **EDGES), partial(random_path, ShortestPath.from_edges(**EDGES))),
    "top-k": Case(partial(TopK, 9, 4), lambda rng: rng.permutation(np.repeat([1.0, 0.0], [4, 5]))),
    "assignment": Case(partial(Assignment, 4), lambda rng: rng.permutation(np.eye(4)).ravel()),
    "matching": Case(partial(Matching, 3, 4), partial(random_pairs, Matching(3, 4))),
    "matching-sparse": Case(partial(Matching, 5, 4, **PAIRS), partial(random_pairs, Matching(5, 4, **PAIRS))),
    "matching-complete": Case(
        partial(Matching, 5, 4, complete=True, **PAIRS), partial(random_pairs, Matching(5, 4, complete=True, **PAIRS))
    ),
    "flow": Case(partial(MinCostFlow, **NETWORK), partial(random_flow, MinCostFlow(**NETWORK)), tolerance=1e-9),
    "ranking": Case(partial(Ranking, 5), lambda rng: rng.permutation(5) + 1.0),
    "ranking-long": Case(partial(Ranking, 12), lambda rng: rng.permutation(12) + 1.0),
    "knapsack": Case(partial(Knapsack, WEIGHTS, CAPACITIES), partial(random_items, WEIGHTS, CAPACITIES)),
    "knapsack-1d": Case(partial(Knapsack, WEIGHTS[:1], CAPACITIES[:1]), partial(random_items, WEIGHTS[:1], 20.0)),
    "knapsack-large": Case(partial(Knapsack, MANY, 2 * CAPACITIES), partial(random_items, MANY, 2 * CAPACITIES)),
    "levels": Case(partial(Levels, STEPS), partial(random_levels, STEPS, np.inf)),
    "levels-budget": Case(partial(Levels, STEPS, budget=9.0), partial(random_levels, STEPS, 9.0)),
    "levels-total": Case(partial(Levels, STEPS, total=9.0), partial(random_levels, STEPS, 9.0, least=9.0)),
    "tour": Case(partial(TravellingSalesman, 7), partial(random_tour, TravellingSalesman(7))),
    "tour-large": Case(partial(TravellingSalesman, 14), partial(random_tour, TravellingSalesman(14))),
    "routes": Case(partial(VehicleRouting, *FLEET), partial(random_routes, VehicleRouting(*FLEET))),
    "inventory": Case(
        partial(Inventory, DEMAND, 2.5, limit=2.0, initial=1.0),
        partial(random_purchases, Inventory(DEMAND, 2.5, limit=2.0, initial=1.0)),
        tolerance=1e-9,
    ),
    "storage": Case(partial(Storage, 6, 1.0, 2.5), partial(random_trades, Storage(6, 1.0, 2.5)), tolerance=1e-9),
    "storage-lossless": Case(
        partial(Storage, 7, 1.5, 2.0, efficiency=1.0, initial=0.7),
        partial(random_trades, Storage(7, 1.5, 2.0, efficiency=1.0, initial=0.7)),
        tolerance=1e-9,
    ),
    "storage-cycles": Case(
        partial(Storage, 7, 1.5, 2.0, **AS_SOLD, cycles=1.2),
        partial(random_trades, Storage(7, 1.5, 2.0, **AS_SOLD, cycles=1.2)),
        tolerance=1e-9,
    ),
    "storage-wear": Case(
        partial(Storage, 7, 1.5, 2.0, **AS_SOLD, wear=0.3, cycles=0.8),
        partial(random_trades, Storage(7, 1.5, 2.0, **AS_SOLD, wear=0.3, cycles=0.8)),
        tolerance=1e-9,
        known=lambda decisions: 0.3 * np.maximum(decisions, 0).sum(axis=1),
    ),
    "portfolio": Case(partial(Portfolio, MATRIX, 0.3), partial(random_weights, MATRIX, 0.3, 1.0), tolerance=1e-9),
    "portfolio-loose": Case(
        partial(Portfolio, MATRIX, 1e3, budget=2.0), partial(random_weights, MATRIX, 1e3, 2.0), tolerance=1e-9
    ),
    "program": Case(
        partial(LinearProgram, USE, STOCK, upper=2), partial(random_production, USE, STOCK), tolerance=1e-9
    ),
    "conic": Case(
        partial(ConicProgram, np.ones((1, 6)), [1.0], upper=1, cones=[Quadratic(MATRIX, r=0.3)]),
        partial(random_weights, MATRIX, 0.3, 1.0),
        tolerance=1e-5,
    ),
    "quadratic": Case(
        partial(quadratic_program, WEAR),
        partial(random_production, USE, STOCK),
        tolerance=1e-9,
        known=lambda decisions: ((decisions @ WEAR) * decisions).sum(axis=1) / 2,
    ),
    "ball": Case(partial(Ball, 6, 2.0), partial(random_in_ellipsoid, np.eye(6), 2.0), tolerance=1e-9),
    "ellipsoid": Case(partial(Ellipsoid, MATRIX, 2.0), partial(random_in_ellipsoid, MATRIX, 2.0), tolerance=1e-9),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


@pytest.fixture
def problem(case):
    return case.build()


@pytest.fixture
def normal_costs(problem):
    return np.random.default_rng(2).normal(size=(60, problem.n_costs))


@pytest.fixture
def tied_costs(problem):
    """Small integers, the first row all zero."""
    costs = np.random.default_rng(3).integers(-2, 3, size=(60, problem.n_costs)).astype(float)
    costs[0] = 0.0
    return costs


@pytest.fixture
def all_costs(normal_costs, tied_costs):
    return np.vstack([normal_costs, tied_costs])


def test_every_problem_has_a_case():
    public = [getattr(problems, name) for name in problems.__all__]
    classes = {item for item in public if isinstance(item, type) and issubclass(item, Problem)}
    wrappers = {item for item in classes if issubclass(item, View)}  # tested around problems, in files of their own
    assert {type(case.build()) for case in CASES.values()} == classes - wrappers - {Problem}


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_contract(case, sense, all_costs):
    check_problem(case.build(sense=sense), costs=all_costs, tolerance=case.tolerance)


def test_details_of_exact_decisions(problem, all_costs):
    details = problem.solve_details(all_costs)
    np.testing.assert_array_equal(details.decisions, problem.solve(all_costs))
    assert set(details.status) == {"optimal"}
    np.testing.assert_array_equal(details.bound, details.objective)
    objective = (all_costs * details.decisions).sum(axis=1)
    if not problem.has_known:
        np.testing.assert_allclose(details.objective, objective, atol=1e-12)


def test_lists_are_costs_too(problem, normal_costs):
    np.testing.assert_array_equal(problem.solve(normal_costs.tolist()), problem.solve(normal_costs))


def test_bad_sense(case):
    with pytest.raises(ValueError, match="sense must be one of 'min', 'max'; got 'least'"):
        case.build(sense="least")


@pytest.mark.parametrize("sense", ["min", "max"])
def test_no_sampled_decision_is_better(case, all_costs, sense):
    problem = case.build(sense=sense)
    rng = np.random.default_rng(4)
    sampled = np.array([case.sample(rng) for _ in range(300)])
    decisions = problem.solve(all_costs)
    sign = 1 if sense == "min" else -1
    best = sign * (all_costs * decisions).sum(axis=1) + case.known(decisions)
    assert np.all(best[:, None] <= sign * all_costs @ sampled.T + case.known(sampled) + 1e-9)


def test_sampled_decisions_lie_in_the_polyhedron(case, problem):
    region = problem.polyhedron
    if region is None:
        pytest.skip("not polyhedral")
    rng = np.random.default_rng(5)
    for decision in (case.sample(rng) for _ in range(50)):
        assert np.all(region.A_ub @ decision <= region.b_ub + 1e-9)
        np.testing.assert_allclose(region.A_eq @ decision, region.b_eq, atol=1e-9)
        assert np.all((region.lower <= decision) & (decision <= region.upper))


def test_norm_bound(problem, all_costs):
    assert np.all(np.linalg.norm(problem.solve(all_costs), axis=1) <= problem.B_S * (1 + 1e-12))


def test_memory_layout_does_not_matter(problem, all_costs):
    """Columns first, every other row, or read-only as a memory map would be."""
    expected = problem.solve(all_costs[::2].copy())
    read_only = all_costs[::2].copy()
    read_only.setflags(write=False)
    for costs in (np.asfortranarray(all_costs[::2]), all_costs[::2], read_only):
        np.testing.assert_array_equal(problem.solve(costs), expected)


def test_float32_is_widened(problem, normal_costs):
    narrow = normal_costs.astype(np.float32)
    np.testing.assert_array_equal(problem.solve(narrow), problem.solve(narrow.astype(np.float64)))


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (np.inf, r"\+inf"), (-np.inf, "-inf")])
def test_not_finite(problem, normal_costs, value, shown):
    normal_costs[7, 2] = value
    with pytest.raises(ValueError, match=f"row 7, column 2 has {shown}"):
        problem.solve(normal_costs)
    with pytest.raises(ValueError, match=f"row 0, column 2 has {shown}"):
        problem.solve(normal_costs[7])


@pytest.mark.parametrize("shape", [(3, -1), (3, 1), (-1,), (1,)], ids=["fewer", "more", "fewer-1d", "more-1d"])
def test_wrong_number_of_costs(problem, shape):
    *rows, extra = shape
    costs = np.ones((*rows, problem.n_costs + extra))
    with pytest.raises(ValueError, match=f"{type(problem).__name__} needs {problem.n_costs} columns"):
        problem.solve(costs)


def test_empty_batch(problem):
    assert problem.solve(np.empty((0, problem.n_costs))).shape == (0, problem.n_costs)


@pytest.mark.parametrize("costs", [1.0, [[["a"]]], np.ones((2, 3, 4))])
def test_not_a_matrix(problem, costs):
    with pytest.raises(ValueError, match="costs must be"):
        problem.solve(costs)


def test_the_representation_rebuilds_the_problem(problem, normal_costs):
    shown = repr(problem)
    if isinstance(problem, LinearProgram | ConicProgram) or "..." in shown:
        pytest.skip("its matrices may be sparse and large, or are abbreviated")
    again = eval(shown, {**vars(problems), **{type(problem).__name__: type(problem)}, "inf": np.inf})
    assert repr(again) == shown
    np.testing.assert_array_equal(again.solve(normal_costs), problem.solve(normal_costs))


def test_the_representation_is_short_and_follows_the_rows():
    assert repr(Storage(24, power=1.0, energy=2.0)) == "Storage(periods=24, power=1.0, energy=2.0, sense='max')"
    assert repr(TopK(4, [1, 3, 2]).take([2, 0])) == "TopK(n=4, k=[2, 1], sense='max')"
    many = repr(Knapsack(np.arange(1.0, 301.0), [400.0]))
    assert many == "Knapsack(weights=[[1., 2., 3., ..., 298., 299., 300.]], capacities=[400.0], sense='max')"
    known = KnownCosts(TopK(2, 1), [1.0, 4.0])
    assert repr(known) == "KnownCosts(problem=TopK(n=2, k=1, sense='max'), known=[1.0, 4.0])"
