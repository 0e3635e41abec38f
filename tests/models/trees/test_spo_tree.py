from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from decidewise import SpoTreeRegressor, normalized_regret
from decidewise.data import make_shortest_path
from decidewise.models.trees.growing import Growth, prune
from decidewise.models.trees.samples import TreeSamples
from decidewise.problems import Ball, Knapsack, KnownCosts, Portfolio, ShortestPath, TopK
from decidewise.problems.views import lift
from decidewise.testing import check_model

RNG = np.random.default_rng(0)
N = 30
FIXED_COSTS = KnownCosts(TopK(4, 1, sense="min"), [0.0, 0.4, 0.0, 0.2])
OWN_COSTS = KnownCosts(TopK(4, 1, sense="min"), RNG.uniform(size=(N, 4)))
OWN_CAPACITY = Knapsack([1.0, 2.0, 1.5, 1.0], RNG.uniform(1, 4, size=(N, 1)))
PROBLEMS = {
    "top-k": TopK(4, 2),
    "path": ShortestPath(2, 2),
    "portfolio": Portfolio(np.diag([1.0, 2.0, 3.0, 4.0]), 0.3),
    "known": FIXED_COSTS,
    "known by row": OWN_COSTS,
    "by row": OWN_CAPACITY,
}


@parametrize_with_checks(
    [SpoTreeRegressor(Ball(1), min_samples_leaf=1, validation_fraction=None)],
    expected_failed_checks=lambda _: {"check_regressor_multioutput": "the problem fixes the number of outputs"},
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return PROBLEMS[request.param]


def paid(problem, prediction, costs):
    """The cost to minimise of each row's decision, the known part included."""
    lifted = problem.lifted
    decisions = lifted.solve(lift(lifted, prediction))
    return (lift(lifted, costs) * decisions).sum(axis=1) * (-1 if problem.sense == "max" else 1)


def splits_of(x, least):
    """Every feature and threshold that leaves enough samples on both sides."""
    for column, threshold in product(range(x.shape[1]), np.unique(x)):
        left = x[:, column] <= threshold
        if least <= left.sum() <= len(x) - least:
            yield left


@pytest.mark.parametrize("seed", range(3))
def test_the_first_split_is_the_cheapest_of_all(problem, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2)).round(1)
    costs = X @ rng.normal(size=(2, 4)) + rng.normal(1, 1, size=(N, 4))
    tree = SpoTreeRegressor(problem, max_depth=1, min_samples_leaf=4, validation_fraction=None).fit(X, costs)
    whole = paid(problem, np.tile(costs.mean(axis=0), (N, 1)), costs).sum()
    lowest = min(
        paid(problem, np.where(left[:, None], costs[left].mean(axis=0), costs[~left].mean(axis=0)), costs).sum()
        for left in splits_of(X, 4)
    )
    assert lowest < whole
    assert paid(problem, tree.predict(X), costs).sum() == pytest.approx(lowest)


@pytest.mark.parametrize("name", ["top-k", "known", "known by row", "by row"])
def test_the_first_split_of_items_is_the_cheapest_of_all(name):
    problem, rng = PROBLEMS[name], np.random.default_rng(1)
    X = rng.normal(size=(N, 4, 2)).round(1)
    costs = X[:, :, 0] ** 2 + rng.normal(0.2, 0.3, size=(N, 4))
    tree = SpoTreeRegressor(problem, max_depth=1, min_samples_leaf=9, validation_fraction=None, n_thresholds=500)
    tree.fit(X, costs)
    x, y = X.reshape(-1, 2), costs.ravel()
    lowest = min(
        paid(problem, np.where(left, y[left].mean(), y[~left].mean()).reshape(N, 4), costs).sum()
        for left in splits_of(x, 9)
    )
    assert paid(problem, tree.predict(X), costs).sum() == pytest.approx(lowest)
    assert tree.nodes_.n_leaves == 2


