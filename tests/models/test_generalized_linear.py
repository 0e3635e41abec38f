import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, LinearRegression, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from decidewise.data import make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.models import GeneralizedLinear, WiseRegressor
from decidewise.models.linear import log_linear
from decidewise.models.linear.blocks import BLOCK_ROWS
from decidewise.rows import ArrayRows


@pytest.mark.filterwarnings("ignore:there is one cost only")
@parametrize_with_checks(
    [
        GeneralizedLinear(),
        GeneralizedLinear(alpha=0.1),
        GeneralizedLinear(fit_intercept=False),
        GeneralizedLinear("poisson"),
        GeneralizedLinear("poisson", alpha=0.1),
        GeneralizedLinear("gamma"),
        GeneralizedLinear("gamma", alpha=0.1, warm_start=True),
        GeneralizedLinear("tweedie"),
        GeneralizedLinear("squared", link="log", alpha=0.1),
        WiseRegressor(GeneralizedLinear("gamma")),
    ],
    expected_failed_checks=lambda model: (
        {"check_regressor_multioutput": "feeds negative targets"} if get_tags(model).target_tags.positive_only else {}
    ),
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * np.geomspace(1e-3, 1e3, 6) + 100 * rng.normal(size=6)
    y = X @ rng.normal(size=(6, 4)) + rng.normal(size=(300, 4))
    return X, y, rng.uniform(0, 3, size=300)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_equals_scikit_learn(table, fit_intercept, weighted, alpha):
    X, y, weights = table
    weights = weights if weighted else None
    ours = GeneralizedLinear(alpha=alpha, fit_intercept=fit_intercept).fit(X, y, sample_weight=weights)
    total = len(X) if weights is None else weights.sum()
    theirs = Ridge(alpha=alpha * total, fit_intercept=fit_intercept, solver="svd").fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-7)


def test_the_ridge_is_weighed_against_the_mean_as_in_scikit_learns_generalized_linear_models(table):
    X, y, weights = table
    X = (X - X.mean(0)) / X.std(0)
    ours = GeneralizedLinear(alpha=0.7).fit(X, y[:, 0], sample_weight=weights)
    theirs = TweedieRegressor(power=0, alpha=0.7, tol=1e-10, max_iter=1000).fit(X, y[:, 0], sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5)


def test_weight_two_is_the_row_twice(table):
    X, y, _ = table
    weights = np.random.default_rng(1).integers(0, 4, size=len(X))
    repeated = GeneralizedLinear(alpha=0.1).fit(X.repeat(weights, axis=0), y.repeat(weights, axis=0))
    weighted = GeneralizedLinear(alpha=0.1).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)


def test_partial_fit_equals_one_fit_on_everything(table):
    X, y, weights = table
    whole = GeneralizedLinear(alpha=0.01).fit(X, y, sample_weight=weights)
    order = np.argsort(X[:, 0])  # parts that differ strongly from one another
    parts = GeneralizedLinear(alpha=0.01)
    for rows in np.array_split(order, 7):
        parts.partial_fit(X[rows], y[rows], sample_weight=weights[rows])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-7)
    np.testing.assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-7)


def test_fit_starts_afresh_after_partial_fit(table):
    X, y, _ = table
    model = GeneralizedLinear().partial_fit(X[:100], y[:100]).fit(X, y)
    np.testing.assert_array_equal(model.coef_, GeneralizedLinear().fit(X, y).coef_)


@pytest.mark.parametrize("shape", [(5, 20), (50, 20)])
def test_rank_deficient_data_get_the_answer_of_least_norm(shape):
    rng = np.random.default_rng(2)
    n, p = shape
    X = rng.normal(size=(n, p))
    X[:, 7] = 2 * X[:, 3] - X[:, 4]
    X[:, 8] = 5.0
    y = rng.normal(size=(n, 3))
    model = GeneralizedLinear().fit(X, y)
    expected = np.linalg.pinv(X - X.mean(0)) @ (y - y.mean(0))
    np.testing.assert_allclose(model.coef_.T, expected, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), atol=1e-8)


