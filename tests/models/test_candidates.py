"""What is on the menu, and why; boosted trees with LightGBM itself."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from decidewise import WiseRegressorCV
from decidewise.evaluate import normalized_regret
from decidewise.models import FlooredRegressor, default_candidates
from decidewise.models.selection.families import words_of
from decidewise.problems import TopK


@pytest.fixture(scope="module")
def steps():
    """Costs that jump where features change sign together: half of 2,400 rows each way, nothing for a linear model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2400, 3))
    means = 2.0 + np.sign(X * np.roll(X, 1, axis=1))
    return X, means + 0.1 * rng.normal(size=means.shape), TopK(3, 1, sense="min")


def trees_or_least_squares(X, costs):
    candidates = default_candidates(X, costs)
    return {name: candidates[name] for name in ("least squares", "trees", "wise trees")}


def test_trees_are_chosen_where_the_truth_is_theirs(steps):
    X, costs, problem = steps
    candidates = trees_or_least_squares(X, costs)
    model = WiseRegressorCV(problem, candidates, cv=3, random_state=0).fit(X, costs)
    regret = dict(zip(candidates, model.cv_results_["regret"], strict=True))
    assert set(model.members_) <= {"trees", "wise trees"}
    assert max(regret["trees"], regret["wise trees"]) < 0.2 * regret["least squares"]
    assert not any(model.cv_results_["error"])


def test_least_squares_is_kept_where_the_truth_is_linear(steps):
    X, _, problem = steps
    rng = np.random.default_rng(1)
    costs = X @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(len(X), 3))
    model = WiseRegressorCV(problem, trees_or_least_squares(X, costs), cv=3, random_state=0).fit(X, costs)
    assert model.best_name_ == "least squares"
    assert model.weights_["least squares"] > 0.9


def test_frames_and_arrays_give_the_same_trees(steps):
    X, costs, _ = steps
    frame, names = pd.DataFrame(X, columns=["a", "b", "c"]), ["north", "east", "south"]
    trees = default_candidates(frame, costs)["trees"]
    framed = trees.fit(frame, pd.DataFrame(costs, columns=names)).predict(frame)
    plain = default_candidates(X, costs)["trees"].fit(X, costs).predict(X)
    np.testing.assert_array_equal(framed, plain)


def test_without_lightgbm_the_trees_are_those_of_scikit_learn(steps, monkeypatch):
    X, costs, _ = steps
    assert list(default_candidates(X, costs))[-3:] == ["trees", "wise trees", "least squares + trees"]
    monkeypatch.setattr("decidewise.models.candidates.find_spec", lambda name: None)
    few = default_candidates(X[:300], costs[:300])
    assert isinstance(few["trees"].estimator, HistGradientBoostingRegressor)
    assert "LightGBM is not installed" in few.notes["trees"]
    for name in ("trees", "least squares + trees"):
        assert few[name].fit(X[:300], costs[:300]).predict(X[:2]).shape == (2, 3)


def test_a_forest_below_300_rows_and_no_trees_with_too_many_costs(steps):
    X, costs, _ = steps
    few = default_candidates(X[:299], costs[:299])
    assert list(few)[-1] == "forest"
    assert few.leads["forest"] == "forest"
    wide = default_candidates(X, np.ones((len(X), 101)))
    assert not any("trees" in name for name in wide)
    assert wide.notes["trees"] == "left out: 101 costs need as many sets of trees (at most 100)"


class TestLogLinks:
    def test_gamma_is_floored_for_zeros_and_the_others_take_them(self, steps):
        X, costs, _ = steps
        costs = np.abs(costs) + 0.1
        costs[5, 1] = 0.0
        candidates = default_candidates(X, costs)
        assert isinstance(candidates["wise gamma"].estimator, FlooredRegressor)
        assert candidates["wise poisson"].estimator.deviance == "poisson"
        assert candidates.notes["log links"].startswith("1 costs at or below zero")
        for name in ("gamma", "wise gamma", "poisson", "wise log squared", "wise gamma, ridge 0.1", "logarithms"):
            assert (candidates[name].fit(X, costs).predict(X) > 0).all()

    def test_a_row_without_costs_is_no_obstacle(self, steps):
        X, costs, problem = steps
        X, costs = X[:200], np.abs(costs[:200]) + 0.1
        costs[7] = 0.0
        model = WiseRegressorCV(problem, cv=2, random_state=0).fit(X, costs)
        assert "failed" not in model.cv_results_["status"]
        with pytest.raises(ValueError, match="zero"):
            WiseRegressorCV(problem, cv=2).fit(X, np.zeros((200, 3)))

    def test_all_are_floored_for_a_few_negative_costs_and_none_is_there_for_many(self, steps):
        X, costs, _ = steps
        costs = np.abs(costs) + 0.1
        costs[:300, 1] = -1.0  # 4 % of the costs
        few = default_candidates(X, costs)
        for name in ("gamma", "poisson", "log squared"):
            assert isinstance(few[name].estimator, FlooredRegressor)
            few[name].fit(X, costs)
        costs[:400, 1] = -1.0
        assert not any("gamma" in name for name in default_candidates(X, costs))


def test_the_given_forecast_is_a_candidate_and_wins_where_it_is_right(steps):
    X, costs, problem = steps
    X = np.hstack([X, costs + 0.05 * np.random.default_rng(2).normal(size=costs.shape)])[:400]
    model = WiseRegressorCV(problem, forecast={"published": [3, 4, 5]}, random_state=0).fit(X, costs[:400])
    regret = dict(zip(model.cv_results_["candidate"], model.cv_results_["regret"], strict=True))
    assert regret["published"] == pytest.approx(normalized_regret(problem, X[:, 3:], costs[:400]))
    assert regret["published"] < 0.1 * regret["training mean"]
    np.testing.assert_array_equal(
        default_candidates(X, costs[:400], forecast=[3, 4, 5])["forecast"].fit(X, costs[:400]).predict(X), X[:, 3:]
    )


def test_with_many_more_features_than_rows_what_fits_any_costs_needs_a_ridge_and_no_trees_are_grown():
    menu = default_candidates(np.ones((400, 1_000)), np.ones((400, 21)))
    assert not {"gamma", "poisson", "log squared", "directions gamma", "wise iterated", "trees"} & set(menu)
    assert {"least squares", "wise", "gamma, ridge 0.1", "wise iterated, ridge 0.1"} <= set(menu)
    assert menu.notes["log links"].startswith("with a ridge only: 1,000 features fit the costs of 400 rows")
    assert menu.notes["trees"].startswith("left out: each split would search 21,000 columns")
    assert {"gamma", "trees"} <= set(default_candidates(np.ones((400, 150)), np.ones((400, 21))))
    every = default_candidates(np.ones((400, 1_000)), np.ones((400, 21)), every=True)
    assert {"gamma", "directions gamma", "wise iterated", "trees"} <= set(every)


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("shape", [(400, 4), (400, 3, 4), (80, 4), (10, 4)])
def test_every_candidate_has_a_family_that_has_words(shape, every):
    rng = np.random.default_rng(0)
    menu = default_candidates(rng.normal(size=shape), rng.uniform(1, 2, (shape[0], 3)), forecast=[0] * 3, every=every)
    assert set(menu) == set(menu.families)
    assert all(words_of(family).meaning for family in menu.families.values())
