"""Solver calls spent on a solver-free fit: where they start, and that they never make it worse."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor, WiseRegressorCV
from decidewise.data import make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.measure import norms
from decidewise.models import default_candidates

GAMMA = WiseRegressor(GeneralizedLinear("gamma"))


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(1200, degree=6, seed=0).split(200)


def started(train, init, loss="spo+", **settings):
    # A learning rate this small leaves the start where it was.
    model = DecisionRegressor(train.problem, loss, init=init, epochs=1, learning_rate=1e-12, random_state=0, **settings)
    return model.fit(train.X, train.costs)


@pytest.mark.parametrize("scale", ["unit", "mean", "iterated"])
@pytest.mark.parametrize("exponent", [0.0, 0.75, 1.0])
@pytest.mark.parametrize(("learner", "link"), [("squared", "identity"), ("gamma", "log")])
def test_a_wise_fit_is_the_start_at_the_size_of_the_costs(data, exponent, learner, link, scale):
    train, test = data
    model = WiseRegressor(GeneralizedLinear(learner), exponent=exponent, scale=scale).fit(train.X, train.costs)
    size = (norms(train.costs) ** exponent).mean() if scale == "unit" else 1.0
    polished = started(train, model, link=link)
    np.testing.assert_allclose(polished.predict(test.X), size * model.predict(test.X), rtol=1e-6, atol=1e-8)
    in_directions = started(train, model, "wise", link=link)
    np.testing.assert_allclose(
        in_directions.predict(test.X), size / norms(train.costs).mean() * model.predict(test.X), rtol=1e-6, atol=1e-8
    )


def test_plain_linear_and_log_linear_models_are_taken_as_they_are(data):
    train, test = data
    for model, link in [(LinearRegression(), "identity"), (GeneralizedLinear("gamma"), "log")]:
        model.fit(train.X, train.costs)
        np.testing.assert_allclose(
            started(train, model, link=link).predict(test.X), model.predict(test.X), rtol=1e-6, atol=1e-8
        )


def test_a_search_starts_at_what_it_has_chosen(data):
    train, test = data
    search = WiseRegressorCV(train.problem, {"gamma": GAMMA, "wise": WiseRegressor()}, rule="minimum", random_state=0)
    search.fit(train.X, train.costs)
    assert search.best_name_ == "gamma"
    polished = started(train, search, link="log")
    np.testing.assert_allclose(polished.predict(test.X), search.predict(test.X), rtol=1e-6)


@pytest.mark.parametrize("learner", [LinearRegression(), GeneralizedLinear()], ids=repr)
@pytest.mark.parametrize("size", [1.0, 1e160])
def test_a_lifted_fit_starts_at_its_linear_part(data, learner, size):
    train, test = data
    costs = size * train.costs
    for scale in ("unit", "mean"):
        model = WiseRegressor(learner, scale=scale, lifted=True).fit(train.X, costs)
        start = DecisionRegressor(train.problem, init=model, epochs=1, learning_rate=1e-12, random_state=0)
        expected = WiseRegressor().fit(train.X, costs).predict(test.X) / size
        np.testing.assert_allclose(start.fit(train.X, costs).predict(test.X) / size, expected, rtol=1e-6, atol=1e-8)


def test_a_model_that_is_not_fitted_is_fitted_on_the_training_rows(data):
    train, _ = data
    fresh = started(train, GAMMA, link="log")
    np.testing.assert_array_equal(fresh.coef_, started(train, clone(GAMMA).fit(train.X, train.costs), link="log").coef_)
    # So a copy, which scikit-learn strips of its fit, trains to the same model.
    np.testing.assert_array_equal(clone(fresh).fit(train.X, train.costs).coef_, fresh.coef_)


@pytest.mark.filterwarnings("ignore::decidewise.TrainingWarning")
@pytest.mark.parametrize("loss", ["spo+", "pfy"])
@pytest.mark.parametrize("learning_rate", [1e-3, 1.0])
@pytest.mark.parametrize(("init", "link"), [(WiseRegressor(), "identity"), (GAMMA, "log")])
def test_polishing_never_ends_worse_than_it_started_on_the_validation_regret(data, loss, learning_rate, init, link):
    train, _ = data
    model = DecisionRegressor(
        train.problem,
        loss,
        init=init,
        link=link,
        learning_rate=learning_rate,
        max_solves=3000,
        early_stopping=True,
        random_state=0,
    ).fit(train.X, train.costs)
    order = np.random.default_rng(np.random.RandomState(0).randint(2**31)).permutation(200)
    held, kept = order[:40], order[40:]
    start = clone(init).fit(train.X[kept], train.costs[kept])

    def regret(predictor):
        return normalized_regret(train.problem, predictor.predict(train.X[held]), train.costs[held])

    assert regret(model) <= regret(start)
    assert regret(model) == pytest.approx(min(regret(start), *(epoch.validation_regret for epoch in model.history_)))
    assert model.history_[-1].n_solves <= 3000


def test_polishing_pays_where_the_model_is_wrong(data):
    train, test = data
    start = WiseRegressor().fit(train.X, train.costs)
    polished = DecisionRegressor(train.problem, "spo+", init=start, max_solves=5000, random_state=0)
    polished.fit(train.X, train.costs)
    before = normalized_regret(test.problem, start.predict(test.X), test.costs)
    assert -polished.score(test.X, test.costs) < 0.95 * before


def test_starts_that_cannot_be_are_named(data):
    train, _ = data
    ridge = default_candidates(train.X, train.costs)["wise gamma, quadratic, ridge 0.1"].fit(train.X, train.costs)
    for init in (ridge, make_pipeline(StandardScaler(), LinearRegression())):
        with pytest.raises(ValueError, match=r"init must be linear in the features.*got Pipeline"):
            started(train, init, link="log")
    with pytest.raises(ValueError, match=r'init has the log link and the regressor the identity link; set link="log"'):
        started(train, GAMMA)
    with pytest.raises(ValueError, match=r"got \(3, 40\)"):
        started(train, WiseRegressor().fit(train.X[:, :2], train.costs))