def test_a_constant_feature_far_from_zero_has_coefficient_zero():
    rng = np.random.default_rng(3)
    X = np.column_stack([np.full(5000, 0.1 + 1e7), rng.normal(size=5000)])
    model = GeneralizedLinear().fit(X, X[:, 1] + rng.normal(size=5000))
    assert model.coef_[0] == 0
    assert abs(model.coef_[1] - 1) < 0.1


def test_many_blocks_in_threads_equal_one_block():
    rng = np.random.default_rng(4)
    n = 40 * BLOCK_ROWS + 17
    X, y, weights = rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), rng.uniform(size=n)
    model = GeneralizedLinear().fit(X, y, sample_weight=weights)
    design = np.column_stack([np.ones(n), X]) * np.sqrt(weights)[:, None]
    expected = np.linalg.lstsq(design, y * np.sqrt(weights)[:, None], rcond=None)[0]
    np.testing.assert_allclose(model.coef_, expected[1:].T, atol=1e-12)
    again = GeneralizedLinear().fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_give_the_same_model_and_keep_their_names(table, frame):
    X, y, _ = table
    names = [f"feature {i}" for i in range(X.shape[1])]
    model = GeneralizedLinear().fit(frame(dict(zip(names, X.T, strict=True))), y)
    assert list(model.feature_names_in_) == names
    np.testing.assert_allclose(model.coef_, GeneralizedLinear().fit(X, y).coef_, rtol=1e-8)


def test_float32_features_are_accepted(table):
    X, y, _ = table
    X = ((X - X.mean(0)) / X.std(0)).astype(np.float32)
    model = GeneralizedLinear().fit(X, y.astype(np.float32))
    assert model.coef_.dtype == np.float64
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X.astype(float), y).coef_, rtol=1e-4, atol=1e-4)


def test_inputs_are_never_modified(table):
    X, y, weights = table
    copies = X.copy(), y.copy(), weights.copy()
    GeneralizedLinear(alpha=0.1).fit(X, y, sample_weight=weights)
    for before, after in zip(copies, (X, y, weights), strict=True):
        np.testing.assert_array_equal(before, after)


def test_bad_input_is_named():
    X, y = np.ones((3000, 2)), np.ones((3000, 4))
    bad_X, bad_y = X.copy(), y.copy()
    bad_X[2500, 1] = np.nan
    bad_y[2100, 3] = -np.inf
    with pytest.raises(ValueError, match=r"X must be finite; row 2500, column 1 has NaN"):
        GeneralizedLinear().fit(bad_X, y)
    with pytest.raises(ValueError, match=r"y must be finite; row 2100, column 3 has -inf"):
        GeneralizedLinear().fit(X, bad_y)
    with pytest.raises(ValueError, match=r"row 1 has -1"):
        GeneralizedLinear().fit(X, y, sample_weight=np.r_[1.0, -1.0, np.ones(2998)])
    with pytest.raises(ValueError, match=r"sample_weight must be finite; row 0 has NaN"):
        GeneralizedLinear().fit(X, y, sample_weight=np.r_[np.nan, np.ones(2999)])
    with pytest.raises(ValueError, match=r"zero in every row"):
        GeneralizedLinear().fit(X, y, sample_weight=np.zeros(3000))
    with pytest.raises(ValueError, match=r"deviance must be one of 'squared', .*; got 'logistic'"):
        GeneralizedLinear("logistic").fit(X, y)
    with pytest.raises(ValueError, match=r"alpha must be a number at least 0; got alpha=-1"):
        GeneralizedLinear(alpha=-1).fit(X, y)
    with pytest.raises(ValueError, match=r"link must be one of None, 'identity', 'log'; got 'probit'"):
        GeneralizedLinear(link="probit").fit(X, y)
    with pytest.raises(ValueError, match=r"the gamma deviance needs positive predictions.*identity link"):
        GeneralizedLinear("gamma", link="identity").fit(X, y)
    with pytest.raises(ValueError, match=r"power must be a number at least 1 and at most 2; got power=0.5"):
        GeneralizedLinear("tweedie", power=0.5).fit(X, y)
    with pytest.raises(ValueError, match=r"max_iter must be at least 1"):
        GeneralizedLinear("gamma", max_iter=0).fit(X, y)
    with pytest.raises(ValueError, match=r"tol must be a number at least 0"):
        GeneralizedLinear("gamma", tol=np.nan).fit(X, y)


