import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from decidewise import DecisionBoostingRegressor, WiseRegressor, normalized_regret
from decidewise.data import make_shortest_path
from decidewise.losses import PgDca, registry
from decidewise.problems import Ball, CountedProblem, Knapsack, KnownCosts, TopK
from decidewise.testing import check_model


@parametrize_with_checks(
    [DecisionBoostingRegressor(Ball(1), "mse", n_estimators=3, min_samples_leaf=1)],
    expected_failed_checks=lambda _: {"check_regressor_multioutput": "the problem fixes the number of outputs"},
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(900, degree=6, seed=0).split(400)


def regret(model, test):
    return normalized_regret(test.problem, model.predict(test.X), test.costs)


def test_on_squares_it_is_scikit_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] ** 2 + X[:, 1] + rng.normal(scale=0.1, size=200)
    # The step is learning_rate / (root mean square of the gradient), so this makes each a tenth of the residuals.
    rate = 0.1 * y.std() / np.abs(y).mean()
    ours = DecisionBoostingRegressor(Ball(1), "mse", n_estimators=30, learning_rate=rate, random_state=0)
    theirs = GradientBoostingRegressor(
        n_estimators=30, learning_rate=0.1, max_depth=3, min_samples_leaf=20, random_state=0
    )
    np.testing.assert_allclose(ours.fit(X, y[:, None]).predict(X)[:, 0], theirs.fit(X, y).predict(X), rtol=1e-9)


def test_spo_plus_decides_better_than_least_squares_and_than_its_start(data):
    train, test = data
    plain = LinearRegression().fit(train.X, train.costs)
    boosted = DecisionBoostingRegressor(train.problem, n_estimators=60, random_state=0).fit(train.X, train.costs)
    assert regret(boosted, test) < regret(plain, test)
    after = DecisionBoostingRegressor(train.problem, init=WiseRegressor(), n_estimators=60, random_state=0)
    assert regret(after.fit(train.X, train.costs), test) < regret(WiseRegressor().fit(train.X, train.costs), test)


@pytest.mark.parametrize("name", sorted(set(registry) - {"implicit", "compact"}))  # which refuse paths
def test_every_registered_loss_boosts_and_repeats(data, name):
    train, _ = data
    model = DecisionBoostingRegressor(train.problem, name, n_estimators=2, random_state=3)
    first = model.fit(train.X[:50], train.costs[:50]).predict(train.X)
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(model.fit(train.X[:50], train.costs[:50]).predict(train.X), first)


def test_early_stopping_keeps_the_lowest_regret(data):
    train, _ = data
    model = DecisionBoostingRegressor(
        train.problem, n_estimators=200, early_stopping=True, validation="last", n_iter_no_change=5, random_state=0
    ).fit(train.X, train.costs)
    regrets = [epoch.validation_regret for epoch in model.history_]
    best = int(np.argmin(regrets)) + 1
    assert len(model.trees_) == best
    assert len(regrets) == best + 5
    last = slice(320, None)
    found = normalized_regret(train.problem, model.predict(train.X[last]), train.costs[last])
    assert found == pytest.approx(min(regrets))


def test_a_step_that_would_raise_an_exact_loss_is_halved(data):
    train, _ = data
    model = DecisionBoostingRegressor(train.problem, "mse", learning_rate=20.0, n_estimators=40, random_state=0)
    model.fit(train.X, train.costs)
    losses = [epoch.loss for epoch in model.history_]
    assert (np.diff(losses) <= 0).all()
    assert losses[-1] < losses[0]
    ratios = model.steps_[0] / np.array(model.steps_)
    assert ratios.max() >= 1
    np.testing.assert_array_equal(np.log2(ratios), np.log2(ratios).round())


def test_it_ends_where_the_gradient_is_zero():
    X, costs = np.arange(40.0)[:, None], np.ones((40, 3))
    model = DecisionBoostingRegressor(TopK(3, 1), "mse").fit(X, costs)
    assert model.trees_ == []
    np.testing.assert_array_equal(model.predict(X), costs)