def test_a_leaf_predicts_its_mean_cost_of_all_rows(problem):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N, 3))
    costs = 2 * X @ rng.normal(size=(3, 4)) + rng.normal(1, 0.1, size=(N, 4))
    tree = SpoTreeRegressor(problem, min_samples_leaf=3, random_state=0).fit(X, costs)
    leaves = tree.nodes_.apply(X)
    assert tree.nodes_.n_leaves > 1
    for leaf in np.unique(leaves):
        assert tree.nodes_.count[leaf] == (leaves == leaf).sum()
        expected = np.tile(costs[leaves == leaf].mean(axis=0), ((leaves == leaf).sum(), 1))
        np.testing.assert_allclose(tree.predict(X[leaves == leaf]), expected)


def test_thresholds_are_at_quantiles_and_leave_enough_rows():
    growth = Growth(4, 50, 9, 1.0)
    x = np.sort(RNG.normal(size=1000))[:, None]
    splits = growth.candidates(x, x, np.array([0]))
    np.testing.assert_array_equal(splits.n_left, np.arange(100, 1000, 100))
    np.testing.assert_allclose(splits.left[:, 0], [x[:n].mean() for n in splits.n_left])
    np.testing.assert_allclose(splits.right[:, 0], [x[n:].mean() for n in splits.n_left])
    few = growth.candidates(np.repeat([0.0, 1.0, 2.0], [40, 100, 60])[:, None], np.ones((200, 1)), np.array([0]))
    np.testing.assert_array_equal(few.threshold, [1.5])


def subtrees(nodes, node=0):
    """The sets of leaves of every part of the tree below a node."""
    yield [node]
    if nodes.feature[node] >= 0:
        for left, right in product(subtrees(nodes, nodes.left[node]), list(subtrees(nodes, nodes.right[node]))):
            yield left + right


def test_pruning_leaves_the_cheapest_part_of_the_tree(problem):
    rng = np.random.default_rng(3)
    X, costs = rng.normal(size=(N, 2)), rng.normal(1, 1, size=(N, 4))
    samples = TreeSamples.of(problem, costs, X)
    nodes = Growth(3, 2, 100, 1.0).grow(samples.take(np.arange(N)), rng)
    held = TreeSamples.of(problem, rng.normal(1, 1, size=(N, 4)), rng.normal(size=(N, 2)))
    sign, reached = (-1 if problem.sense == "max" else 1), nodes.reached(held.features)

    def cost(leaves):
        prediction = nodes.value[np.array(leaves)[reached[leaves].argmax(axis=0)]]
        return paid(problem, sign * prediction[:, :4], sign * held.costs[:, :4]).sum()

    every = [(round(cost(leaves), 9), len(leaves)) for leaves in subtrees(nodes)]
    pruned = prune(nodes, held)
    assert len(every) > 5
    found = paid(problem, sign * pruned.value[pruned.apply(held.features)][:, :4], sign * held.costs[:, :4]).sum()
    assert (round(found, 9), pruned.n_leaves) == min(every)


def test_a_split_that_only_a_later_one_makes_useful_is_found():
    X = np.array(list(product([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], repeat=2)))
    # Only where both are positive is the second item cheaper, and on each half-plane the first is: no first split pays.
    costs = np.column_stack([np.full(36, 2.0), np.where((X > 0).all(axis=1), 1.0, 3.5)])
    problem = TopK(2, 1, sense="min")
    tree = SpoTreeRegressor(problem, min_samples_leaf=3, validation_fraction=None)
    assert tree.set_params(max_depth=1).fit(X, costs).nodes_.n_leaves == 1
    tree.set_params(max_depth=2).fit(X, costs)
    assert tree.nodes_.n_leaves == 3
    assert normalized_regret(problem, tree.predict(X), costs) == 0


def test_items_of_a_cubic_value_where_a_line_has_the_wrong_sign():
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, size=(200, 50, 1))
    value = 10 * (X[:, :, 0] ** 3 - 0.65 * X[:, :, 0])
    problem = TopK(50, 1)
    tree = SpoTreeRegressor(problem, n_thresholds=30, random_state=0).fit(X[:100], value[:100])
    chosen = problem.solve(tree.predict(X[100:]))
    share = (chosen * value[100:]).sum() / value[100:].max(axis=1).sum()
    line = (problem.solve(-X[100:, :, 0]) * value[100:]).sum() / value[100:].max(axis=1).sum()
    assert line < -0.9
    assert share > 0.85