PEERS = {
    "poisson": (GeneralizedLinear("poisson"), PoissonRegressor()),
    "gamma": (GeneralizedLinear("gamma"), GammaRegressor()),
    "tweedie 1.2": (GeneralizedLinear("tweedie", power=1.2), TweedieRegressor(power=1.2)),
    "tweedie 1.9": (GeneralizedLinear("tweedie", power=1.9), TweedieRegressor(power=1.9)),
}


@pytest.fixture
def positive():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4)) * [1, 1, 0.1, 10] + [0, 3, 0, 0]
    y = np.exp(0.5 * X @ (rng.normal(size=(4, 3)) / [[1], [1], [0.1], [10]])) * rng.gamma(2, size=(300, 3))
    return X, y * [1e-3, 1, 50], rng.uniform(0, 3, size=300)


class TestLogLink:
    @pytest.mark.parametrize("name", PEERS)
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("alpha", [0.0, 0.3])
    def test_equals_scikit_learn_output_by_output(self, positive, name, fit_intercept, weighted, alpha):
        X, y, weights = positive
        weights = weights if weighted else None
        ours, theirs = map(clone, PEERS[name])
        ours.set_params(alpha=alpha, fit_intercept=fit_intercept).fit(X, y, sample_weight=weights)
        # Its tolerance is for the gradient, whose size goes with that of the targets to the power 2 - p.
        theirs.set_params(alpha=alpha, fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-13, max_iter=1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # such a gradient may be out of reach for rounding
            for j, column in enumerate(y.T):
                theirs.fit(X, column, sample_weight=weights)
                np.testing.assert_allclose(ours.coef_[j], theirs.coef_, rtol=1e-6, atol=1e-6)
                np.testing.assert_allclose(ours.intercept_[j], theirs.intercept_, rtol=1e-6, atol=1e-6)
        assert ours.converged_.all()

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("alpha", [0.0, 0.3])
    def test_least_squares_ends_no_higher_than_a_general_minimiser(self, positive, fit_intercept, alpha):
        X, y, weights = positive
        model = GeneralizedLinear("squared", link="log", alpha=alpha, fit_intercept=fit_intercept)
        model.fit(X, y[:, 1], sample_weight=weights)

        def objective(parameters):
            mean = np.exp(np.clip(parameters[0] * fit_intercept + X @ parameters[1:], -50, 50))
            return np.average((y[:, 1] - mean) ** 2, weights=weights) / 2 + alpha / 2 * (parameters[1:] ** 2).sum()

        starts = 0.1 * np.random.default_rng(0).normal(size=(9, 5))
        lowest = min(minimize(objective, start, method="BFGS").fun for start in starts)
        assert objective(np.r_[model.intercept_, model.coef_]) <= lowest + 1e-8
        assert model.converged_

    def test_tweedie_meets_poisson_and_gamma_at_its_ends(self, positive):
        X, y, _ = positive
        for power, name in [(1, "poisson"), (2, "gamma")]:
            near = GeneralizedLinear("tweedie", power=power + 1e-6 * (3 - 2 * power)).fit(X, y)
            np.testing.assert_allclose(near.coef_, GeneralizedLinear(name).fit(X, y).coef_, atol=1e-4)
            at = GeneralizedLinear("tweedie", power=power).fit(X, y)
            np.testing.assert_array_equal(at.coef_, GeneralizedLinear(name).fit(X, y).coef_)

    @pytest.mark.parametrize("name", PEERS)
    def test_units_of_targets_and_features_do_not_matter(self, positive, name):
        X, y, _ = positive
        model, _ = PEERS[name]
        plain = clone(model).fit(X, y)
        for unit in (1e-200, 1e-9, 1e9, 1e200):
            scaled = clone(model).fit(X, unit * y)
            np.testing.assert_allclose(scaled.coef_, plain.coef_, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(scaled.predict(X) / unit, plain.predict(X), rtol=1e-9)
        moved = clone(model).fit(X * [1e-8, 1, 1e8, 1] + [0, 1e4, 0, 0], y)
        np.testing.assert_allclose(moved.predict(X * [1e-8, 1, 1e8, 1] + [0, 1e4, 0, 0]), plain.predict(X), rtol=1e-7)

    def test_weight_two_is_the_row_twice(self, positive):
        X, y, _ = positive
        weights = np.random.default_rng(1).integers(0, 4, size=len(X))
        repeated = GeneralizedLinear("gamma", alpha=0.1).fit(X.repeat(weights, axis=0), y.repeat(weights, axis=0))
        weighted = GeneralizedLinear("gamma", alpha=0.1).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("alpha", [0.0, 0.1])
    def test_redundant_features_get_the_coefficients_of_least_norm(self, positive, alpha):
        X, y, _ = positive
        wide = np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(X), 7.0), 2 * X[:, 2]])
        model = GeneralizedLinear("poisson", alpha=alpha).fit(wide, y)
        null = np.array([[1, 1, 0, 0, -1, 0, 0], [0, 0, 2, 0, 0, 0, -1], [0, 0, 0, 0, 0, 1, 0]])
        np.testing.assert_allclose(model.coef_ @ null.T, 0, atol=1e-10)
        if alpha == 0:
            plain = GeneralizedLinear("poisson").fit(X, y)
            np.testing.assert_allclose(model.predict(wide), plain.predict(X), rtol=1e-7)

    def test_more_features_than_rows_fit_every_target(self):
        rng = np.random.default_rng(6)
        X, y = rng.normal(size=(20, 50)), rng.gamma(1, size=(20, 3))
        np.testing.assert_allclose(GeneralizedLinear("gamma").fit(X, y).predict(X), y, rtol=1e-4)

    def test_features_that_never_change_leave_the_mean(self):
        y = np.arange(1.0, 7).reshape(3, 2)
        for name in ("poisson", "gamma", "tweedie"):
            model = GeneralizedLinear(name).fit(np.ones((3, 2)), y, sample_weight=[1, 2, 3])
            np.testing.assert_allclose(model.predict(np.ones((1, 2))), [np.average(y, axis=0, weights=[1, 2, 3])])
            assert not model.coef_.any()

    def test_a_group_of_zeros_is_predicted_as_zero(self):
        X = np.repeat(np.eye(3), 10, axis=0)
        y = np.r_[np.zeros(10), np.arange(20.0)]
        for name in ("poisson", "tweedie"):
            model = GeneralizedLinear(name).fit(X, y)
            assert model.converged_
            np.testing.assert_allclose(model.predict(np.eye(3)), [0, 4.5, 14.5], atol=1e-5)

    def test_an_outlier_among_the_features_does_not_overflow(self, positive):
        X, y, _ = positive
        X = np.vstack([X, [[1e6, 0, 0, 0]]])
        model = GeneralizedLinear("poisson").fit(X, np.vstack([y, y[:1]]))
        assert model.converged_.all()
        assert np.isfinite(model.predict(1e9 * X)).all()
        assert (model.predict(-1e9 * X) > 0).all()

    def test_outputs_that_do_not_converge_are_named(self, positive):
        X, y, _ = positive
        y = np.column_stack([np.ones(len(X)), y, np.ones(len(X))])
        with pytest.warns(ConvergenceWarning, match=r"3 of 5 outputs did not converge in 2 passes: 1, 2, 3\."):
            model = GeneralizedLinear("poisson", max_iter=2).fit(X, y)
        assert model.converged_.tolist() == [True, False, False, False, True]
        assert model.n_iter_.tolist() == [1, 2, 2, 2, 1]
        # Given time, they do, and the objective is lower than where they were cut off.
        whole = GeneralizedLinear("poisson").fit(X, y)
        assert whole.converged_.all()
        for j in (1, 2, 3):
            cut_off, best = (mean_poisson_deviance(y[:, j], m.predict(X)[:, j]) for m in (model, whole))
            assert best < cut_off

    def test_a_warm_start_needs_no_second_search(self, positive):
        X, y, _ = positive
        model = GeneralizedLinear("gamma", warm_start=True).fit(X, y)
        cold, taken = model.coef_, model.n_iter_
        model.fit(X, y)
        assert (model.n_iter_ == 1).all()
        assert (taken > 1).all()
        np.testing.assert_allclose(model.coef_, cold, rtol=1e-7, atol=1e-9)
        near = GeneralizedLinear("gamma", alpha=0.01).fit(X, y)
        model.set_params(alpha=0.01).fit(X, y)
        assert (model.n_iter_ < near.n_iter_).all()
        np.testing.assert_allclose(model.coef_, near.coef_, rtol=1e-6, atol=1e-9)
        # A model of another shape is no start.
        other = GeneralizedLinear("gamma", alpha=0.01).fit(X[:, :2], y)
        np.testing.assert_array_equal(model.fit(X[:, :2], y).coef_, other.coef_)

    @pytest.mark.parametrize("name", ["poisson", "squared"])
    def test_rows_in_blocks_of_any_size_and_threads_equal_one_block(self, name):
        rng = np.random.default_rng(7)
        n = 9 * BLOCK_ROWS + 17
        X, weights = rng.normal(size=(n, 3)), rng.uniform(size=n)
        y = np.exp(X @ rng.normal(size=(3, 2))) * rng.gamma(3, size=(n, 2))
        model = GeneralizedLinear(name, link="log").fit(X, y, sample_weight=weights)
        again = GeneralizedLinear(name, link="log").fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(model.coef_, again.coef_)
        for size in (n, 5000):
            blocks = GeneralizedLinear(name, link="log").fit_rows(ArrayRows(X, y, weights, block_rows=size))
            np.testing.assert_allclose(blocks.coef_, model.coef_, rtol=1e-9)
            np.testing.assert_allclose(blocks.intercept_, model.intercept_, rtol=1e-9)

    def test_many_outputs_in_groups_equal_one_group(self, positive, monkeypatch):
        X, y, _ = positive
        y = y @ np.random.default_rng(8).uniform(size=(3, 40))
        expected = GeneralizedLinear("gamma", alpha=0.1).fit(X, y)
        monkeypatch.setattr(log_linear, "_HESSIAN_ENTRIES", 200)
        monkeypatch.setattr(log_linear, "_PAIRS", 4)
        monkeypatch.setattr(log_linear, "_ENTRIES", 100)
        model = GeneralizedLinear("gamma", alpha=0.1).fit(X, y)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
        np.testing.assert_array_equal(model.n_iter_, expected.n_iter_)

    def test_one_output_gives_scalars(self, positive):
        X, y, _ = positive
        model = GeneralizedLinear("gamma").fit(X.astype(np.float32), y[:, 0].astype(np.float32))
        assert (model.coef_.shape, model.predict(X).shape) == ((4,), (300,))
        assert isinstance(model.intercept_, float)
        assert isinstance(model.n_iter_, int)
        assert model.converged_ is True

    def test_inputs_are_never_modified(self, positive):
        copies = [array.copy() for array in positive]
        X, y, weights = positive
        weights[3] = copies[2][3] = 0.0
        GeneralizedLinear("gamma", alpha=0.1).fit(X, y, sample_weight=weights)
        for before, after in zip(copies, positive, strict=True):
            np.testing.assert_array_equal(before, after)

    def test_partial_fit_is_for_least_squares_alone(self, positive):
        X, y, _ = positive
        for model in (GeneralizedLinear("gamma"), GeneralizedLinear(link="log")):
            assert not hasattr(model, "partial_fit")
            with pytest.raises(AttributeError, match="partial_fit") as caught:
                model.partial_fit(X, y)
            assert "Use fit, or fit_files" in str(caught.value)
        # Rows seen by least squares before a fit with another link do not come back after it.
        model = GeneralizedLinear().fit(X, y).set_params(link="log").fit(X, y).set_params(link="identity")
        model.partial_fit(X[:50], y[:50])
        np.testing.assert_array_equal(model.coef_, GeneralizedLinear().fit(X[:50], y[:50]).coef_)


