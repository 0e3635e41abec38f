"""Boosted trees as candidates, with LightGBM itself."""

import numpy as np
import pandas as pd
import pytest

from decidewise import WiseRegressorCV
from decidewise.models import default_candidates
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
    assert model.best_name_ == "trees"
    assert max(regret["trees"], regret["wise trees"]) < 0.2 * regret["least squares"]
    assert not any(model.cv_results_["error"])


def test_least_squares_is_kept_where_the_truth_is_linear(steps):
    X, _, problem = steps
    rng = np.random.default_rng(1)
    costs = X @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(len(X), 3))
    model = WiseRegressorCV(problem, trees_or_least_squares(X, costs), cv=3, random_state=0).fit(X, costs)
    assert model.best_name_ == "least squares"


def test_frames_and_arrays_give_the_same_trees(steps):
    X, costs, _ = steps
    frame, names = pd.DataFrame(X, columns=["a", "b", "c"]), ["north", "east", "south"]
    trees = default_candidates(frame, costs)["trees"]
    framed = trees.fit(frame, pd.DataFrame(costs, columns=names)).predict(frame)
    plain = default_candidates(X, costs)["trees"].fit(X, costs).predict(X)
    np.testing.assert_array_equal(framed, plain)


def test_without_lightgbm_there_are_no_trees(steps, monkeypatch):
    X, costs, _ = steps
    assert list(default_candidates(X, costs))[-2:] == ["trees", "wise trees"]
    monkeypatch.setattr("decidewise.models.candidates.find_spec", lambda name: None)
    assert not any("trees" in name for name in default_candidates(X, costs))
