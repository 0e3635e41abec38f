import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMRegressor
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Lasso, LinearRegression, QuantileRegressor, Ridge, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from decidewise import CalibrationWarning, GeneralizedLinear, WiseRegressor
from decidewise.measure import transform


@pytest.mark.filterwarnings("ignore:there is one cost only")
@parametrize_with_checks(
    [
        WiseRegressor(),
        WiseRegressor(scale="unit"),
        WiseRegressor(scale="iterated"),
        WiseRegressor(scale=LinearRegression(), lifted=True),
        WiseRegressor(Ridge()),
        WiseRegressor(KNeighborsRegressor()),
    ]
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
    unit = WiseRegressor(exponent=exponent, scale="unit").fit(X, costs)
    np.testing.assert_allclose(unit.estimator_.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    mean = WiseRegressor(exponent=exponent).fit(X, costs)
    np.testing.assert_allclose(mean.predict(X), weights.mean() * unit.predict(X), rtol=1e-9, atol=1e-12)


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
    model = WiseRegressor(learner, lifted=True).fit(X, costs[:, :n_costs], sample_weight=np.ones(len(X)))
    assert model.predict(X[:4]).shape == (4, n_costs)
    assert model.n_features_in_ == 3


@pytest.mark.parametrize(
    "learner",
    [LGBMRegressor(n_estimators=2, verbosity=-1), make_pipeline(StandardScaler(), SGDRegressor(random_state=0))],
    ids=["LGBMRegressor", "pipeline"],
)
def test_metadata_routing_changes_no_fit(table, learner):
    X, costs = table
    plain = WiseRegressor(learner).fit(X, costs).predict(X)
    with config_context(enable_metadata_routing=True):
        np.testing.assert_array_equal(WiseRegressor(learner).fit(X, costs).predict(X), plain)


def test_weights_reach_a_learner_of_one_output_inside_a_pipeline(table):
    X, costs = table
    learner = GradientBoostingRegressor(n_estimators=5, random_state=0)
    weights, targets = transform(costs, scale=np.linalg.norm(costs, axis=1).mean())
    column = learner.fit(X, targets[:, 2], sample_weight=weights).predict(X)
    model = WiseRegressor(make_pipeline(StandardScaler(with_mean=False, with_std=False), learner)).fit(X, costs)
    np.testing.assert_allclose(model.predict(X)[:, 2], column, rtol=1e-9)


def test_a_learner_without_weights_sees_a_sample_of_the_changed_measure():
    # The counterexample of the paper's appendix, with a neighbour count that makes the learner a plain average.
    X, costs = np.zeros((4000, 1)), np.tile([[4.0, 0.0], [0.0, 1.0]], (2000, 1))
    model = WiseRegressor(KNeighborsRegressor(n_neighbors=4000)).fit(X, costs)
    np.testing.assert_allclose(model.predict(X[:1]) / 2.5, [[0.8, 0.2]], atol=0.03)
    again = WiseRegressor(KNeighborsRegressor(n_neighbors=4000)).fit(X, costs)
    np.testing.assert_array_equal(model.predict(X[:1]), again.predict(X[:1]))


def test_sample_weight_two_is_the_row_twice(table):
    X, costs = table
    weights = np.random.default_rng(1).integers(0, 3, size=len(X))
    twice = WiseRegressor().fit(X.repeat(weights, axis=0), costs.repeat(weights, axis=0))
    np.testing.assert_allclose(WiseRegressor().fit(X, costs, weights).predict(X), twice.predict(X), rtol=1e-9)


LEARNERS = (
    GeneralizedLinear(),
    GeneralizedLinear(alpha=0.1),
    GeneralizedLinear("gamma", alpha=0.1),
    GeneralizedLinear("poisson"),
    GeneralizedLinear(link="log"),
    LinearRegression(),
    DecisionTreeRegressor(max_depth=3),
)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_the_mean_scale_keeps_every_direction_and_has_the_size_of_the_costs(table, learner, exponent):
    X, costs = table
    weights = np.random.default_rng(3).uniform(0.5, 1.5, size=len(X))
    unit, mean = (
        WiseRegressor(learner, exponent=exponent, scale=scale).fit(X, costs, weights) for scale in ("unit", "mean")
    )
    size = np.average(np.linalg.norm(costs, axis=1) ** exponent, weights=weights)
    np.testing.assert_allclose(mean.predict(X), size * unit.predict(X), rtol=1e-4)
    assert mean.score(X, costs) == pytest.approx(unit.score(X, costs), rel=1e-4)


def by_hand(learner, X, costs, exponent, scale, power):
    sizes = np.linalg.norm(costs, axis=1) ** exponent
    return clone(learner).fit(X, costs * (scale / sizes)[:, None], sample_weight=sizes / scale ** (2 - power))


@pytest.mark.parametrize("exponent", [0.5, 1.0])
@pytest.mark.parametrize(
    ("learner", "power"), [(GeneralizedLinear(), 0), (GeneralizedLinear("gamma"), 2), (LinearRegression(), 0)]
)
def test_the_iterated_scale_is_the_norm_of_the_last_prediction(table, learner, power, exponent):
    X, costs = np.delete(table[0], 7, axis=0), np.delete(table[1], 7, axis=0)
    prediction = clone(learner).fit(X, costs).predict(X)
    sizes = np.linalg.norm(costs, axis=1) ** exponent
    for _ in range(6):
        scale = np.linalg.norm(prediction, axis=1) ** exponent
        scale *= sizes.mean() / scale.mean()
        prediction = by_hand(learner, X, costs, exponent, np.maximum(scale, 0.1 * sizes.mean()), power).predict(X)
    model = WiseRegressor(learner, exponent=exponent, scale="iterated").fit(X, costs)
    np.testing.assert_allclose(model.predict(X), prediction, rtol=1e-5)
    with_zeros = WiseRegressor(learner, exponent=exponent, scale="iterated").fit(*table)
    np.testing.assert_allclose(with_zeros.predict(X), prediction, rtol=0.05)  # zero costs enter the mean size only


def test_an_estimator_of_the_scale_predicts_the_size(table):
    X, costs = np.delete(table[0], 7, axis=0), np.delete(table[1], 7, axis=0)
    sizes = np.linalg.norm(costs, axis=1)
    scale = np.maximum(Ridge().fit(X, sizes).predict(X), sizes.min())
    model = WiseRegressor(scale=Ridge()).fit(X, costs)
    np.testing.assert_allclose(
        model.predict(X), by_hand(LinearRegression(), X, costs, 1, scale, 0).predict(X), rtol=1e-9
    )
    np.testing.assert_allclose(model.scale_estimator_.predict(X), Ridge().fit(X, sizes).predict(X))
    assert not hasattr(model.set_params(scale="mean").fit(X, costs), "scale_estimator_")


@pytest.mark.parametrize("scale", ["unit", "mean", "iterated", LinearRegression()])
@pytest.mark.parametrize(
    "learner",
    [*(learner for learner in LEARNERS if not getattr(learner, "alpha", 0)), KNeighborsRegressor(60)],
    ids=repr,
)
def test_a_lifted_fit_estimates_the_costs_themselves(learner, scale):
    """Each of three groups of rows has its own distribution of costs, and is its own group of features."""
    rng = np.random.default_rng(1)
    group = np.arange(600) % 3
    costs = rng.lognormal(group[:, None] + np.arange(4) / 4, 0.4, size=(600, 4))
    X, means = np.eye(3)[group], np.array([costs[group == k].mean(axis=0) for k in range(3)])
    model = WiseRegressor(learner, scale=scale, lifted=True).fit(X, costs)
    exact = not isinstance(learner, KNeighborsRegressor)
    np.testing.assert_allclose(model.predict(np.eye(3)), means, rtol=1e-4 if exact else 0.35)


def test_zero_costs_count_in_a_lifted_fit():
    costs = np.array([[4.0, 0.0], [0.0, 2.0], [0.0, 0.0], [2.0, 2.0]])
    model = WiseRegressor(lifted=True).fit(np.zeros((4, 1)), costs)
    np.testing.assert_allclose(model.predict([[0.0]]), [[1.5, 1.0]])


def test_a_lifted_prediction_is_never_turned_around():
    X = np.array([[0.0], [1.0], [2.0]])
    costs = [[1.0, 0.1], [2.0, 1.0], [3.0, 1.0]]
    far = np.array([[50.0]])  # where the linear divisor would be negative
    lifted, plain = (WiseRegressor(lifted=lifted).fit(X, costs) for lifted in (True, False))
    assert lifted.estimator_.predict(far)[0, -1] < 0
    assert np.sign(lifted.predict(far)).tolist() == np.sign(plain.predict(far)).tolist()


def test_penalties_and_tolerances_are_those_of_the_costs():
    """On targets of norm 1 this penalty removes every coefficient."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    costs = 50 + 2 * X @ rng.normal(size=(4, 6)) + rng.normal(size=(300, 6))
    unit, mean = (WiseRegressor(Lasso(0.1), scale=scale).fit(X, costs) for scale in ("unit", "mean"))
    assert np.ptp(unit.predict(X), axis=0).max() == 0
    assert mean.score(X, costs) > 0.7


def test_a_network_is_one_learner_of_all_outputs(table):
    X, costs = table
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=2000, tol=1e-3, random_state=0)
    for learner in (network, make_pipeline(StandardScaler(), network)):
        fitted = WiseRegressor(learner).fit(X, costs).estimator_
        last = fitted if learner is network else fitted[-1]
        assert last.n_outputs_ == 5


def test_one_cost_is_warned_about(table):
    X, costs = table
    with pytest.warns(CalibrationWarning, match=r"one cost only.*Set exponent=0"):
        WiseRegressor().fit(X, costs[:, :1])
    WiseRegressor(exponent=0).fit(X, costs[:, :1])
    WiseRegressor(lifted=True).fit(X, costs[:, :1])


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
            model = WiseRegressor(learner).fit(X, size * costs)
            np.testing.assert_allclose(model.predict(X) / size, expected, rtol=1e-8)


class TestPartialFit:
    """Chunk by chunk, the exact fit of all rows."""

    @pytest.mark.parametrize("parameters", [{}, {"exponent": 0.5}, {"exponent": 0.0}, {"scale": "unit"}])
    @pytest.mark.parametrize("size", [1.0, 1e200, 1e-200])
    def test_is_one_fit_on_all_rows(self, parameters, size):
        rng = np.random.default_rng(0)
        X, costs, weights = rng.normal(size=(90, 4)), size * rng.normal(1, 1, size=(90, 6)), rng.uniform(size=90)
        whole = WiseRegressor(**parameters).fit(X, costs, weights)
        parts = WiseRegressor(**parameters)
        for rows in (slice(0, 1), slice(1, 50), slice(50, 90)):
            parts.partial_fit(X[rows], costs[rows], weights[rows])
        unit = 1.0 if parameters.get("scale") == "unit" else size
        np.testing.assert_allclose(parts.predict(X) / unit, whole.predict(X) / unit, rtol=1e-9, atol=1e-9)
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
        model = WiseRegressor().partial_fit(X, costs)
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
        with pytest.raises(ValueError, match=r"scale='mean'.*scale='unit'.*call fit"):
            model.set_params(exponent=1.0, scale="unit").partial_fit(X, costs)

    @pytest.mark.parametrize(
        ("model", "reason"),
        [
            (WiseRegressor(Ridge()), "whose fit is one sum over the rows"),
            (WiseRegressor(GeneralizedLinear("gamma")), "squared deviance"),
            (WiseRegressor(scale="iterated"), "the weights of earlier rows change with every chunk"),
            (WiseRegressor(scale=Ridge()), "the weights of earlier rows change with every chunk"),
            (WiseRegressor(lifted=True), "the weights of earlier rows change with every chunk"),
        ],
    )
    def test_is_there_only_where_it_is_exact(self, model, reason):
        assert hasattr(WiseRegressor(), "partial_fit")
        with pytest.raises(AttributeError) as error:
            model.partial_fit([[1.0]], [[1.0]])
        assert reason in str(error.value)