class TestAdmissibleTargets:
    def test_a_zero_row_without_weight_is_ignored_whatever_it_holds(self, positive):
        X, y, weights = positive
        weights[:5] = 0.0
        expected = GeneralizedLinear("gamma").fit(X[5:], y[5:], sample_weight=weights[5:])
        X, y = X.copy(), y.copy()
        X[0], y[0], y[1] = 1e4, 0.0, -1.0
        model = GeneralizedLinear("gamma").fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-7)

    def test_an_all_zero_row_of_costs_is_no_error_under_the_change_of_measure(self, positive):
        X, y, _ = positive
        expected = WiseRegressor(GeneralizedLinear("gamma")).fit(X[1:], y[1:]).predict(X)
        y[0] = 0.0
        expected *= (len(y) - 1) / len(y)  # the row has no direction, but counts in the mean size
        np.testing.assert_allclose(WiseRegressor(GeneralizedLinear("gamma")).fit(X, y).predict(X), expected, rtol=1e-7)

    def test_what_is_not_admitted_is_named_with_what_to_choose_instead(self):
        X, y = np.ones((3000, 2)), np.ones((3000, 4))
        zero, negative = y.copy(), y.copy()
        zero[2500, 3], negative[2100, 1] = 0.0, -2.0
        GeneralizedLinear("poisson").fit(X, zero)
        for learner in (GeneralizedLinear("gamma"), WiseRegressor(GeneralizedLinear("gamma"))):
            with pytest.raises(
                ValueError, match=r"gamma.*needs positive targets; row 2500, column 3 is zero\. Use .*poisson"
            ):
                learner.fit(X, zero)
        for learner in (
            GeneralizedLinear("poisson"),
            GeneralizedLinear("gamma"),
            GeneralizedLinear("tweedie"),
            GeneralizedLinear(link="log"),
            WiseRegressor(GeneralizedLinear("poisson")),
        ):
            with pytest.raises(
                ValueError, match=r"row 2100, column 1 is negative\. Use deviance=\"squared\" with link=\"id"
            ):
                learner.fit(X, negative)
        with pytest.raises(ValueError, match=r"row 2100, column 1 is negative"):
            GeneralizedLinear("poisson").fit_rows(ArrayRows(X, negative, block_rows=7))

    def test_a_column_of_zeros_is_named(self):
        with pytest.raises(ValueError, match=r"column 1 of the targets is zero in every row of positive weight"):
            GeneralizedLinear("poisson").fit(np.ones((2, 1)), [[1.0, 0.0], [2.0, 0.0]])
        with pytest.raises(ValueError, match=r"all 2 rows have weight zero"):
            WiseRegressor(GeneralizedLinear("gamma")).fit(np.ones((2, 1)), np.zeros((2, 2)))


