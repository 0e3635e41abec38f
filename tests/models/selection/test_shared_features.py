"""Feature steps that candidates share are fitted once per fold, and change nothing."""

import pickle

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from decidewise import GeneralizedLinear, WiseRegressor
from decidewise.data import make_shortest_path
from decidewise.models import ClippedWise, SmoothFeatures
from decidewise.models.selection import shared_features
from decidewise.models.selection.out_of_fold import OutOfFold
from decidewise.models.selection.shared_features import SharedFeatures, without_steps

DATA = make_shortest_path(90, degree=4, seed=8)
ROWS = np.arange(90)
SPLITS = [(ROWS[fold != ROWS % 3], ROWS[fold == ROWS % 3]) for fold in range(3)]
LEARNERS = [
    make_pipeline(StandardScaler(), GeneralizedLinear("gamma", alpha=0.1)),
    make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), GeneralizedLinear(alpha=0.1)),
    make_pipeline(StandardScaler(), SmoothFeatures(20), StandardScaler(), GeneralizedLinear("poisson", alpha=0.3)),
]
MODELS = [
    *(WiseRegressor(learner, exponent=exponent) for learner in LEARNERS for exponent in (0.0, 1.0)),
    WiseRegressor(LEARNERS[0], lifted=True),
    WiseRegressor(LEARNERS[1], scale="iterated"),
    ClippedWise(LEARNERS[0], clip=0.3),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_regrets_are_those_of_the_whole_pipeline(model):
    held_out = OutOfFold.of(DATA.problem, DATA.X, DATA.costs, SPLITS, ROWS)
    expected = np.empty(90)
    for train, test in SPLITS:
        predictions = model.fit(DATA.X[train], DATA.costs[train]).predict(DATA.X[test])
        expected[test] = held_out.truth.take(test).regret(predictions)
    np.testing.assert_allclose(held_out.regret(model), expected, rtol=1e-7, atol=1e-9)
    assert without_steps([model])[0] is not None


def test_steps_that_look_at_the_targets_or_learners_of_others_are_not_shared():
    supervised = WiseRegressor(make_pipeline(SelectKBest(f_regression), GeneralizedLinear()))
    scaled = WiseRegressor(LEARNERS[0], scale=make_pipeline(StandardScaler(), GeneralizedLinear("gamma")))
    for model in (supervised, scaled, WiseRegressor(), LEARNERS[0]):
        assert without_steps([model]) == (None, [model])


def test_steps_are_fitted_once_for_each_fold_and_within_a_limit_of_memory(monkeypatch):
    fits = []
    fit = StandardScaler.fit
    monkeypatch.setattr(StandardScaler, "fit", lambda self, *args: fits.append(1) or fit(self, *args))
    features = SharedFeatures(DATA.X)
    steps, _ = without_steps([WiseRegressor(LEARNERS[0])])
    for train, test in SPLITS * 2:
        np.testing.assert_allclose(features.of(train, test, steps)[0].mean(axis=0), 0, atol=1e-12)
    assert len(fits) == 3
    copied = pickle.loads(pickle.dumps(features))  # noqa: S301 - of our own making
    copied.of(*SPLITS[0], steps)
    assert len(fits) == 4
    monkeypatch.setattr(shared_features, "_MOST_BYTES", 1)
    small = SharedFeatures(DATA.X)
    for train, test in SPLITS * 2:
        small.of(train, test, steps)
    assert len(fits) == 4 + 6
