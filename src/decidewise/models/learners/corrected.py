"""A learner whose errors a second one predicts."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from decidewise.kit.checks import FloatArray, as_sample_weight
from decidewise.kit.kept import need_model
from decidewise.models.estimator.features import read_features, refuse_no_numbers
from decidewise.models.estimator.traits import KnownParameters, ScoredByVariance, as_regressor, fitted


class CorrectedRegressor(MetaEstimatorMixin, ScoredByVariance, KnownParameters):
    """Fit a learner, and then another one to what the first leaves; the prediction is the sum of both.

    Where costs follow a forecast or the costs of yesterday, trees need many splits for what a line says at once, and a
    line misses what a few splits would add. Here trees get only the rest, with the prediction of the line as one more
    feature.

    Parameters
    ----------
    estimator : scikit-learn regressor
        The first learner, such as `GeneralizedLinear()`.
    correction : scikit-learn regressor
        The second one, such as boosted trees. Both must take sample weights if `fit` gets some.

    Attributes
    ----------
    estimator_, correction_ : the fitted learners
    n_features_in_ : int
    feature_names_in_ : ndarray of str, if the features have names

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> x = np.arange(8.0)
    >>> model = CorrectedRegressor(LinearRegression(), DecisionTreeRegressor(max_depth=2))
    >>> model.fit(x[:, None], 3 * x + (x > 5)).predict([[4.0]]).round(6)
    array([12.])
    """

    estimator_: Any
    correction_: Any

    def __init__(self, estimator: Any, correction: Any) -> None:
        self.estimator = estimator
        self.correction = correction

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit features X (n, p) to targets y (n,)."""
        for name in ("estimator", "correction"):
            as_regressor(getattr(self, name), name=name)
        for name, values in {"X": X, "y": y}.items():
            refuse_no_numbers(values, name=name)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True)
        weights = {} if sample_weight is None else {"sample_weight": as_sample_weight(sample_weight, len(X))}
        self.estimator_ = fitted(clone(self.estimator), X, y, weights)
        first = self._first(X)
        self.correction_ = fitted(clone(self.correction), np.column_stack([X, first]), y - first, weights)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions (n,)."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False, dtype=[np.float64, np.float32])
        if not len(X):
            return np.empty(0)
        first = self._first(X)
        return first + np.asarray(self.correction_.predict(np.column_stack([X, first])))

    def _check_kept(self) -> None:
        for name in ("estimator", "correction"):
            need_model(getattr(self, name), name)
            if hasattr(self, f"{name}_"):
                need_model(getattr(self, f"{name}_"), f"{name}_")

    def _first(self, X: FloatArray) -> FloatArray:
        """Return the predictions (n,) of the first learner."""
        return np.ravel(self.estimator_.predict(X))
