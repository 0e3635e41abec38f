"""Levels under budgets: against a list of all choices and HiGHS; tables of costs against closed forms."""

import itertools

import numpy as np
import pandas as pd
import pytest

from decidewise import GeneralizedLinear, compare, decide
from decidewise.problems import (
    KnownCosts,
    Levels,
    LinearProgram,
    TopK,
    level_costs,
    level_features,
    lost_sales,
    newsvendor,
    overtime,
    service_level,
)
from decidewise.problems.levels.search import search_levels


def all_choices(problem):
    """Every choice of levels as a decision, the lowest levels of the first items first."""
    groups = np.split(np.arange(problem.n_costs), problem._starts[1:-1])
    return np.array([np.eye(problem.n_costs)[list(choice)].sum(axis=0) for choice in itertools.product(*groups)])


def first_best(decisions, costs):
    """The first of the best decisions of each row."""
    values = costs @ decisions.T
    return decisions[(values <= values.min(axis=1, keepdims=True) + 1e-9).argmax(axis=1)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["free", "budget", "weights", "total"])
def test_the_first_of_all_best_choices(seed, kind):
    rng = np.random.default_rng(seed)
    levels = [np.sort(rng.choice(9, size=rng.integers(1, 5), replace=False)) * 0.1 for _ in range(rng.integers(1, 6))]
    free = Levels(levels)
    uses = rng.uniform(-1, 9, free.n_costs) if kind == "weights" else free._flat
    decisions = all_choices(free)
    spent = decisions @ uses
    limit = rng.choice(spent)
    options = {
        "free": {},
        "budget": {"budget": limit},
        "weights": {"budget": limit, "consumption": uses},
        "total": {"total": limit},
    }[kind]
    kept = {"free": spent < np.inf, "total": np.abs(spent - limit) < 1e-9}.get(kind, spent < limit + 1e-9)
    tied = rng.integers(-2, 3, size=(40, free.n_costs)).astype(float)
    costs = np.vstack([np.zeros((1, free.n_costs)), tied, rng.normal(size=(40, free.n_costs))])
    problem = Levels(levels, **options)
    solved = problem.solve(costs)
    np.testing.assert_array_equal(solved, first_best(decisions[kept], costs))
    np.testing.assert_array_equal(problem.solve(0.3 * costs), solved)
    np.testing.assert_array_equal(Levels(levels, **options, sense="max").solve(-costs), solved)


@pytest.mark.parametrize("kind", ["budget", "total", "two budgets", "both"])
def test_a_large_row_is_as_good_as_that_of_highs(kind):
    rng = np.random.default_rng(1)
    levels = [np.arange(6.0)] * 12
    weights = np.repeat(rng.uniform(1, 3, 12), 6) * np.tile(np.arange(6), 12)
    two = {"consumption": [weights, np.tile(np.arange(6) ** 1.5, 12)], "budget": [40.0, 60.0]}
    options = {"budget": {"consumption": weights, "budget": 40.0}, "total": {"total": 31}, "two budgets": two}
    problem = Levels(levels, **options.get(kind, {**two, "total": 25}))
    region = problem.polyhedron
    sides = (None, None) if region.A_ub.shape[0] == 0 else (region.A_ub, region.b_ub)
    reference = LinearProgram(
        *sides, region.A_eq, region.b_eq, upper=region.upper, integrality=np.ones(problem.n_costs)
    )
    demand = rng.poisson(3.0, size=(5, 12)).astype(float)
    costs = level_costs(demand, levels, newsvendor(1, 4)) + rng.normal(0, 0.1, size=(5, 72))
    found = (costs * problem.solve(costs)).sum(axis=1)
    np.testing.assert_allclose(found, (costs * reference.solve(costs)).sum(axis=1), rtol=1e-7)


@pytest.mark.parametrize("fixed", [False, True])
def test_a_row_that_would_fill_the_memory_is_given_up_and_goes_to_highs(fixed):
    """Consumption in fractions, and costs in proportion to it: hardly any partial solution is worse than another."""
    rng = np.random.default_rng(0)
    uses = np.sort(rng.uniform(1, 10, size=(30, 11)), axis=1)
    budget, starts, steps = 0.4 * uses[:, -1].sum(), np.arange(0, 331, 11), np.array([2 * 10**8])
    _, stuck = search_levels(-uses.reshape(1, -1), steps, np.array([[budget]]), starts, uses.ravel(), fixed)
    assert stuck == 0
    assert steps[0] > 0
    if not fixed:
        problem = Levels([np.arange(11)] * 30, consumption=uses.ravel(), budget=budget, gap=1e-3)
        assert 0.999 * budget < uses.ravel() @ problem.solve(-uses.ravel()) <= budget * (1 + 1e-9)


