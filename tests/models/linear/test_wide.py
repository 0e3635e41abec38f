"""Fewer rows than features: the answers of the sums over pairs of features, without these."""

import numpy as np
import pytest

from decidewise import GeneralizedLinear, WiseRegressor
from decidewise.model_file import load_model, save_model
from decidewise.models.linear import moments
from decidewise.models.linear.moments import Moments, WideMoments
from decidewise.models.selection.ridge_path import fit_path

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 50)) + 5.0
X[:, 3], X[4] = 7.0, X[5]  # a constant feature, and the same row twice
COSTS = np.exp(RNG.normal(size=(20, 3)))
WEIGHTS = np.append(0.0, RNG.uniform(0, 2, size=19))


@pytest.fixture(params=[X, X * np.where(np.arange(50) % 2, 0.01, 100.0)], ids=["alike", "sizes apart"])
def features(request):
    return request.param


def from_pairs(make, *rows, monkeypatch):
    """Return the model of the sums over pairs of features, and that of products of rows."""
    monkeypatch.setattr(moments, "_MANY_FEATURES", 10**9)
    pairs = make().fit(*rows)
    monkeypatch.setattr(moments, "_MANY_FEATURES", 1)
    return pairs, make().fit(*rows)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("deviance", ["squared", "gamma"])
def test_the_fit_is_that_of_pairs_of_features(deviance, alpha, intercept, weights, features, monkeypatch):
    def make():
        return GeneralizedLinear(deviance, alpha=alpha, fit_intercept=intercept)

    pairs, rows = from_pairs(make, features, COSTS, weights, monkeypatch=monkeypatch)
    new = features[::-1] * np.linspace(0.9, 1.1, 20)[:, None]
    np.testing.assert_allclose(rows.predict(new), pairs.predict(new), rtol=1e-6 if features.max() > 100 else 1e-9)
    atol = (1e-6 if features.max() > 100 else 1e-9) * np.abs(pairs.coef_).max()
    np.testing.assert_allclose(rows.coef_, pairs.coef_, rtol=1e-9, atol=atol)
    assert deviance == "gamma" or (type(pairs.moments_), type(rows.moments_)) == (Moments, WideMoments)


def test_more_rows_continue_the_fit_also_from_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(moments, "_MANY_FEATURES", 1)
    many, costs = RNG.normal(size=(90, 50)), RNG.uniform(1, 2, size=(90, 3))
    save_model(WiseRegressor().fit(many[:20], costs[:20]), tmp_path / "model.dw")
    model = load_model(tmp_path / "model.dw")
    for first, seen in ((20, 40), (40, 90)):  # still fewer rows than features, then more
        model.partial_fit(many[first:seen], costs[first:seen])
        expected = WiseRegressor().fit(many[:seen], costs[:seen]).predict(many)
        np.testing.assert_allclose(model.predict(many), expected, rtol=1e-9, atol=1e-9)
    assert isinstance(model.estimator_.moments_, Moments)


def test_a_path_of_ridges_is_the_fits_one_by_one(features, monkeypatch):
    monkeypatch.setattr(moments, "_MANY_FEATURES", 1)
    models = [WiseRegressor(GeneralizedLinear(alpha=alpha)) for alpha in (0.01, 0.0, 1.0)]
    together = [model.predict(features) for model in fit_path(models, features, COSTS)]
    alone = [model.fit(features, COSTS).predict(features) for model in models]
    np.testing.assert_allclose(together, alone, rtol=1e-7)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_features_whose_pairs_no_memory_holds(alpha):
    many = RNG.normal(size=(12, 300_000))
    model = GeneralizedLinear(alpha=alpha).fit(many, COSTS[:12])
    if alpha == 0:
        np.testing.assert_allclose(model.predict(many), COSTS[:12], rtol=1e-9)
    centered, level = many - many.mean(axis=0), COSTS[:12].mean(axis=0)
    dual = np.linalg.pinv(centered @ centered.T + 12 * alpha * np.eye(12)) @ (COSTS[:12] - level)
    np.testing.assert_allclose(model.coef_.T, centered.T @ dual, rtol=1e-9, atol=1e-15)
