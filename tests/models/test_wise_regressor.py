import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, QuantileRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from decidewise import CalibrationWarning, GeneralizedLinear, WiseRegressor
from decidewise.measure import transform


@parametrize_with_checks(
    [WiseRegressor(), WiseRegressor(rescale=True), WiseRegressor(Ridge()), WiseRegressor(KNeighborsRegressor())]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    costs = np.exp(0.3 * X @ rng.normal(size=(3, 5))) * rng.uniform(0.5, 1.5, size=(400, 5))
    costs[7] = 0.0
    return X, costs


@pytest.mark.parametrize("exponent", [0.0, 0.75, 1.0, 2.0])
def test_the_default_is_weighted_least_squares_on_directions(table, exponent):
    X, costs = table
    weights, targets = transform(costs, exponent)
    expected = LinearRegression().fit(X, targets, sample_weight=weights)
    model = WiseRegressor(exponent=exponent).fit(X, costs)
    np.testing.assert_allclose(model.estimator_.coef_, expected.coef_, rtol=1e-9, atol=1e-12)


def test_exponent_zero_is_plain_least_squares_zero_rows_included(table):
    X, costs = table
    np.testing.assert_allclose(
        WiseRegressor(exponent=0).fit(X, costs).predict(X), LinearRegression().fit(X, costs).predict(X), rtol=1e-9
    )


@pytest.mark.parametrize(
    "learner",
    [
        Ridge(1e-9),
        make_pipeline(StandardScaler(), LinearRegression()),
        make_pipeline(StandardScaler(), GeneralizedLinear()),
        MultiOutputRegressor(LinearRegression()),
        GridSearchCV(Ridge(), {"alpha": [1e-9]}, cv=2),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_every_linear_learner_gives_the_same_answer(table, learner):
    X, costs = table
    np.testing.assert_allclose(
        WiseRegressor(learner).fit(X, costs).predict(X), WiseRegressor().fit(X, costs).predict(X), atol=1e-7
    )


@pytest.mark.parametrize(
    "learner",
    [
        GradientBoostingRegressor(n_estimators=3),  # one output
        make_pipeline(StandardScaler(), HistGradientBoostingRegressor(max_iter=3)),  # one output, in a pipeline
        RandomForestRegressor(n_estimators=3, random_state=0),
        KNeighborsRegressor(),  # no weights
        make_pipeline(PolynomialFeatures(2), KNeighborsRegressor()),
    ],
    ids=lambda learner: type(learner).__name__,
)
@pytest.mark.parametrize("n_costs", [1, 5])
def test_any_regressor_fits_and_predicts_in_shape(table, learner, n_costs):
    X, costs = table
    model = WiseRegressor(learner, rescale=True).fit(X, costs[:, :n_costs], sample_weight=np.ones(len(X)))
    assert model.predict(X[:4]).shape == (4, n_costs)
    assert model.n_features_in_ == 3


def test_weights_reach_a_learner_of_one_output_inside_a_pipeline(table):
    X, costs = table
    learner = GradientBoostingRegressor(n_estimators=5, random_state=0)
    weights, targets = transform(costs)
    column = learner.fit(X, targets[:, 2], sample_weight=weights).predict(X)
    model = WiseRegressor(make_pipeline(StandardScaler(with_mean=False, with_std=False), learner)).fit(X, costs)
    np.testing.assert_allclose(model.predict(X)[:, 2], column, rtol=1e-9)


def test_a_learner_without_weights_sees_a_sample_of_the_changed_measure():
    # The counterexample of the paper's appendix, with a neighbour count that makes the learner a plain average.
    X, costs = np.zeros((4000, 1)), np.tile([[4.0, 0.0], [0.0, 1.0]], (2000, 1))
    model = WiseRegressor(KNeighborsRegressor(n_neighbors=4000)).fit(X, costs)
    np.testing.assert_allclose(model.predict(X[:1]), [[0.8, 0.2]], atol=0.03)
    again = WiseRegressor(KNeighborsRegressor(n_neighbors=4000)).fit(X, costs)
    np.testing.assert_array_equal(model.predict(X[:1]), again.predict(X[:1]))


def test_sample_weight_two_is_the_row_twice(table):
    X, costs = table
    weights = np.random.default_rng(1).integers(0, 3, size=len(X))
    twice = WiseRegressor().fit(X.repeat(weights, axis=0), costs.repeat(weights, axis=0))
    np.testing.assert_allclose(WiseRegressor().fit(X, costs, weights).predict(X), twice.predict(X), rtol=1e-9)


def test_rescale_answers_in_the_units_of_the_costs_and_keeps_every_direction(table):
    X, costs = table
    plain, rescaled = WiseRegressor().fit(X, costs), WiseRegressor(rescale=True).fit(X, costs)
    ratio = rescaled.predict(X) / plain.predict(X)
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(5), rtol=1e-9)
    assert (ratio > 0).all()
    total = rescaled.predict(X).mean(0)
    np.testing.assert_allclose(total, costs.mean(0), rtol=0.05)


def test_rescale_never_turns_a_direction_around():
    X = np.array([[0.0], [1.0], [2.0]])
    model = WiseRegressor(rescale=True).fit(X, [[3.0, 1.0], [2.0, 1.0], [1.0, 0.1]])
    far = np.array([[50.0]])  # where the linear size would be negative
    assert (
        np.sign(model.predict(far)).tolist()
        == np.sign(WiseRegressor().fit(X, [[3, 1], [2, 1], [1, 0.1]]).predict(far)).tolist()
    )


def test_score_is_one_for_perfect_directions_and_zero_for_a_constant():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 1))
    costs = rng.uniform(1, 3, size=(200, 1)) * np.array([[3.0, 4.0]])
    constant = WiseRegressor().fit(np.zeros((200, 1)), rng.uniform(1, 2, size=(200, 2)))
    assert abs(constant.score(np.zeros((200, 1)), rng.uniform(1, 2, size=(200, 2)))) < 0.05
    costs[:, 1] += X[:, 0]
    assert WiseRegressor(GeneralizedLinear()).fit(X, costs).score(X, costs) < 1
    angles = 0.1 * X[:, 0]
    exact = np.column_stack([1 + 0 * angles, angles])
    assert WiseRegressor(exponent=0).fit(X, exact).score(X, exact) == pytest.approx(1)