def test_the_log_linear_model_decides_far_better_where_costs_are_far_from_linear():
    train, test = make_shortest_path(1200, degree=8, seed=0).split(200)
    regrets = [
        normalized_regret(test.problem, model.fit(train.X, train.costs).predict(test.X), test.costs)
        for model in (WiseRegressor(GeneralizedLinear("gamma")), WiseRegressor())
    ]
    assert regrets[0] < 0.6 * regrets[1]


class TestFeaturesOfAnySize:
    MODELS = (
        GeneralizedLinear(),
        GeneralizedLinear(fit_intercept=False),
        GeneralizedLinear("gamma"),
        GeneralizedLinear("poisson", fit_intercept=False),
        WiseRegressor(exponent=0.75),
    )

    @pytest.mark.parametrize("model", MODELS, ids=repr)
    def test_powers_of_two_change_no_bit(self, positive, model):
        X, y, _ = positive
        plain = clone(model).fit(X, y).predict(X)
        for exponents in ([40, 40, 40, 40], [-700, 0, 300, 1000]):
            scaled = np.ldexp(X, exponents)
            np.testing.assert_array_equal(clone(model).fit(scaled, y).predict(scaled), plain)

    @pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e155, 1e300])
    def test_other_units_change_rounding_only(self, positive, unit):
        X, y, weights = positive
        for model in self.MODELS:
            plain = clone(model).fit(X, y, sample_weight=weights).predict(X)
            scaled = clone(model).fit(unit * X, y, sample_weight=weights).predict(unit * X)
            np.testing.assert_allclose(scaled, plain, rtol=1e-9)
        parts = GeneralizedLinear()
        for rows in np.array_split(np.arange(len(X)), 5):
            parts.partial_fit(unit * X[rows], y[rows])
        np.testing.assert_allclose(parts.predict(unit * X), GeneralizedLinear().fit(X, y).predict(X), rtol=1e-9)

    @pytest.mark.parametrize("unit", [1e-200, 1e12, 1e200])
    def test_redundant_features_still_get_the_coefficients_of_least_norm(self, table, unit):
        X, y, _ = table
        wide = np.column_stack([X, 2 * X[:, 0], np.full(len(X), 7.0)])
        plain, scaled = (GeneralizedLinear().fit(size * wide, y) for size in (1.0, unit))
        np.testing.assert_allclose(plain.coef_[:, 6], 2 * plain.coef_[:, 0], rtol=1e-6)
        np.testing.assert_allclose(unit * scaled.coef_, plain.coef_, rtol=1e-6, atol=1e-9)

    def test_a_ridge_that_drowns_all_features_is_said(self, positive):
        X, y, _ = positive
        for model in (GeneralizedLinear(alpha=0.1), GeneralizedLinear("gamma", alpha=0.1)):
            for unit in (1e-10, 1e-250):
                with pytest.raises(ValueError, match=r"alpha=0.1 outweighs the squares of the features so far"):
                    clone(model).fit(unit * X, y)

    def test_what_is_beyond_float64_is_said(self, positive):
        X, y, _ = positive
        with pytest.raises(ValueError, match=r"overflow float64"):
            GeneralizedLinear().fit(X, np.full_like(y, 1.7e308))
        late = np.vstack([np.tile(X, (7, 1)), 1e200 * X])  # in the second block
        for model in (GeneralizedLinear(), WiseRegressor()):
            with pytest.raises(ValueError, match=r"overflow float64"):
                model.fit(late, np.tile(y, (8, 1)))
        with pytest.raises(ValueError, match=r"beyond the range of float64"):
            GeneralizedLinear().fit(1e-200 * X, 1e200 * y)
        with pytest.raises(ValueError, match=r"a log link needs targets with means from 1e-302 to 1e\+302"):
            GeneralizedLinear("gamma").fit(X, 1e-305 * y)