def test_solver_calls_are_counted(data):
    train, _ = data
    problem = CountedProblem(train.problem)
    model = DecisionBoostingRegressor(problem, n_estimators=4, early_stopping=True, random_state=0)
    model.fit(train.X[:100], train.costs[:100])
    assert model.n_solves_ == problem.n_solves == 80 * (1 + 5) + 20 * (2 + 4)
    assert model.history_[-1].n_solves == model.n_solves_


def test_a_unit_changes_nothing(data):
    train, _ = data
    model = DecisionBoostingRegressor(train.problem, n_estimators=5, random_state=0)
    first = model.fit(train.X, train.costs).predict(train.X)
    np.testing.assert_allclose(model.fit(train.X, 1024 * train.costs).predict(train.X), 1024 * first, rtol=1e-9)


def test_targets_are_refreshed():
    calls = []

    class Noted(PgDca):
        def refresh(self, prediction, target, rng):
            calls.append(len(prediction))
            return super().refresh(prediction, target, rng)

    rng = np.random.default_rng(0)
    loss = Noted(refresh_every=2)
    DecisionBoostingRegressor(TopK(3, 1), loss, n_estimators=5).fit(rng.normal(size=(40, 2)), rng.normal(size=(40, 3)))
    assert calls == [40, 40]


def test_directions(data):
    train, test = data
    model = DecisionBoostingRegressor(train.problem, "wise", random_state=0).fit(train.X, train.costs)
    assert model.predicts_directions
    assert (np.linalg.norm(model.predict(train.X), axis=1) < 1.5).all()
    assert regret(model, test) < regret(LinearRegression().fit(train.X, train.costs), test)
    with pytest.raises(ValueError, match=r"Wise trains directions, and init predicts costs\. Leave init out"):
        DecisionBoostingRegressor(train.problem, "wise", init=LinearRegression()).fit(train.X, train.costs)


@pytest.mark.parametrize(
    "problem",
    [
        Knapsack([1.0, 2.0, 3.0], np.linspace(1, 5, 60)[:, None]),
        KnownCosts(TopK(3, 1, sense="min"), np.linspace(0, 1, 180).reshape(60, 3)),
    ],
)
def test_regions_and_known_costs_by_row(problem):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 2))
    costs = 2 + X @ rng.normal(size=(2, 3))
    start = DecisionBoostingRegressor(problem, n_estimators=1, learning_rate=1e-9).fit(X, costs)
    model = DecisionBoostingRegressor(problem, early_stopping=True, n_estimators=30, min_samples_leaf=5, random_state=0)
    assert model.fit(X, costs).score(X, costs) > start.score(X, costs)


def test_the_contract_of_a_model():
    model = DecisionBoostingRegressor(TopK(3, 1), n_estimators=3, min_samples_leaf=4)
    check_model(model)
    X = np.random.default_rng(5).normal(size=(30, 3, 2))
    check_model(model, X=X, costs=X[:, :, 0] + X[:, :, 1] ** 2)
    check_model(model.set_params(init=WiseRegressor()), X=X, costs=X[:, :, 0] + X[:, :, 1] ** 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"n_estimators": 10**400}, "n_estimators must be at most 1000000"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"max_depth": 0}, "max_depth"),
        ({"loss": "spo"}, "loss must be one of"),
        ({"init": "wise"}, "init must be a regressor"),
        ({"early_stopping": True, "validation_fraction": 0.001}, r"or early_stopping=False\."),
    ],
)
def test_bad_input(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DecisionBoostingRegressor(TopK(3, 1), **parameters).fit(np.ones((40, 2)), np.ones((40, 3)))


def test_fewer_rows_than_a_leaf_needs():
    X, costs = np.ones((8, 2)), np.ones((8, 4))
    with pytest.raises(
        ValueError, match=r"n_samples=8 rows.*min_samples_leaf=20. Pass more rows, or a smaller min_sam"
    ):
        DecisionBoostingRegressor(TopK(4, 1)).fit(X, costs)
    with pytest.raises(ValueError, match=r"n_samples=6 rows.*or set no rows aside \(early_stopping=False\)"):
        DecisionBoostingRegressor(TopK(4, 1), min_samples_leaf=8, early_stopping=True).fit(X, costs)
    DecisionBoostingRegressor(TopK(4, 1), n_estimators=1).fit(np.ones((8, 4, 2)), costs)  # 32 items
