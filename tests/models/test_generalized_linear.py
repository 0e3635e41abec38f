import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, LinearRegression, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from decidewise.data import make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.models import GeneralizedLinear, WiseRegressor, log_linear
from decidewise.models.blocks import BLOCK_ROWS, Block


@parametrize_with_checks(
    [
        GeneralizedLinear(),
        GeneralizedLinear(alpha=0.1),
        GeneralizedLinear(fit_intercept=False),
        GeneralizedLinear("poisson"),
        GeneralizedLinear("poisson", alpha=0.1, fit_intercept=False),
        GeneralizedLinear("gamma"),
        GeneralizedLinear("gamma", alpha=0.1, warm_start=True),
        GeneralizedLinear("tweedie"),
        GeneralizedLinear("squared", link="log", alpha=0.1),
        WiseRegressor(GeneralizedLinear("gamma")),
    ]
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
    with pytest.raises(ValueError, match=r"deviance must be one of squared, poisson, gamma, tweedie; got 'logistic'"):
        GeneralizedLinear("logistic").fit(X, y)
    with pytest.raises(ValueError, match=r"alpha must be a finite number that is not negative; got -1"):
        GeneralizedLinear(alpha=-1).fit(X, y)
    with pytest.raises(ValueError, match=r'link must be None, "identity" or "log"; got \'probit\''):
        GeneralizedLinear(link="probit").fit(X, y)
    with pytest.raises(ValueError, match=r"the gamma deviance needs positive predictions.*identity link"):
        GeneralizedLinear("gamma", link="identity").fit(X, y)
    with pytest.raises(ValueError, match=r"power must be from 1 \(Poisson\) to 2 \(gamma\).*got 0.5"):
        GeneralizedLinear("tweedie", power=0.5).fit(X, y)
    with pytest.raises(ValueError, match=r"max_iter must be at least 1"):
        GeneralizedLinear("gamma", max_iter=0).fit(X, y)
    with pytest.raises(ValueError, match=r"tol must be a number that is not negative"):
        GeneralizedLinear("gamma", tol=np.nan).fit(X, y)


PEERS = {
    "poisson": (GeneralizedLinear("poisson"), PoissonRegressor()),
    "gamma": (GeneralizedLinear("gamma"), GammaRegressor()),
    "tweedie 1.2": (GeneralizedLinear("tweedie", power=1.2), TweedieRegressor(power=1.2)),
    "tweedie 1.9": (GeneralizedLinear("tweedie", power=1.9), TweedieRegressor(power=1.9)),
    "squared, log link": (GeneralizedLinear("squared", link="log"), TweedieRegressor(power=0, link="log")),
}


@pytest.fixture
def positive():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4)) * [1, 1, 0.1, 10] + [0, 3, 0, 0]
    y = np.exp(0.5 * X @ (rng.normal(size=(4, 3)) / [[1], [1], [0.1], [10]])) * rng.gamma(2, size=(300, 3))
    return X, y * [1e-3, 1, 50], rng.uniform(0, 3, size=300)


def largest_difference(ours, theirs, X, y, weights):
    """Return the largest difference of predictions, relative, over all outputs."""
    differences = []
    for column, prediction in zip(y.T, ours.predict(X).T, strict=True):
        theirs.fit(X, column, sample_weight=weights)
        differences.append(np.abs(prediction / theirs.predict(X) - 1).max())
    return max(differences)


class TestLogLink:
    @pytest.mark.parametrize("name", PEERS)
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("alpha", [0.0, 0.3])
    def test_equals_scikit_learn_output_by_output(self, positive, name, fit_intercept, weighted, alpha):
        X, y, weights = positive
        weights = weights if weighted else None
        ours, theirs = PEERS[name]
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
