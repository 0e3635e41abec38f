"""Costs of which some are not seen: each item against weighted least squares by hand, the direction by simulation."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import GammaRegressor, LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decidewise import GeneralizedLinear, WiseRegressor, load_model, save_model

N, P, D = 120, 3, 4


@pytest.fixture
def rows():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, P)) * [1.0, 20.0, 0.1]
    costs = np.exp(X[:, :1]) * (2 + rng.normal(size=(N, D)))
    seen = rng.random((N, D)) < 0.5
    seen[np.arange(N), rng.integers(D, size=N)] = True
    return X, np.where(seen, costs, np.nan), rng.uniform(0, 2, size=N)


def sizes_by_hand(X, costs, weights):
    sizes = np.sqrt(D * np.nanmean(costs**2, axis=1))
    mean = np.average(sizes, weights=weights)
    Z = StandardScaler().fit_transform(X)
    gamma = GammaRegressor(alpha=X.shape[1] / len(X), tol=1e-12, max_iter=10_000)
    predicted = gamma.fit(Z, np.maximum(sizes, mean / 10), weights).predict(Z)
    return np.maximum(predicted, mean / 10)


def least_squares(X, targets, weights):
    design, roots = np.column_stack([np.ones(len(X)), X]), np.sqrt(weights)
    return np.linalg.lstsq(design * roots[:, None], targets * roots, rcond=None)[0]


@pytest.mark.parametrize("learner", [None, LinearRegression()], ids=str)
def test_each_item_is_weighted_least_squares_on_the_rows_that_see_it(rows, learner):
    X, costs, weights = rows
    sizes = sizes_by_hand(X, costs, weights)
    scale = np.average(sizes, weights=weights)
    model = WiseRegressor(learner, missing="ignore").fit(X, costs, weights)
    for item, own in enumerate((~np.isnan(costs)).T):
        expected = least_squares(X[own], (costs[own, item] * scale / sizes[own]), (weights * sizes)[own])
        predicted = model.predict(X)[:, item]
        np.testing.assert_allclose(predicted, expected[0] + X @ expected[1:], rtol=1e-5, atol=1e-5)


def test_items_that_share_a_model_are_one_least_squares_on_all_that_is_seen():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(N, D, P))
    costs = np.exp(X.mean(axis=1)[:, :1]) * (1 + X[:, :, 0] + rng.normal(size=(N, D)))
    costs[rng.random((N, D)) < 0.3] = np.nan
    costs[:, 0] = 1.0
    sizes, seen = sizes_by_hand(X.mean(axis=1), costs, np.ones(N)), ~np.isnan(costs)
    each = np.broadcast_to(sizes[:, None], costs.shape)[seen]
    expected = least_squares(X[seen], costs[seen] * sizes.mean() / each, each)
    for learner in (None, Ridge(alpha=1e-12)):
        model = WiseRegressor(learner, missing="ignore").fit(X, costs)
        np.testing.assert_allclose(model.predict(X), expected[0] + X @ expected[1:], rtol=1e-5, atol=1e-5)


def test_without_weights_it_is_the_learner_on_what_is_seen(rows):
    X, costs, _ = rows
    model = WiseRegressor(exponent=0, missing="ignore").fit(X, costs)
    for item, own in enumerate((~np.isnan(costs)).T):
        expected = GeneralizedLinear().fit(X[own], costs[own, item]).predict(X)
        np.testing.assert_allclose(model.predict(X)[:, item], expected)


@pytest.mark.parametrize("learner", [None, GeneralizedLinear("gamma"), Ridge()], ids=str)
def test_the_same_digits_where_all_costs_are_seen(rows, learner):
    X, costs, weights = rows
    costs = np.abs(np.nan_to_num(costs, nan=1.0))
    fits = [WiseRegressor(learner, missing=missing).fit(X, costs, weights) for missing in ("error", "ignore")]
    np.testing.assert_array_equal(*(model.predict(X) for model in fits))


def test_the_direction_is_found_where_what_is_seen_depends_on_the_features():
    rng = np.random.default_rng(3)
    group = rng.integers(3, size=200_000)
    means = np.array([[4.0, 1.0, 1.0], [1.0, 4.0, 2.0], [2.0, 1.0, 8.0]])
    costs = means[group] * rng.lognormal(sigma=0.7, size=(len(group), 1)) * rng.uniform(0.5, 1.5, size=(len(group), 3))
    chances = np.array([[0.2, 0.6, 0.9], [0.9, 0.3, 0.5], [0.5, 0.9, 0.2]])
    seen = rng.random(costs.shape) < chances[group]
    some = seen.any(axis=1)
    X, costs = np.eye(3)[group][some], np.where(seen, costs, np.nan)[some]
    directions = means / np.linalg.norm(means, axis=1, keepdims=True)

    def error(predicted):
        return np.abs(predicted / np.linalg.norm(predicted, axis=1, keepdims=True) - directions).max()

    # That a row with nothing seen is left out depends on the features and chance as well.
    assert error(WiseRegressor(missing="ignore").fit(X, costs).predict(np.eye(3))) < 0.01
    norms = np.sqrt(np.nansum(costs**2, axis=1))  # of what is seen: each item is divided by another mean
    own = [np.nansum(costs[X[:, g] == 1], axis=0) / ((X[:, g] == 1) * norms @ ~np.isnan(costs)) for g in range(3)]
    assert error(np.array(own)) > 0.05


def test_units_change_no_direction(rows):
    X, costs, _ = rows
    plain = WiseRegressor(missing="ignore").fit(X, costs).predict(X)
    unit = WiseRegressor(scale="unit", missing="ignore").fit(X, costs).predict(X)
    np.testing.assert_allclose(unit / unit[:1, :1], plain / plain[:1, :1])
    for factor in (1e-200, 1e200):
        scaled = WiseRegressor(missing="ignore").fit(X, costs * factor).predict(X)
        np.testing.assert_allclose(scaled / factor, plain, rtol=1e-6)


@pytest.mark.parametrize(
    "learner", [None, GeneralizedLinear("gamma"), make_pipeline(StandardScaler(), Ridge())], ids=str
)
def test_a_fit_is_saved_and_keeps_names(rows, learner, tmp_path):
    X, costs, _ = rows
    frame = pd.DataFrame(X, columns=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WiseRegressor(learner, missing="ignore").fit(frame, pd.DataFrame(np.abs(costs), columns=list("wxyz")))
        predicted = model.predict(frame)
    assert list(model.feature_names_in_) == list("abc")
    assert list(model.cost_names_in_) == list("wxyz")
    save_model(model, tmp_path / "seen.npz")
    np.testing.assert_array_equal(load_model(tmp_path / "seen.npz").predict(frame), predicted)


def test_a_learner_without_weights_is_fitted_on_a_drawn_sample(rows):
    X, costs, _ = rows
    model = WiseRegressor(KNeighborsRegressor(3), missing="ignore")
    np.testing.assert_array_equal(model.fit(X, costs).predict(X), model.fit(X, costs).predict(X))


def test_what_cannot_be_learned_is_said(rows):
    X, costs, weights = rows
    model = WiseRegressor(missing="ignore")
    with pytest.raises(ValueError, match=r'costs must be finite; row .* has NaN .* pass missing="ignore"'):
        WiseRegressor().fit(X, costs)
    with pytest.raises(ValueError, match="missing must be one of"):
        WiseRegressor(missing="drop").fit(X, costs)

    def changed(where, value):
        return np.where(where, value, costs)

    is_row, is_item = np.arange(N)[:, None] == 7, np.arange(D) == 2
    with pytest.raises(ValueError, match="row 7 has no cost that is seen"):
        model.fit(X, changed(is_row, np.nan))
    with pytest.raises(ValueError, match=r"row 7, column 2 has \+inf \(1 such"):
        model.fit(X, changed(is_row & is_item, np.inf))
    with pytest.raises(ValueError, match="column 2 of the costs is not seen in any row of positive weight"):
        model.fit(X, np.where(is_item & ~is_row, np.nan, np.ones((N, D))), np.where(is_row[:, 0], 0, weights))
    with pytest.raises(ValueError, match="weight zero"):
        model.fit(X, costs * 0)
    with pytest.raises(ValueError, match=r"cost 2, in the .* rows where it is seen: .* log link"):
        WiseRegressor(GeneralizedLinear("gamma"), missing="ignore").fit(X, changed(is_item, 0.0 * costs) ** 2)


@pytest.mark.parametrize("others", [{"scale": "iterated"}, {"scale": Ridge()}, {"lifted": True}], ids=str)
def test_other_scales_are_refused(rows, others):
    with pytest.raises(ValueError, match='need scale="mean" or scale="unit", and lifted=False'):
        WiseRegressor(missing="ignore", **others).fit(*rows[:2])


def test_fits_in_parts_are_refused(rows, tmp_path):
    X, costs, _ = rows
    with pytest.raises(AttributeError, match="costs that are all seen"):
        WiseRegressor(missing="ignore").partial_fit(X, costs)
    with pytest.raises(ValueError, match="kept no sums over its rows"):
        WiseRegressor(missing="ignore").fit(X, costs).set_params(missing="error").partial_fit(X, np.ones((N, D)))
    pd.DataFrame({"x": X[:, 0], "c": 1.0, "d": 2.0}).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match="needs all rows in memory"):
        WiseRegressor(missing="ignore").fit_files(tmp_path / "rows.csv", features="x", costs=["c", "d"])
    items = np.random.default_rng(0).normal(size=(N, D, 2))
    with pytest.raises(ValueError, match='per_item="intercept" needs rows whose costs are all seen'):
        WiseRegressor(GeneralizedLinear(per_item="intercept"), missing="ignore").fit(items, costs)
