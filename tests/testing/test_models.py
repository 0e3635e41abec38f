"""Each thing that `check_model` promises to find, found in an estimator that is broken in just that way."""

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor
from decidewise.problems import TopK
from decidewise.testing import check_model


class Broken(Ridge):
    """Ridge regression; subclasses break something."""


class ForgetsItsParameters(BaseEstimator):
    def __init__(self, alpha=1.0):
        self.alpha = float(alpha) + 1.0


class AlwaysFitted(Broken):
    def predict(self, X):
        return super().predict(X) if hasattr(self, "coef_") else np.zeros((len(X), 3))


class CannotFit(Broken):
    def fit(self, X, y):
        raise RuntimeError("no licence")


class ReturnsNothing(Broken):
    def fit(self, X, y):
        super().fit(X, y)


class ChangesItself(Broken):
    def fit(self, X, y):
        super().fit(X, y)
        self.alpha = 2.0
        return self


class WritesToData(Broken):
    def fit(self, X, y):
        X -= X.mean(axis=0)
        return super().fit(X, y)


class KeepsNoFeatures(Broken):
    def fit(self, X, y):
        super().fit(X, y)
        del self.n_features_in_
        return self


class OneColumn(Broken):
    def predict(self, X):
        return super().predict(X)[:, 0]


class NotFinite(Broken):
    def predict(self, X):
        return super().predict(X) + np.inf


class CentresBatches(Broken):
    def predict(self, X):
        return super().predict(X - X.mean(axis=0))


class NoPickle(Broken):
    def __getstate__(self):
        raise TypeError("an open file") if hasattr(self, "coef_") else None


class ForgetsItsFit(Broken):
    def __setstate__(self, state):
        super().__setstate__(state)
        self.coef_ = np.zeros_like(self.coef_)


class DrawsAnew(Broken):
    def fit(self, X, y):
        super().fit(X, y)
        self.intercept_ = np.random.default_rng().normal(size=y.shape[1])
        return self


class Remembers(Broken):
    def fit(self, X, y):
        before = getattr(self, "coef_", 0.0)
        super().fit(X, y)
        self.coef_ = self.coef_ + before
        return self


class TakesNaN(Broken):
    def fit(self, X, y):
        return super().fit(X, np.nan_to_num(y, posinf=1.0))


class CutsRows(Broken):
    def fit(self, X, y):
        return super().fit(X[: len(y)], y)


class CutsFeatures(Broken):
    def predict(self, X):
        return X @ self.coef_[:, : X.shape[1]].T if hasattr(self, "coef_") else super().predict(X)


BROKEN = {
    "ForgetsItsParameters cannot be cloned. Store each argument of __init__ unchanged": ForgetsItsParameters(),
    "AlwaysFitted.predict must raise NotFittedError before fit; it raised nothing.": AlwaysFitted(),
    "CannotFit cannot be fitted: RuntimeError: no licence": CannotFit(),
    "ReturnsNothing.fit must return the estimator itself; it returned a NoneType.": ReturnsNothing(),
    "ChangesItself.fit changes its parameters: alpha. Store what it learns in attributes that end": ChangesItself(),
    "WritesToData.fit writes to the data that it is given. Copy them first.": WritesToData(),
    "KeepsNoFeatures must have n_features_in_ = 4 after fit; it has None.": KeepsNoFeatures(),
    "OneColumn.predict must return one row per sample and one column per cost, of shape (60, 3); it returned an array "
    "of shape (60,)": OneColumn(),
    "NotFinite.predict returned numbers that are not finite.": NotFinite(),
    "CentresBatches predicts differently for a row alone and for the same row among others.": CentresBatches(),
    "NoPickle cannot be pickled. Define its class in a module, and hold plain data: TypeError: an open": NoPickle(),
    "ForgetsItsFit predicts differently after it is pickled.": ForgetsItsFit(),
    "DrawsAnew predicts differently when a clone is fitted on the same data. Draw only from random_state.": DrawsAnew(),
    "Remembers.fit remembers an earlier fit. Start from nothing in fit": Remembers(),
    "TakesNaN.fit must refuse a cost of nan with a ValueError; it raised nothing.": TakesNaN(),
    "CutsRows.fit must refuse X and costs of different lengths with a ValueError; it raised nothing.": CutsRows(),
    "CutsFeatures.predict must refuse X with another number of features than in fit": CutsFeatures(),
}


@pytest.mark.parametrize(
    ("sentence", "model"), BROKEN.items(), ids=[type(broken).__name__ for broken in BROKEN.values()]
)
def test_what_is_broken_is_named(sentence, model):
    with pytest.raises(AssertionError, match=re.escape(sentence)):
        check_model(model)


@pytest.mark.parametrize(
    "model",
    [
        WiseRegressor(),
        WiseRegressor(RandomForestRegressor(3)),
        GeneralizedLinear("gamma"),
        DecisionRegressor(TopK(3, 1), epochs=2, learning_rate=1e-4),
        Ridge(),
    ],
    ids=lambda model: f"{type(model).__name__}",
)
def test_what_is_right_passes(model):
    check_model(model)


def test_data_of_ones_own():
    rng = np.random.default_rng(0)
    with pytest.raises(AssertionError, match="DecisionRegressor cannot be fitted: ValueError: TopK needs 3 columns"):
        check_model(DecisionRegressor(TopK(3, 1)), n_costs=2)
    check_model(DecisionRegressor(TopK(2, 1), "wise", epochs=1, protocol="paper"), n_costs=2)
    check_model(GeneralizedLinear(), X=rng.normal(size=(20, 2)), costs=rng.normal(size=(20, 5)))