@pytest.mark.parametrize("unit", [1e-300, 1e-155, 1e155, 1e300])
@pytest.mark.parametrize("exponent", [0.0, 0.75, 2.0])
@pytest.mark.parametrize("options", [{}, {"scale": "iterated"}, {"scale": Ridge(), "lifted": True}], ids=repr)
def test_costs_of_any_size_under_any_measure(positive, unit, exponent, options):
    X, y = positive[0], np.random.default_rng(9).uniform(1, 2, size=(300, 3))
    for learner in (None, Ridge(), KNeighborsRegressor(), GeneralizedLinear("gamma")):
        model = WiseRegressor(learner, exponent=exponent, **options)
        plain = clone(model).fit(X, y)
        scaled = clone(model).fit(X, unit * y)
        np.testing.assert_allclose(scaled.predict(X) / unit, plain.predict(X), rtol=1e-6)
        assert scaled.score(X, unit * y) == pytest.approx(plain.score(X, y), rel=1e-6)


def test_an_exponent_that_takes_costs_out_of_float64_is_said(positive):
    X, y, _ = positive
    for learner in (None, Ridge()):
        with pytest.raises(ValueError, match=r"exponent=3 takes costs of about .* out of the range"):
            WiseRegressor(learner, exponent=3, scale="unit").fit(X, 1e200 * y)
    for unit in (1e-200, 1e200):
        with pytest.raises(ValueError, match=r"column 0 of the features has entries of up to .* beyond float64"):
            WiseRegressor(Ridge()).fit(unit * X, y)