def test_it_decides_better_than_the_mean_and_is_repeatable():
    train, test = make_shortest_path(1100, degree=6, seed=0).split(600)
    tree = SpoTreeRegressor(train.problem, random_state=0).fit(train.X, train.costs)
    mean = np.tile(train.costs.mean(axis=0), (len(test.X), 1))
    assert -tree.score(test.X, test.costs) < 0.8 * normalized_regret(test.problem, mean, test.costs)
    again = SpoTreeRegressor(train.problem, random_state=0).fit(train.X, train.costs)
    np.testing.assert_array_equal(again.predict(test.X), tree.predict(test.X))


@pytest.mark.parametrize("fraction", [None, 0.3])
def test_the_contract_of_a_model(fraction):
    tree = SpoTreeRegressor(TopK(3, 1), min_samples_leaf=4, validation_fraction=fraction)
    check_model(tree)
    X = np.random.default_rng(5).normal(size=(30, 3, 2))
    check_model(tree, X=X, costs=X[:, :, 0] + X[:, :, 1] ** 2)


class TestPicture:
    @pytest.fixture
    def tree(self):
        x = pd.DataFrame({"load": np.arange(40) - 19.5})
        costs = pd.DataFrame(np.where(x < 0, [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]), columns=["a", "b", "c"])
        problem = TopK(3, 2, sense="min")
        return SpoTreeRegressor(problem, min_samples_leaf=5, validation_fraction=None).fit(x, costs)

    def test_text_names_features_and_decisions(self, tree):
        assert tree.to_text().splitlines() == [
            "all: 40 rows",
            "  load <= 0: 20 rows, decides on a, b",
            "  load > 0: 20 rows, decides on b, c",
        ]

    def test_text_of_regions_by_row_and_of_items_shows_predictions(self):
        rng = np.random.default_rng(6)
        tree = SpoTreeRegressor(OWN_CAPACITY, max_depth=1, min_samples_leaf=2, validation_fraction=None)
        assert "row" in tree.fit(rng.normal(size=(N, 1)), rng.uniform(size=(N, 4))).to_text()
        assert "predicts" in tree.to_text()
        assert "items, predicts" in tree.fit(rng.normal(size=(N, 4, 1)), rng.uniform(size=(N, 4))).to_text()

    def test_plot_shows_every_node(self, tree):
        ax = tree.plot()
        texts = [text.get_text() for text in ax.texts]
        assert "load <= 0\n40 rows" in texts
        assert "decides on\na, b\n20 rows" in texts
        assert tree.plot(ax) is ax


class TestBadInput:
    def test_fewer_rows_than_a_leaf_needs(self):
        with pytest.raises(ValueError, match=r"n_samples=8 rows to grow on, and a leaf needs min_samples_leaf=20"):
            SpoTreeRegressor(TopK(3, 1)).fit(np.ones((10, 2)), np.ones((10, 3)))

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"max_depth": 0}, "max_depth"),
            ({"min_samples_leaf": 0}, "min_samples_leaf"),
            ({"n_thresholds": 0}, "n_thresholds"),
            ({"max_features": 0.0}, "max_features"),
            ({"validation_fraction": 1.0}, "validation_fraction"),
            ({"validation": "first"}, "validation"),
        ],
    )
    def test_parameters(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            SpoTreeRegressor(TopK(3, 1), **parameters).fit(np.ones((40, 2)), np.ones((40, 3)))

    def test_a_problem_of_other_rows(self):
        with pytest.raises(ValueError, match=r"has 30 rows, and there are 40 rows of costs"):
            SpoTreeRegressor(OWN_CAPACITY).fit(np.ones((40, 2)), np.ones((40, 4)))
