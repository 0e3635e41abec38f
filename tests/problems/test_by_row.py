"""Problems whose numbers differ by row: each row is decided as the problem of its own numbers decides it."""

from types import SimpleNamespace

import numpy as np
import pytest

from decidewise.problems import Inventory, Knapsack, MinCostFlow, Portfolio, Storage, TopK
from decidewise.problems.by_row import as_numbers
from decidewise.testing import check_problem

N_ROWS = 24
RNG = np.random.default_rng(0)
WEIGHTS, MANY = RNG.uniform(3.0, 8.0, size=(2, 9)).round(1), RNG.uniform(3.0, 8.0, size=(2, 30)).round(1)
TAILS, HEADS = [0, 0, 1, 1, 2, 3, 2], [1, 2, 2, 3, 3, 0, 1]
ROOTS = RNG.normal(size=(N_ROWS, 5, 5))


def supplies():
    whole = RNG.integers(0, 3, size=(N_ROWS, 3)).astype(float)
    return np.column_stack([whole, -whole.sum(axis=1)])


CASES = {
    "top-k": (TopK, {"n": 7}, {"k": RNG.integers(1, 8, size=N_ROWS)}, 0.0),
    "knapsack": (Knapsack, {"weights": WEIGHTS}, {"capacities": RNG.uniform(0, 35, size=(N_ROWS, 2)).round(1)}, 0.0),
    "knapsack-1d": (Knapsack, {"weights": WEIGHTS[0]}, {"capacities": RNG.uniform(0, 40, size=(N_ROWS, 1))}, 0.0),
    "knapsack-large": (Knapsack, {"weights": MANY}, {"capacities": RNG.uniform(9, 80, size=(N_ROWS, 2)).round(1)}, 0.0),
    "portfolio": (
        Portfolio,
        {},
        {"covariance": ROOTS @ ROOTS.transpose(0, 2, 1), "risk": RNG.uniform(0.1, 3, size=N_ROWS)},
        1e-9,
    ),
    "portfolio-risk": (
        Portfolio,
        {"covariance": np.eye(5), "budget": 2.0},
        {"risk": RNG.uniform(0.1, 3, N_ROWS)},
        1e-9,
    ),
    "storage": (
        Storage,
        {"periods": 6, "energy": 2.5, "final": 0.2},
        {
            "power": RNG.uniform(0.5, 3, size=N_ROWS),
            "initial": RNG.uniform(0, 2.5, size=N_ROWS),
            "efficiency": RNG.choice([0.7, 0.9, 1.0], size=N_ROWS),
        },
        1e-9,
    ),
    "inventory": (
        Inventory,
        {"limit": 4.0, "holding": 0.1},
        {
            "demand": RNG.uniform(0, 3, size=(N_ROWS, 6)),
            "capacity": RNG.uniform(1, 4, size=N_ROWS),
            "initial": RNG.uniform(0, 1, size=N_ROWS),
        },
        1e-9,
    ),
    "flow": (
        MinCostFlow,
        {"tails": TAILS, "heads": HEADS},
        {"supply": supplies(), "capacity": RNG.integers(6, 9, size=(N_ROWS, 7)).astype(float)},
        1e-9,
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    kind, fixed, by_row, tolerance = request.param
    return SimpleNamespace(
        problem=kind(**fixed, **by_row),
        single=lambda row: kind(**fixed, **{name: values[row] for name, values in by_row.items()}),
        tolerance=tolerance,
    )


def costs_for(problem, kind):
    rng = np.random.default_rng(1)
    if kind == "normal":
        return rng.normal(size=(N_ROWS, problem.n_costs))
    return rng.integers(-2, 3, size=(N_ROWS, problem.n_costs)).astype(float)  # with many ties


@pytest.mark.parametrize("kind", ["normal", "tied"])
def test_each_row_is_decided_as_its_own_problem_decides_it(case, kind):
    costs = costs_for(case.problem, kind)
    alone = np.array([case.single(row).solve(costs[row]) for row in range(N_ROWS)])
    np.testing.assert_allclose(case.problem.solve(costs), alone, atol=case.tolerance, rtol=0)
    assert np.all(np.linalg.norm(alone, axis=1) <= case.problem.B_S * (1 + 1e-12))
    for name, values in case.problem.solution(costs).items():
        assert values.shape == costs.shape
        np.testing.assert_allclose(values[3], case.single(3).solution(costs[3])[name], atol=1e-9)
        np.testing.assert_allclose(case.problem.take([3]).solution(costs[3])[name], values[3], atol=1e-9)


def test_the_contract(case):
    check_problem(case.problem, costs=costs_for(case.problem, "normal"), tolerance=case.tolerance)
    assert case.problem.polyhedron is None


def test_nearly_equal_values_are_no_harder_by_row():
    """The number of items that fit bounds each row; without it this search takes minutes."""
    problem = CASES["knapsack-large"][0](**CASES["knapsack-large"][1], **CASES["knapsack-large"][2])
    values = 1 + 1e-3 * np.random.default_rng(2).uniform(size=(N_ROWS, 30))
    decisions = problem.solve(values)
    for row in range(0, N_ROWS, 6):
        alone = Knapsack(MANY, problem.capacities[row]).solve(values[row])
        np.testing.assert_array_equal(decisions[row], alone)


def test_transportation_by_row():
    supply, demand = np.array([[2.0, 3.0], [1.0, 4.0]]), np.array([[4.0, 1.0], [2.0, 3.0]])
    problem = MinCostFlow.transportation(supply, demand)
    costs = [[1.0, 1.0, 2.0, 1.0], [3.0, 1.0, 2.0, 1.0]]
    for row in range(2):
        alone = MinCostFlow.transportation(supply[row], demand[row]).solve(costs[row])
        np.testing.assert_allclose(problem.solve(costs)[row], alone)


FLOW = {"tails": TAILS, "heads": HEADS}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TopK(4, [1, 5]), "cannot choose k=5 of n=4 items in row 1"),
        (lambda: TopK(4, [1, 0]), "k must be an integer of at least 1, or one such integer per row"),
        (lambda: TopK(4, [1.5, 2.0]), "k must be an integer of at least 1, or one such integer per row"),
        (lambda: Knapsack(WEIGHTS, np.ones((3, 5))), r"capacities must have one entry for each of the 2 rows of weigh"),
        (lambda: Knapsack(WEIGHTS[0], np.ones(5)), r"Pass capacities.reshape\(-1, 1\) for one number per sample"),
        (lambda: Knapsack(WEIGHTS, [[1.0, np.nan]]), "capacities must be finite; row 0, column 1 has NaN"),
        (lambda: Knapsack(WEIGHTS, [[1.0, 2.0], [1.0, -2.0]]), r"capacities\[1, 1\] is -2"),
        (lambda: Portfolio([np.eye(2), -np.eye(2)], 1.0), "row 1: covariance must be positive semidefinite"),
        (lambda: Portfolio(np.eye(2), [1.0, 0.0]), r"risk\[1\] must be a number above 0; got risk\[1\]=0"),
        (lambda: Portfolio(np.eye(2), []), "risk is empty: pass one number, or one per row"),
        (lambda: Portfolio(np.array([np.eye(2)] * 3), [1.0, 1.0]), "covariance has 3 rows, risk has 2 rows"),
        (lambda: Storage(3, 1.0, [1.0, np.nan]), "energy must be finite; row 1 has NaN"),
        (lambda: Storage(3, [1.0, 2.0], [1.0, 2.0, 3.0]), "power has 2 rows, energy has 3 rows"),
        (lambda: Storage(3, 1.0, [2.0, 1.0], initial=1.5), r"initial\[1\] must be a number at least 0 and at most 1"),
        (lambda: Storage(3, [1.0, 0.1], 2.0, final=1.0), "row 1: final=1 cannot be reached"),
        (lambda: Inventory([[1.0, 2.0], [1.0, -2.0]], 1.0), "demand must not be negative; row 1, period 1 has -2"),
        (lambda: Inventory([[1.0, 2.0], [1.0, 9.0]], 1.0, limit=2.0), "row 1: demand cannot be met from period 1 on"),
        (lambda: MinCostFlow(**FLOW, supply=[[1, 0, 0, -1], [1, 0, 0, 0]]), "that of row 1 sums to 1"),
        (
            lambda: MinCostFlow(**FLOW, supply=[[1, 0, 0, -1], [9, 0, 0, -9]], capacity=2.0),
            "row 1: the capacities do not let all supplies reach",
        ),
        (lambda: MinCostFlow(**FLOW, supply=[1, 0, 0, -1], capacity=np.ones((2, 3))), r"capacity.shape=\(2, 3\)"),
        (lambda: MinCostFlow.transportation([[1.0], [-1.0]], [1.0]), "supply must not be negative; row 1, entry 0"),
    ],
)
def test_bad_rows(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_numbers_by_row_have_bounds_by_row():
    assert as_numbers(2.0, name="power", above=0) == 2.0
    np.testing.assert_array_equal(as_numbers([1, 2], name="level", at_most=np.array([1.0, 2.0])), [1.0, 2.0])
    with pytest.raises(ValueError, match="level has 3 rows, level at_most has 2 rows"):
        as_numbers([1, 2, 3], name="level", at_most=np.array([1.0, 2.0]))