def test_budgets_and_totals_by_row():
    levels, costs = [[0, 1, 2], [0, 1, 2, 3]], np.tile([5.0, 3.0, 0.0, 4.0, 2.0, 1.0, 0.0], (3, 1))
    by_budget = Levels(levels, budget=[[0], [3], [9]])
    assert by_budget.levels_of(by_budget.solve(costs)).tolist() == [[0, 0], [2, 1], [2, 3]]
    by_total = Levels(levels, total=[5, 1, 0])
    assert by_total.levels_of(by_total.solve(costs)).tolist() == [[2, 3], [0, 1], [0, 0]]
    assert by_total.take([2, 0]).levels_of(by_total.take([2, 0]).solve(costs[:2])).tolist() == [[0, 0], [2, 3]]
    both = Levels(levels, budget=[[2], [5], [5]], total=[2, 3, 4])
    assert both.levels_of(both.solve(costs)).sum(axis=1).tolist() == [2, 3, 4]


def test_a_cost_that_forbids_a_level_leaves_the_others_exact():
    problem = Levels([[0, 1, 2]] * 3, budget=3)
    costs = np.array([1e15, 1.0, 0.9, 1.0, 0.8, 1e15, 1e15, 0.3, 0.3])
    assert problem.levels_of(problem.solve(costs)).tolist() == [1, 1, 1]
    assert problem.levels_of(problem.solve(costs * 1e290)).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": [[0, 2], [3, 1]]}, "the levels of item 1 must increase; got 3 and then 1"),
        ({"levels": [[0, np.inf]]}, r"levels\[0\] must be finite"),
        ({"levels": [0, 1, 2]}, "levels must be a list of levels for each item"),
        ({"levels": [[0], []]}, "levels must be a list of levels for each item"),
        ({"levels": [[1, 2], [7, 9]], "budget": 5}, r"budget 0, 5: .* take 8, of which item 1 alone takes 7"),
        ({"levels": [[1, 2], [7, 9]], "budget": [[9], [5]]}, "budget 0 of row 1, 5"),
        ({"levels": [[1, 2]], "budget": [5, 6]}, r"Pass budget.reshape\(-1, 1\)"),
        ({"levels": [[1, 2]], "consumption": [1, 2]}, "pass budget too"),
        ({"levels": [[1, 2]], "consumption": [1], "budget": 3}, "one entry for each of the 2 levels"),
        ({"levels": [[1, 2], [1, 2]], "total": 9}, "the lowest sum to 2, and the highest to 4"),
        ({"levels": [[1, 2]], "cost": "newsvendor"}, "cost must be a function"),
        ({"levels": [[1, 2]], "cost": {"name": "newsvender"}}, "'newsvendor'"),
        ({"levels": [[1, 2]], "cost": {"name": "newsvendor", "over": 1}}, "under"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Levels(**arguments)


def test_a_total_that_no_levels_meet():
    with pytest.raises(Exception, match=r"row 0: no levels sum to the total of this row, 3"):
        Levels([[0, 2], [0, 2]], total=3).solve(np.ones(4))


@pytest.mark.parametrize(("over", "under"), [(1.0, 3.0), (2.0, 2.0), (5.0, 1.0)])
def test_the_best_level_is_the_quantile_of_the_demand(over, under):
    demand = np.random.default_rng(0).gamma(2.0, 10.0, size=(999, 2))
    levels = [np.arange(120.0), np.sort(demand[:, 1])]
    expected = np.quantile(demand, under / (over + under), axis=0, method="inverted_cdf")
    for cost in (newsvendor(over, under), service_level(under / (over + under))):
        problem = Levels(levels, cost=cost)
        best = problem.levels_of(problem.solve(level_costs(demand, levels, cost).mean(axis=0)))
        assert abs(best[0] - expected[0]) <= 1
        assert best[1] == expected[1]


def test_costs_of_levels_are_what_the_words_say():
    demand, levels = np.array([[3.0, 8.0]]), [[5.0], [5.0]]
    np.testing.assert_allclose(level_costs(demand, levels, newsvendor([1, 2], [3, 4])), [[2.0, 12.0]])
    np.testing.assert_allclose(level_costs(demand, levels, lost_sales([9, 8], 2, 1)), [[10 - 27 - 2, 10 - 40]])
    np.testing.assert_allclose(level_costs(demand, levels, overtime(2, 7)), [[10, 10 + 21]])
    np.testing.assert_allclose(level_costs(demand, levels, lambda level, demand: (level - demand) ** 2), [[4, 9]])
    frame = pd.DataFrame(demand, columns=["a", "b"])
    np.testing.assert_array_equal(level_costs(frame, levels, newsvendor(1, 3)), [[2.0, 9.0]])


def test_a_second_stage_for_each_of_a_list_of_first_decisions():
    """Two plants and two markets: the cheapest shipment, by HiGHS, against a closed form."""
    plans, demand = np.array([[4.0, 0.0], [2.0, 2.0]]), np.array([[3.0, 1.0], [0.0, 5.0]])

    def second_stage(plan, demand):
        stock = plans[int(plan[0])]
        sides = np.column_stack([demand, np.broadcast_to(stock, demand.shape)])
        ship = LinearProgram([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]], sides, sense="max")
        prices = np.tile([5.0, 3.0, 3.0, 5.0], (len(demand), 1))
        return 2 * stock.sum() - (prices * ship.solve(prices)).sum(axis=1)

    table = level_costs(demand, [[0, 1]], second_stage)
    np.testing.assert_allclose(table, [[8 - 18, 8 - 10 - 5 - 3], [8 - 12, 8 - 10 - 6]])


