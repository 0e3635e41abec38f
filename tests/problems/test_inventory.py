import numpy as np
import pytest
from scipy.optimize import linprog

from decidewise.problems import Inventory


def best_by_highs(problem, prices):
    """The least cost by the linear program in purchases and stocks."""
    n = problem.n_costs
    balance = np.hstack([np.eye(n), np.eye(n, k=-1) - np.eye(n)])
    needed = problem.demand.copy()
    needed[0] -= problem.initial
    bounds = [(0, problem.limit)] * n + [(0, problem.capacity)] * (n - 1) + [(problem.final, problem.capacity)]
    return linprog(np.concatenate([prices, problem.holding]), A_eq=balance, b_eq=needed, bounds=bounds)


def random_problem(rng):
    demand = rng.exponential(size=int(rng.integers(1, 12))) * rng.integers(0, 2)
    capacity = rng.uniform(0, 3)
    return Inventory(
        demand,
        capacity,
        limit=rng.choice([None, demand.max() + 0.1]),
        holding=rng.choice([0.0, 0.3, -0.1]) * rng.uniform(size=len(demand)),
        initial=capacity * rng.choice([0.0, rng.uniform()]),
        final=capacity * rng.choice([0.0, 0.03]),
    )


def test_equals_highs_with_holding_costs():
    rng = np.random.default_rng(0)
    for _ in range(60):
        problem = random_problem(rng)
        for prices in (rng.normal(1, 1, size=problem.n_costs), rng.integers(0, 3, size=problem.n_costs).astype(float)):
            solution = problem.solution(prices)
            bought, stock = solution["bought"], solution["stock"]
            balance = problem.initial + np.cumsum(bought - problem.demand)
            np.testing.assert_allclose(stock, balance, atol=1e-12)
            assert stock[-1] >= problem.final - 1e-12
            assert bought.min() >= 0
            assert bought.max() <= problem.limit
            cost = prices @ bought + problem.holding @ stock
            assert cost == pytest.approx(best_by_highs(problem, prices).fun, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0, 3.0, -1.0])
def test_the_lifted_problem_weighs_the_holding_cost(weight):
    rng = np.random.default_rng(1)
    demand, holding = rng.uniform(size=8), rng.uniform(0.1, 0.3, size=8)
    problem = Inventory(demand, 1.5, holding=holding, initial=0.2)
    prices = rng.uniform(size=(20, 8))
    lifted = problem.minimize_lifted(np.column_stack([prices, np.full(20, weight)]))
    weighted = Inventory(demand, 1.5, holding=weight * holding, initial=0.2)
    np.testing.assert_array_equal(lifted[:, :-1], weighted.minimize(prices))
    stock = 0.2 + np.cumsum(lifted[:, :-1] - demand, axis=1)
    np.testing.assert_allclose(lifted[:, -1], stock @ holding, atol=1e-12)
    if weight == 1.0:
        np.testing.assert_array_equal(lifted[:, :-1], problem.minimize(prices))


def test_known_costs_are_there_only_if_holding_costs_something():
    assert Inventory([1.0, 2.0], 1.0, holding=0.1).has_known
    assert not Inventory([1.0, 2.0], 1.0).has_known


def test_ties_buy_as_late_as_possible():
    np.testing.assert_array_equal(Inventory([1, 1, 2], 5.0).solve([0.3, 0.3, 0.3]), [1, 1, 2])
    np.testing.assert_array_equal(Inventory([1, 1, 2], 5.0, holding=0.1).solve([0.1, 0.2, 0.3]), [1, 1, 2])


def test_a_price_that_forbids_does_not_blur_the_others():
    problem = Inventory([1, 1, 1, 1], 3.0)
    np.testing.assert_array_equal(problem.solve([1.0, 0.9, 1e15, 1.1]), [1, 3, 0, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"demand": [1.0, -1.0]}, "demand must not be negative; period 1 has -1"),
        ({"demand": []}, "demand is empty"),
        ({"capacity": -1.0}, "capacity must be a number at least 0"),
        ({"holding": [1.0, 2.0, 3.0]}, "holding"),
        ({"initial": 9.0}, "initial must be a number at least 0 and at most 1"),
        (
            {"limit": 1.5},
            "demand cannot be met from period 0 on: that needs a stock of 1 at its start, and there can be 0",
        ),
        ({"demand": [0.0, 4.0], "limit": 2.0}, "from period 1 on: that needs a stock of 2 at its start, and .* be 1"),
    ],
)
def test_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        Inventory(**({"demand": [2.0, 2.0], "capacity": 1.0} | change))
