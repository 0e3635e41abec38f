"""The model of a `DecisionRegressor` is the same whatever the units of features and costs."""

import numpy as np
import pytest

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor
from decidewise.data import make_portfolio, make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.models.linear.units import Units, out_of_units

pytestmark = pytest.mark.filterwarnings("ignore::decidewise.TrainingWarning")


@pytest.fixture(scope="module")
def paths():
    return make_shortest_path(1200, degree=4, seed=0).split(200)


def trained(train, loss, *, features=1.0, costs=1.0, **settings):
    settings = {"epochs": 5, "random_state": 0} | settings
    return DecisionRegressor(train.problem, loss, **settings).fit(features * train.X, costs * train.costs)


def regret(model, test, features=1.0):
    return normalized_regret(test.problem, model.predict(features * test.X), test.costs)


@pytest.mark.parametrize(
    ("loss", "settings"),
    [
        ("spo+", {}),
        ("spo+", {"early_stopping": True}),
        ("spo+", {"link": "log"}),
        ("spo+", {"init": "torch"}),
        ("spo+", {"n_neighbors": 3}),
        ("mse", {}),
        ("mse", {"link": "log", "init": "zeros"}),
        ("pfy", {}),
        ("dbb", {}),
        ("lava", {}),
        ("cave+", {}),
        ("wise", {"init": "mse"}),
        ("wise", {"link": "log"}),
        ("ltr-pointwise", {}),
    ],
    ids=str,
)
def test_units_do_not_matter(paths, loss, settings):
    train, test = paths
    plain = trained(train, loss, **settings)
    for features, costs in [(1.0, 1e-3), (1.0, 1e3), (1e3, 1.0), (1e-7, 1e12)]:
        scaled = trained(train, loss, features=features, costs=costs, **settings)
        assert regret(scaled, test, features) == pytest.approx(regret(plain, test), rel=1e-9)
        directions = loss == "wise"
        np.testing.assert_allclose(
            scaled.predict(features * test.X), plain.predict(test.X) * (1 if directions else costs), rtol=1e-6
        )
    powers = trained(train, loss, features=2.0**-9, costs=2.0**11, **settings)
    if plain.link == "identity":
        np.testing.assert_array_equal(powers.coef_, plain.coef_ * 2.0 ** (9 if loss == "wise" else 20))
    else:
        np.testing.assert_array_equal(powers.coef_, plain.coef_ * 2.0**9)


def test_small_returns_are_no_reason_to_go_astray():
    train, test = make_portfolio(700, degree=1, seed=0).split(200)
    for loss in ("spo+", "mse", "pfy"):
        plain = regret(trained(train, loss), test)
        assert regret(trained(train, loss, costs=1e-2), test) == pytest.approx(plain, rel=1e-9)
    assert plain < 2


@pytest.mark.parametrize("unit", [1e-300, 1e-20, 1e-18, 1e18, 1e20, 1e155, 1e300])
@pytest.mark.parametrize(("loss", "link"), [("spo+", "log"), ("mse", "log"), ("mse", "identity"), ("wise", "log")])
def test_costs_of_any_size(paths, unit, loss, link):
    train, test = paths
    plain = trained(train, loss, link=link, epochs=2)
    scaled = trained(train, loss, link=link, epochs=2, costs=unit)
    assert np.unique(scaled.predict(test.X)[:, 0]).size == len(test.X)
    assert regret(scaled, test) == pytest.approx(regret(plain, test), rel=1e-6)


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e155, 1e300])
def test_features_of_any_size(paths, unit):
    train, test = paths
    for loss, link in [("spo+", "identity"), ("spo+", "log")]:
        plain = trained(train, loss, link=link, epochs=2)
        scaled = trained(train, loss, link=link, epochs=2, features=unit)
        assert regret(scaled, test, unit) == pytest.approx(regret(plain, test), rel=1e-6)


def test_offsets_and_constant_features_do_not_matter(paths):
    train, test = paths
    plain = trained(train, "spo+")
    moved = DecisionRegressor(train.problem, "spo+", epochs=5, random_state=0)
    constant = np.full((len(train), 1), 0.1)
    moved.fit(np.hstack([train.X + 1e4, 1e9 + constant, constant]), train.costs)
    assert not moved.coef_[:, 5:].any()
    elsewhere = np.hstack([test.X + 1e4, np.zeros((len(test), 2))])
    np.testing.assert_allclose(moved.predict(elsewhere), plain.predict(test.X), rtol=1e-6)


def test_a_column_that_is_priced_out_is_not_the_typical_cost(paths):
    train, test = paths
    forbidden = train.costs.copy()
    forbidden[:, 3] = 1e9
    model = DecisionRegressor(train.problem, "spo+", epochs=5, random_state=0).fit(train.X, forbidden)
    realised = test.costs.copy()
    realised[:, 3] = 1e9
    start = WiseRegressor(exponent=0).fit(train.X, forbidden)
    trained_regret = normalized_regret(test.problem, model.predict(test.X), realised)
    assert trained_regret < 1.5 * normalized_regret(test.problem, start.predict(test.X), realised)


def test_models_and_arrays_start_where_they_are_in_the_units_of_the_caller(paths):
    train, test = paths
    model = GeneralizedLinear().fit(1e3 * train.X, 1e-6 * train.costs)
    array = np.vstack([model.intercept_, model.coef_.T])
    for init in (model, array):
        started = trained(train, "spo+", features=1e3, costs=1e-6, init=init, epochs=1, learning_rate=1e-12)
        np.testing.assert_allclose(started.predict(1e3 * test.X), model.predict(1e3 * test.X), rtol=1e-6, atol=1e-12)


def test_the_papers_protocol_keeps_to_the_units_of_the_caller(paths):
    train, _ = paths
    for loss in ("spo+", "mse"):
        steps = trained(train, loss, protocol="paper", init="zeros", epochs=1, batch_size=200)
        # Adam's first step is as long as the learning rate, whatever the gradient.
        np.testing.assert_allclose(np.abs(steps.coef_[steps.coef_ != 0]), 1e-2, rtol=1e-2)


def test_what_float64_cannot_hold_is_said(paths):
    train, _ = paths
    for features, costs in [(1e-200, 1e200), (1e200, 1e-200)]:
        with pytest.raises(ValueError, match=r"the coefficients, .* are beyond the range of float64"):
            trained(train, "mse", features=features, costs=costs)
    np.testing.assert_array_equal(out_of_units(np.array([[3.0], [0.0]]), np.array([2.0, 1e300])), [[1.5], [0.0]])
    with pytest.raises(ValueError, match=r"a log link needs targets with means from 1e-302 to 1e\+302"):
        trained(train, "mse", link="log", costs=1e303)


def test_the_typical_cost_is_the_median_of_the_columns():
    costs = np.array([[1.0, -4.0, 0.0, 1e12], [3.0, 4.0, 0.0, 1e12]])
    assert Units.of(np.eye(2), costs, directions=False).cost == 4
    assert Units.of(np.eye(2), 0 * costs, directions=False).cost == 1
    assert Units.of(np.eye(2), costs, directions=True).prediction == 1