@pytest.mark.parametrize(
    "learner",
    [
        QuantileRegressor(),
        GradientBoostingRegressor(loss="absolute_error", n_estimators=2),
        make_pipeline(StandardScaler(), HistGradientBoostingRegressor(loss="absolute_error", max_iter=2)),
        RandomForestRegressor(criterion="absolute_error", n_estimators=1),
        MultiOutputRegressor(GradientBoostingRegressor(loss="quantile", n_estimators=2)),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_a_loss_that_misses_the_mean_is_warned_about(table, learner):
    X, costs = table
    with pytest.warns(CalibrationWarning, match="conditional mean"):
        WiseRegressor(learner).fit(X[:50], costs[:50, :2])


def test_a_loss_that_meets_the_mean_is_not_warned_about(table):
    X, costs = table
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WiseRegressor(HistGradientBoostingRegressor(loss="gamma", max_iter=2)).fit(X, costs[:, :2] + 0.1)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("learner", [None, Ridge(), KNeighborsRegressor()])
def test_frames_in_give_the_same_model(table, frame, learner):
    X, costs = table
    named = frame({f"x{i}": X[:, i] for i in range(3)}), frame({f"edge {j}": costs[:, j] for j in range(5)})
    model = WiseRegressor(learner).fit(*named)
    assert list(model.feature_names_in_) == ["x0", "x1", "x2"]
    np.testing.assert_allclose(model.predict(named[0]), WiseRegressor(learner).fit(X, costs).predict(X), rtol=1e-9)


def test_grid_search_over_the_exponent_inside_a_pipeline(table):
    X, costs = table
    pipeline = make_pipeline(StandardScaler(), WiseRegressor(Ridge()))
    search = GridSearchCV(
        pipeline, {"wiseregressor__exponent": [0.0, 1.0], "wiseregressor__estimator__alpha": [0.1, 1.0]}, cv=3
    ).fit(X, costs)
    assert set(search.best_params_) == {"wiseregressor__exponent", "wiseregressor__estimator__alpha"}


def test_bad_input_is_named(table):
    X, costs = table
    bad = costs.copy()
    bad[17, 3] = np.nan
    for learner in (None, Ridge(), KNeighborsRegressor()):
        with pytest.raises(ValueError, match=r"costs must be finite; row 17, column 3 has NaN"):
            WiseRegressor(learner).fit(X, bad)
        with pytest.raises(ValueError, match=r"X has 399 rows, costs has 400 rows"):
            WiseRegressor(learner).fit(X[:-1], costs)
        with pytest.raises(ValueError, match=r"two-dimensional.*costs.shape=\(400,\)"):
            WiseRegressor(learner).fit(X, costs[:, 0])
        with pytest.raises(ValueError, match="zero"):
            WiseRegressor(learner).fit(X, np.zeros_like(costs))
        with pytest.raises(ValueError, match=r"sample_weight must not be negative; row 2 has -3"):
            WiseRegressor(learner).fit(X, costs, sample_weight=np.r_[1, 1, -3, np.ones(397)])
        with pytest.raises(ValueError, match=r"costs is empty"):
            WiseRegressor(learner).fit(X[:0], costs[:0])
    with pytest.raises(ValueError, match=r"exponent must be a number"):
        WiseRegressor(exponent=-1).fit(X, costs)


def test_all_zero_costs_are_no_error_for_plain_least_squares(table):
    X, costs = table
    assert not WiseRegressor(exponent=0).fit(X, np.zeros_like(costs)).predict(X).any()


def test_costs_near_the_ends_of_float64_fit_the_same_directions(table):
    X, costs = table
    expected = WiseRegressor().fit(X, costs).predict(X)
    for size in (1e200, 1e-200):
        for learner in (None, LinearRegression()):
            np.testing.assert_allclose(WiseRegressor(learner).fit(X, size * costs).predict(X), expected, rtol=1e-8)


class TestPartialFit:
    """Chunk by chunk, the exact fit of all rows."""

    @pytest.mark.parametrize("parameters", [{}, {"exponent": 0.5}, {"exponent": 0.0}, {"rescale": True}])
    @pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
    def test_is_one_fit_on_all_rows(self, parameters, scale):
        rng = np.random.default_rng(0)
        X, costs, weights = rng.normal(size=(90, 4)), scale * rng.normal(1, 1, size=(90, 6)), rng.uniform(size=90)
        whole = WiseRegressor(**parameters).fit(X, costs, weights)
        parts = WiseRegressor(**parameters)
        for rows in (slice(0, 1), slice(1, 50), slice(50, 90)):
            parts.partial_fit(X[rows], costs[rows], weights[rows])
        np.testing.assert_allclose(parts.predict(X) / scale, whole.predict(X) / scale, rtol=1e-9, atol=1e-9)
        assert parts.n_features_in_ == 4

    def test_goes_on_after_fit_and_uses_the_ridge_of_the_moment(self):
        rng = np.random.default_rng(1)
        X, costs = rng.normal(size=(60, 3)), rng.normal(1, 1, size=(60, 5))
        model = WiseRegressor(GeneralizedLinear()).fit(X[:30], costs[:30])
        model.set_params(estimator__alpha=0.1).partial_fit(X[30:], costs[30:])
        whole = WiseRegressor(GeneralizedLinear(alpha=0.1)).fit(X, costs)
        np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9)

    def test_a_refused_chunk_changes_nothing(self):
        rng = np.random.default_rng(2)
        X, costs = rng.normal(size=(20, 3)), rng.normal(1, 1, size=(20, 5))
        model = WiseRegressor(rescale=True).partial_fit(X, costs)
        before = model.predict(X)
        broken = costs.copy()
        broken[7, 2] = np.nan
        for args, message in (
            ((X, broken), "row 7"),
            ((X[:, :2], costs), "2 features"),
            ((X, costs[:, :4]), "Pass the same columns"),
            ((X, None), "requires y"),
        ):
            with pytest.raises(ValueError, match=message):
                model.partial_fit(*args)
            np.testing.assert_array_equal(model.predict(X), before)
        with pytest.raises(ValueError, match=r"exponent=1.0.*exponent=0.5.*call fit"):
            model.set_params(exponent=0.5).partial_fit(X, costs)

    @pytest.mark.parametrize(
        ("learner", "reason"),
        [(Ridge(), "whose fit is one sum over the rows"), (GeneralizedLinear("gamma"), "squared deviance")],
    )
    def test_is_there_only_where_it_is_exact(self, learner, reason):
        assert hasattr(WiseRegressor(), "partial_fit")
        with pytest.raises(AttributeError) as error:
            WiseRegressor(learner).partial_fit([[1.0]], [[1.0]])
        assert reason in "".join(traceback.format_exception(error.value))
