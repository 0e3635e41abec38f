import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from decidewise import SpoForestRegressor, SpoTreeRegressor
from decidewise.data import make_shortest_path
from decidewise.models.trees.spo_trees import predicted
from decidewise.problems import Ball, Knapsack, TopK
from decidewise.testing import check_model


@parametrize_with_checks(
    [SpoForestRegressor(Ball(1), n_estimators=3, min_samples_leaf=1)],
    expected_failed_checks=lambda _: {"check_regressor_multioutput": "the problem fixes the number of outputs"},
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(700, degree=6, seed=1).split(300)


@pytest.fixture(scope="module")
def forest(data):
    return SpoForestRegressor(data[0].problem, n_estimators=12, random_state=0).fit(data[0].X, data[0].costs)


def test_it_predicts_the_mean_of_its_trees(data, forest):
    each = [predicted(nodes, data[1].X) for nodes in forest.trees_]
    np.testing.assert_allclose(forest.predict(data[1].X), np.mean(each, axis=0))
    assert np.ptp(each, axis=0).max() > 0


def test_it_decides_better_than_one_tree(data, forest):
    train, test = data
    tree = SpoTreeRegressor(train.problem, random_state=0).fit(train.X, train.costs)
    assert forest.score(test.X, test.costs) > tree.score(test.X, test.costs)


def test_threads_do_not_change_it(data, forest):
    train, test = data
    other = SpoForestRegressor(train.problem, n_estimators=12, n_jobs=2, random_state=0).fit(train.X, train.costs)
    np.testing.assert_array_equal(other.predict(test.X), forest.predict(test.X))


def test_without_depth_it_is_the_mean_of_means():
    rng = np.random.default_rng(0)
    costs = rng.uniform(size=(20, 3))
    forest = SpoForestRegressor(TopK(3, 1), n_estimators=200, min_samples_leaf=20, random_state=0)
    prediction = forest.fit(rng.normal(size=(20, 2)), costs).predict(np.zeros((1, 2)))[0]
    assert all(nodes.n_leaves == 1 for nodes in forest.trees_)
    spread = costs.std(axis=0) / np.sqrt(20 * 200)
    assert (np.abs(prediction - costs.mean(axis=0)) < 5 * spread).all()


def test_the_contract_of_a_model():
    forest = SpoForestRegressor(TopK(3, 1), n_estimators=3)
    check_model(forest)
    X = np.random.default_rng(5).normal(size=(20, 3, 2))
    check_model(forest, X=X, costs=X[:, :, 0] + X[:, :, 1] ** 2)


def test_regions_by_row():
    rng = np.random.default_rng(6)
    X, values = rng.normal(size=(40, 2)), rng.uniform(1, 2, size=(40, 3))
    problem = Knapsack([1.0, 2.0, 3.0], rng.uniform(1, 5, size=(40, 1)))
    forest = SpoForestRegressor(problem, n_estimators=2, n_thresholds=5, random_state=0).fit(X, values)
    assert forest.score(X, values) <= 0
    assert forest.trees_[0].n_leaves > 1


def test_bad_input():
    for number in (0, 10**400):
        with pytest.raises(ValueError, match=r"n_estimators must be at"):
            SpoForestRegressor(TopK(3, 1), n_estimators=number).fit(np.ones((40, 2)), np.ones((40, 3)))
    with pytest.raises(ValueError, match=r"n_samples=4 rows to grow on"):
        SpoForestRegressor(TopK(3, 1)).fit(np.ones((4, 2)), np.ones((4, 3)))
