"""Boosted trees on one thread: those of scikit-learn, and quick ones of LightGBM for many outputs."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.ensemble import HistGradientBoostingRegressor

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray
from decidewise.kit.machine import one_openmp_thread
from decidewise.models.estimator.base import KnownParameters, ScoredByVariance, read_features

#: Bins of a feature in quick trees: 255 take up to three times as long.
FEW_BINS = 63


class OneThreadBoosting(HistGradientBoostingRegressor):
    """Fit and predict as `HistGradientBoostingRegressor` does, on one thread.

    With one set of trees per cost, each on few rows, threads spend their time waiting for each other: on a busy machine
    a fit of milliseconds takes seconds.

    Examples
    --------
    >>> X = [[float(i)] for i in range(60)]
    >>> OneThreadBoosting(max_iter=5).fit(X, range(60)).predict(X[:2]).shape
    (2,)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit features X (n, p) to targets y (n,)."""
        check_time()  # for each of many outputs
        with one_openmp_thread():
            return super().fit(X, y, sample_weight)

    def predict(self, X: Any) -> FloatArray:
        """Return predictions (n,)."""
        with one_openmp_thread():
            return super().predict(X)


class JointBoosting(MultiOutputMixin, ScoredByVariance, KnownParameters):
    """The boosted trees of LightGBM for many outputs in one model, with the trees of a model for each.

    The features are put into bins once, and not for each output: with few rows and trees that takes half of the time.
    It is for trials; model files do not hold it.

    Parameters
    ----------
    rate : float
        The learning rate.
    n_leaves, smallest_leaf : int
        The largest number of leaves of a tree, and the least number of rows in a leaf.
    n_trees : int
        For each output.

    Examples
    --------
    >>> X = np.arange(60.0)[:, None]
    >>> JointBoosting(0.3, n_trees=5).fit(X, np.hstack([X, -X])).predict(X[:1]).shape
    (1, 2)
    """

    def __init__(self, rate: float, *, n_leaves: int = 15, smallest_leaf: int = 20, n_trees: int = 20) -> None:
        self.rate = rate
        self.n_leaves = n_leaves
        self.smallest_leaf = smallest_leaf
        self.n_trees = n_trees

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit features X (n, p) to targets y (n,) or (n, d)."""
        # Imported by name, since it is an optional dependency and known to be installed only here.
        lightgbm = import_module("lightgbm")
        X = read_features(self, X, reset=True, dtype=np.float64)
        self.mean_ = np.average(y, axis=0, weights=sample_weight)
        rest = y - self.mean_
        weights = np.ones_like(rest) if sample_weight is None else np.broadcast_to(sample_weight, rest.T.shape).T

        def squared(predictions: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
            return weights * (predictions - rest), weights

        settings = {
            "objective": squared,
            "num_class": rest[0].size,
            "learning_rate": self.rate,
            "num_leaves": self.n_leaves,
            "min_data_in_leaf": self.smallest_leaf,
            "max_bin": FEW_BINS,
            "num_threads": 1,
            "verbosity": -1,
        }
        rows, in_time = lightgbm.Dataset(X, label=np.zeros(len(X))), [lambda _: check_time()]
        self.booster_ = lightgbm.train(settings, rows, self.n_trees, callbacks=in_time, keep_training_booster=True)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions of the shape of the targets."""
        X = read_features(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.mean_ + self.booster_.predict(X))
