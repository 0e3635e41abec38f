"""Each small learner does what it says, against the same by hand."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

from decidewise import GeneralizedLinear, WiseRegressor, WiseRegressorCV
from decidewise.kit.scaling import norms, unit_rows
from decidewise.models import (
    AveragedRegressor,
    ClippedWise,
    CorrectedRegressor,
    DemandRegressor,
    FlooredRegressor,
    GivenForecast,
    NearestScenarios,
    ResidualScenarios,
    SmoothFeatures,
)
from decidewise.models.learners.one_thread_boosting import FEW_BINS, JointBoosting, OneThreadBoosting
from decidewise.problems import Levels, TopK, level_costs, level_features, newsvendor

RNG = np.random.default_rng(0)
X, COSTS = RNG.normal(size=(60, 3)), RNG.lognormal(size=(60, 4))


@pytest.mark.filterwarnings("ignore:there is one cost only")
@parametrize_with_checks(
    [SmoothFeatures(10), ClippedWise(), CorrectedRegressor(LinearRegression(), DecisionTreeRegressor(max_depth=2))]
)
def test_scikit_learn(estimator, check):
    check(estimator)


class TestClippedWise:
    def test_zero_is_least_squares_of_directions_and_one_is_wise(self):
        directions = GeneralizedLinear().fit(X, unit_rows(COSTS)).predict(X)
        np.testing.assert_allclose(ClippedWise(clip=0.0, scale="unit").fit(X, COSTS).predict(X), directions)
        np.testing.assert_allclose(
            ClippedWise(clip=1.0).fit(X, COSTS).predict(X), WiseRegressor().fit(X, COSTS).predict(X)
        )

    def test_between_weights_are_clipped_at_the_quantile(self):
        weights = np.minimum(norms(COSTS), np.quantile(norms(COSTS), 0.5, method="inverted_cdf"))
        by_hand = GeneralizedLinear("gamma").fit(X, unit_rows(COSTS), weights).predict(X)
        np.testing.assert_allclose(
            ClippedWise(GeneralizedLinear("gamma"), clip=0.5, scale="unit").fit(X, COSTS).predict(X), by_hand
        )

    def test_rows_of_zeros_and_bad_input(self):
        costs = np.vstack([COSTS, np.zeros(4)])
        same = ClippedWise(scale="unit").fit(np.vstack([X, X[:1]]), costs).predict(X)
        np.testing.assert_allclose(same, ClippedWise(scale="unit").fit(X, COSTS).predict(X))
        with pytest.raises(ValueError, match="clip must be"):
            ClippedWise(clip=2).fit(X, COSTS)
        with pytest.raises(ValueError, match="nothing to learn"):
            ClippedWise().fit(X, np.zeros((60, 4)))
        assert not hasattr(ClippedWise(), "partial_fit")


def test_an_average_has_the_weights_that_it_is_given():
    members = [("mean", DummyRegressor()), ("linear", LinearRegression())]
    X, costs = np.arange(6.0)[:, None], np.random.default_rng(0).normal(size=(6, 2))
    mean, linear = (model.fit(X, costs).predict(X) for _, model in members)
    averaged = AveragedRegressor(members, directions=False, weights=[1, 3]).fit(X, costs).predict(X)
    np.testing.assert_allclose(averaged, 0.25 * mean + 0.75 * linear)
    # An average of directions has the mean size of the members that predict sizes.
    wise = WiseRegressor().fit(X, costs).predict(X)
    model = AveragedRegressor([*members, ("wise", WiseRegressor())], weights=[1, 2, 3]).fit(X, costs)
    direction = unit_rows(mean) / 6 + unit_rows(linear) / 3 + unit_rows(wise) / 2
    size = np.linalg.norm(mean, axis=1) / 3 + 2 * np.linalg.norm(linear, axis=1) / 3
    np.testing.assert_allclose(model.predict(X), direction * size[:, None])
    assert not model.predicts_directions
    assert AveragedRegressor([("wise", WiseRegressor())]).predicts_directions
    # A search over models of directions is one of them, once it is fitted.
    search = GridSearchCV(WiseRegressor(), {"exponent": [1.0]}, cv=2)
    searched = AveragedRegressor([*members, ("wise", search)], weights=[1, 2, 3]).fit(X, costs)
    np.testing.assert_allclose(searched.predict(X), model.predict(X))
    for weights, sentence in [
        ([1.0, -1.0], r"weights must be at least zero, and not all zero; got \[1.0, -1.0\]"),
        ([0.0, 0.0], "not all zero"),
        ([1.0], r"weights must be a vector of length 2; got weights.shape=\(1,\)"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            AveragedRegressor(members, weights=weights).fit(X, costs)


def test_floored_targets_are_those_of_a_maximum():
    costs = COSTS.copy()
    costs[3, 1] = -2.0
    floors = 0.05 * np.abs(costs).mean(axis=0)
    expected = GeneralizedLinear("gamma").fit(X, np.maximum(costs, floors)).predict(X)
    np.testing.assert_allclose(FlooredRegressor(GeneralizedLinear("gamma")).fit(X, costs).predict(X), expected)


class TestCorrectedRegressor:
    def test_it_is_the_sum_of_two_fits_with_the_weights_that_it_gets(self):
        y, weights = COSTS[:, 0], RNG.uniform(0.5, 2, len(X))
        line, tree = LinearRegression(), DecisionTreeRegressor(max_depth=3, random_state=0)
        model = CorrectedRegressor(line, tree).fit(X, y, weights)
        first = LinearRegression().fit(X, y, weights).predict(X)
        extended = np.column_stack([X, first])
        second = clone(tree).fit(extended, y - first, weights).predict(extended)
        np.testing.assert_allclose(model.predict(X), first + second)
        many = CorrectedRegressor(line, tree).fit(X, COSTS, weights).predict(X)
        np.testing.assert_allclose(many[:, 0], first + second)

    def test_it_corrects_features_per_item_and_many_costs(self):
        rng = np.random.default_rng(1)
        items = rng.normal(size=(400, 3, 2))
        costs = 5 + items[..., 0] + 2 * (np.abs(items[..., 1]) < 0.5)  # a step that no line sees
        step = CorrectedRegressor(GeneralizedLinear(), DecisionTreeRegressor(max_leaf_nodes=3))
        for features in (items, items.reshape(400, 6)):
            line, both = (
                WiseRegressor(learner, exponent=0.0).fit(features, costs).predict(features)
                for learner in (GeneralizedLinear(), step)
            )
            assert ((both - costs) ** 2).mean() < 0.5 * ((line - costs) ** 2).mean()

    def test_what_is_no_learner_is_named(self):
        with pytest.raises(TypeError, match="correction must be a regressor"):
            CorrectedRegressor(LinearRegression(), "trees").fit(X, COSTS[:, 0])


def test_smooth_features_approximate_a_gaussian_kernel():
    smooth = SmoothFeatures(20_000, bandwidth=0.7).fit(X)
    waves = smooth.transform(X)[:, 3:] / np.sqrt(10_000)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    width = 0.7 * np.median(distances[np.triu_indices(60, 1)])
    assert np.abs(waves @ waves.T - rbf_kernel(X, gamma=1 / (2 * width**2))).max() < 0.06
    np.testing.assert_array_equal(SmoothFeatures(10).fit(X).transform(X), SmoothFeatures(10).fit(X).transform(X))


class TestScenarios:
    def test_errors_of_the_training_rows_around_the_forecast(self):
        rng = np.random.default_rng(0)
        X, demand = rng.normal(size=(30, 2)), rng.gamma(2.0, 3.0, size=(30, 3))
        least_squares = GeneralizedLinear().fit(X, demand)
        errors = demand - least_squares.predict(X)
        expected = least_squares.predict(X[:4])[:, np.newaxis] + errors
        np.testing.assert_allclose(ResidualScenarios().fit(X, demand).predict(X[:4]), expected)
        few = ResidualScenarios(GeneralizedLinear(), most=3).fit(X, demand).predict(X[:4])
        np.testing.assert_allclose(few, expected[:, [0, 14, 29]])

    def test_the_nearest_rows_in_units_of_their_spread(self):
        X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 900.0], [9.0, 9000.0]])
        demand = np.arange(4.0)[:, np.newaxis]
        found = NearestScenarios(2).fit(X, demand).predict([[0.4, 100.0]])
        assert found[0, :, 0].tolist() == [0.0, 1.0]
        items = NearestScenarios(1).fit(X[:, :, np.newaxis], np.hstack([demand, demand])).predict(X[:, :, np.newaxis])
        np.testing.assert_array_equal(items[:, 0, 0], demand[:, 0])


class TestDemandRegressor:
    @pytest.mark.parametrize("per_item", [False, True])
    def test_costs_of_scenarios_and_their_correction(self, per_item):
        rng = np.random.default_rng(1)
        demand = rng.gamma(2.0, 3.0, size=(40, 2))
        problem = Levels([[0, 4, 8], [1, 5]], cost=newsvendor(1, 3))
        items = rng.normal(size=(40, 2, 3)) if per_item else rng.normal(size=(40, 3))
        features = level_features(items, problem.levels) if per_item else items
        costs = level_costs(demand, problem.levels, problem.cost)
        known = problem.with_demand(demand)
        found = DemandRegressor(ResidualScenarios(), known).fit(features, costs).predict(features)
        expected = problem.as_costs(ResidualScenarios().fit(items, demand).predict(items))
        np.testing.assert_allclose(found, expected)
        corrected = DemandRegressor(ResidualScenarios(), known, GeneralizedLinear()).fit(features, costs)
        left = GeneralizedLinear().fit(features, costs - expected)
        np.testing.assert_allclose(corrected.predict(features), expected + left.predict(features))
        with pytest.raises(ValueError, match=r"pass problem\.with_demand"):
            DemandRegressor(ResidualScenarios(), problem).fit(features, costs)

    def test_the_choice_learns_from_demand(self):
        rng = np.random.default_rng(2)
        items = rng.normal(size=(60, 2, 1))
        demand = rng.poisson(np.exp(1.5 + items[:, :, 0])).astype(float)
        problem = Levels([[0, 4, 8, 16], [0, 4, 8]], budget=16, cost=newsvendor(1, 3))
        choice = WiseRegressorCV(problem, cv=3, random_state=0).fit(items, demand)
        assert {"demand forecast", "demand scenarios", "similar rows"} <= set(choice.cv_results_["candidate"])
        assert not any(choice.cv_results_["error"])
        costs = level_costs(demand, problem.levels, problem.cost)
        by_costs = WiseRegressorCV(problem, cv=3, random_state=0).fit(items, costs)
        assert "demand scenarios" not in by_costs.cv_results_["candidate"]
        assert choice.predict(items).shape == by_costs.predict(items).shape == (60, 7)
        assert choice.score(items, demand) == pytest.approx(choice.score(items, costs))


class TestGivenForecast:
    problem = TopK(4, 1)

    def test_columns_names_functions_and_items(self):
        frame = pd.DataFrame(COSTS, columns=list("abcd")).assign(day="Mon")
        by_name = GivenForecast(list("dcba")).fit(frame, COSTS).predict(frame)
        np.testing.assert_array_equal(by_name, COSTS[:, ::-1])
        by_function = GivenForecast(lambda X: X[list("abcd")] * 2).fit(frame, COSTS).predict(frame)
        np.testing.assert_array_equal(by_function, 2 * COSTS)
        items = np.stack([np.zeros_like(COSTS), COSTS], axis=2)
        np.testing.assert_array_equal(GivenForecast(1).fit(items, COSTS).predict(items), COSTS)

    @pytest.mark.parametrize(
        ("forecast", "sentence"),
        [
            ({"mine": [0, 1]}, r"the forecast 'mine' has shape \(60, 2\), but there are 4 costs in 60 rows"),
            (
                [0, 1, 2, 9],
                r"the forecast 'forecast' must be a list of columns of X or a function of X; got \[0, 1, 2, 9\]",
            ),
            (lambda X: np.full((60, 4), np.nan), r"the forecast 'forecast' must be finite; row 0, column 0 has NaN"),
            (lambda X: np.ones((59, 4)), r"has shape \(59, 4\), but there are 4 costs in 60 rows"),
            (7, "must be a list of columns of X or a function"),
        ],
    )
    def test_a_bad_forecast_is_an_error_before_anything_is_fitted(self, forecast, sentence):
        with pytest.raises(ValueError, match=sentence):
            WiseRegressorCV(self.problem, [WiseRegressor()], forecast=forecast).fit(X, COSTS)


def openmp_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"}


def test_boosting_on_one_thread_gives_the_same_trees_and_leaves_the_threads_as_they_were(monkeypatch):
    settings = {"max_iter": 5, "early_stopping": False, "random_state": 0}
    plain = HistGradientBoostingRegressor(**settings).fit(X, COSTS[:, 0]).predict(X)
    before, during = openmp_threads(), []
    for method in ("fit", "predict"):

        def watched(self, *args, original=getattr(HistGradientBoostingRegressor, method)):  # noqa: B008
            during.append(openmp_threads())
            return original(self, *args)

        monkeypatch.setattr(HistGradientBoostingRegressor, method, watched)
    np.testing.assert_array_equal(OneThreadBoosting(**settings).fit(X, COSTS[:, 0]).predict(X), plain)
    assert during == [{1}, {1}]
    assert openmp_threads() == before


@pytest.mark.parametrize("weights", [None, RNG.uniform(0.5, 2, 400)], ids=["alike", "weighted"])
def test_joint_boosting_has_the_trees_of_a_model_for_each_output(weights):
    X = RNG.normal(size=(400, 4))
    costs = 5 * np.sign(X[:, :3]) + RNG.normal(size=(400, 3))
    alone = LGBMRegressor(n_estimators=20, learning_rate=0.3, num_leaves=15, max_bin=FEW_BINS, n_jobs=1, verbosity=-1)
    by_output = np.transpose([clone(alone).fit(X, cost, weights).predict(X) for cost in costs.T])
    np.testing.assert_allclose(JointBoosting(0.3).fit(X, costs, weights).predict(X), by_output, atol=1e-5)
    np.testing.assert_allclose(JointBoosting(0.3).fit(X, costs[:, 0], weights).predict(X), by_output[:, 0], atol=1e-5)