@pytest.mark.parametrize(
    ("demand", "cost", "message"),
    [
        ([[1.0, -2.0]], newsvendor(1, 1), "demand must not be negative; row 0, item 1 has -2"),
        ([[1.0, np.nan]], newsvendor(1, 1), "demand must be finite; row 0, column 1 has NaN"),
        ([[1.0, 2.0]], lambda level, demand: 1.0, "cost must return a number for each row and item"),
        ([[1.0, 2.0]], lambda level, demand: np.inf + 0 * demand, "what cost returns must be finite"),
    ],
)
def test_bad_demand(demand, cost, message):
    with pytest.raises(ValueError, match=message):
        level_costs(demand, [[1, 2], [1]], cost)


def test_scenarios_of_demand_and_of_costs_become_mean_costs():
    rng = np.random.default_rng(3)
    demand = rng.gamma(2.0, 3.0, size=(4, 50, 2))
    problem = Levels([[0, 3, 6], [1, 2]], budget=6, cost=newsvendor(1, 4))
    tables = level_costs(demand.reshape(-1, 2), problem.levels, problem.cost).reshape(4, 50, 5)
    np.testing.assert_allclose(problem.as_costs(demand), tables.mean(axis=1))
    np.testing.assert_allclose(problem.as_costs(tables), tables.mean(axis=1))
    np.testing.assert_allclose(problem.as_costs(demand[:, 0]), tables[:, 0])
    np.testing.assert_array_equal(KnownCosts(problem, np.zeros(5)).as_costs(demand), problem.as_costs(demand))
    with pytest.raises(ValueError, match=r"scenarios of shape \(n, samples, 5\)"):
        problem.as_costs(rng.uniform(size=(4, 50, 3)))


def test_a_function_of_one_item_may_take_demand_of_several_products():
    problem = Levels([[0, 1, 2]], cost=lambda plan, demand: (plan[0] * 2 - demand.sum(axis=-1)) ** 2)
    demand = np.array([[0.0, 2.0], [1.0, 3.0]])
    np.testing.assert_allclose(problem.as_costs(demand), [[4, 0, 4], [16, 4, 0]])
    np.testing.assert_allclose(problem.as_costs(demand[np.newaxis]), [[10, 2, 2]])


def test_one_linear_model_of_level_features_is_one_for_each_place_in_the_lists():
    rng = np.random.default_rng(5)
    X, levels = rng.normal(size=(40, 3, 2)), [[0, 1, 2]] * 3
    costs = rng.normal(size=(40, 9))
    shared = GeneralizedLinear().fit(level_features(X, levels), costs).predict(level_features(X, levels))
    for place in range(3):
        own = costs.reshape(40, 3, 3)[:, :, place]
        expected = GeneralizedLinear().fit(X, own).predict(X)
        np.testing.assert_allclose(shared.reshape(40, 3, 3)[:, :, place], expected, atol=1e-9)
    halves = level_features(np.ones((1, 2, 1)), [[0, 5, 10], [0, 1]])[0]
    np.testing.assert_array_equal(halves[3:], [[1, 0, 0, 0, 0], [0, 0, 1, 0, 1]])
    with pytest.raises(ValueError, match=r"each of the 2 items, \(n, 2, q\); got X.shape=\(40, 3, 2\)"):
        level_features(X, [[0, 1], [2]])


class Says:
    """A model that predicts what it is given as features."""

    def predict(self, X):
        return X


def test_compare_and_decide_take_demand_and_scenarios():
    rng = np.random.default_rng(4)
    scenarios, demand = rng.gamma(2.0, 3.0, size=(30, 40, 2)), rng.gamma(2.0, 3.0, size=(30, 2))
    problem = Levels([[0, 3, 6, 9], [1, 2, 5]], budget=9, cost=newsvendor(1, 4))
    table = level_costs(demand, problem.levels, problem.cost)
    expected = problem.as_costs(scenarios)
    compared = compare(problem, {"point": scenarios.mean(axis=1), "scenarios": scenarios, "mean": expected}, demand)
    by_hand = compare(problem, {"point": problem.as_costs(scenarios.mean(axis=1)), "mean": expected}, table)
    assert compared[0].regret == by_hand[0].regret
    assert compared[1].regret == compared[2].regret == by_hand[1].regret
    np.testing.assert_array_equal(decide(Says(), problem, scenarios), problem.solve(expected))
    cheapest, costs = TopK(3, 1, sense="min"), rng.normal(size=(5, 7, 3))
    np.testing.assert_array_equal(decide(Says(), cheapest, costs), cheapest.solve(costs.mean(axis=1)))
    with pytest.raises(ValueError, match="demand must not be negative; row 2, item 1 has -1"):
        compare(problem, {"zero": 0 * demand[:3]}, [[1.0, 2.0], [3.0, 4.0], [5.0, -1.0]])
    with pytest.raises(ValueError, match=r"predictions\['a'\] must be scenarios of shape \(n, samples, 3\)"):
        compare(cheapest, {"a": rng.normal(size=(5, 7, 4))}, costs[:, 0])
