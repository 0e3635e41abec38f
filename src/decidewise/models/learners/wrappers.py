"""Learners around a learner: with floored targets, with corrected errors, with clipped weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, MultiOutputMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from decidewise.kit.checks import FloatArray, as_matrix, as_number, as_positive, as_sample_weight, check_same_rows
from decidewise.kit.kept import need, need_model
from decidewise.kit.scaling import norms
from decidewise.models.estimator.base import (
    KnownParameters,
    ManyOutputs,
    ScoredByVariance,
    read_features,
    refuse_no_numbers,
)
from decidewise.models.estimator.learner import as_regressor, fitted, multi_output
from decidewise.models.wise_regressor import WiseRegressor


class FlooredRegressor(MetaEstimatorMixin, ManyOutputs, ScoredByVariance, KnownParameters):
    """Raise targets below a floor to the floor, then fit.

    The floor of a column is a fraction of the mean absolute target of this column. A log link needs it where a few
    costs are zero or negative; if they are few, the means hardly change.

    Parameters
    ----------
    estimator : scikit-learn regressor of many outputs that takes sample weights
    floor : float
        The fraction.

    Examples
    --------
    >>> from decidewise import GeneralizedLinear
    >>> X, costs = np.zeros((4, 1)), np.array([[1.0], [2.0], [0.0], [1.0]])
    >>> FlooredRegressor(GeneralizedLinear("gamma"), floor=0.1).fit(X, costs).predict(X[:1]).round(6)
    array([[1.025]])
    """

    def __init__(self, estimator: Any, *, floor: float = 0.05) -> None:
        self.estimator = estimator
        self.floor = floor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit features X (n, p) to floored targets y (n, d) or (n,)."""
        as_positive(self.floor, name="floor")
        targets = as_matrix(y if np.ndim(y) == 2 else np.reshape(y, (-1, 1)), name="y")
        sizes = np.abs(targets).mean(axis=0)
        # A column that is zero nearly everywhere gets a floor from the others.
        floors = self.floor * np.maximum(sizes, 0.01 * sizes.mean())
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, np.maximum(targets, floors).reshape(np.shape(y)), **weights)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions of the shape of the targets."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def _check_kept(self) -> None:
        need_model(self.estimator, "estimator")
        if hasattr(self, "estimator_"):
            need_model(self.estimator_, "estimator_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


class CorrectedRegressor(MetaEstimatorMixin, MultiOutputMixin, ScoredByVariance, KnownParameters):
    """Fit a learner, and then another one to what the first leaves; the prediction is the sum of both.

    Where costs follow a forecast or the costs of yesterday, trees need many splits for what a line says at once, and a
    line misses what a few splits would add. Here trees get only the rest, with the prediction of the line as one more
    feature.

    Parameters
    ----------
    estimator : scikit-learn regressor
        The first learner, such as `GeneralizedLinear()`.
    correction : scikit-learn regressor
        The second one, such as boosted trees; each of many outputs has its own. Both must take sample weights if `fit`
        gets some.

    Attributes
    ----------
    estimator_ : the fitted first learner
    corrections_ : list of the fitted second learners, one per output
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
    corrections_: list[Any]

    def __init__(self, estimator: Any, correction: Any) -> None:
        self.estimator = estimator
        self.correction = correction

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit features X (n, p) to targets y (n,) or (n, d)."""
        for name in ("estimator", "correction"):
            as_regressor(getattr(self, name), name=name)
        for name, values in {"X": X, "y": y}.items():
            refuse_no_numbers(values, name=name)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True, multi_output=True)
        weights = {} if sample_weight is None else {"sample_weight": as_sample_weight(sample_weight, len(X))}
        learner = multi_output(self.estimator) if y.ndim == 2 else self.estimator
        self.estimator_ = fitted(clone(learner), X, y, weights)
        first = np.asarray(self.estimator_.predict(X))
        rest = (y - first).reshape(len(X), -1).T
        self.corrections_ = [
            fitted(clone(self.correction), extended, left, weights)
            for extended, left in zip(_with_each(X, first), rest, strict=True)
        ]
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions of the shape of the targets."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False, dtype=[np.float64, np.float32])
        if not len(X):
            return np.empty(0)
        first = np.asarray(self.estimator_.predict(X))
        pairs = zip(self.corrections_, _with_each(X, first), strict=True)
        return first + np.reshape(np.transpose([model.predict(extended) for model, extended in pairs]), first.shape)

    def _check_kept(self) -> None:
        for name in ("estimator", "correction"):
            need_model(getattr(self, name), name)
        if hasattr(self, "estimator_"):
            need_model(self.estimator_, "estimator_")
            need(isinstance(self.corrections_, list), "corrections_ must be a list")
            for model in self.corrections_:
                need_model(model, "corrections_")


def _with_each(X: FloatArray, first: FloatArray) -> Iterator[FloatArray]:
    """Yield the features beside each column of what a first learner predicts, (n,) or (n, d)."""
    return (np.column_stack([X, column]) for column in first.reshape(len(X), -1).T)


class ClippedWise(WiseRegressor):
    """WISE whose weights are clipped: `min(‖y‖, limit)` for the direction `y/‖y‖`.

    With `clip=0` the limit is the smallest norm, so all directions have the same weight. This estimates the mean
    direction `E[y/‖y‖ | x]`, not the direction of the mean. They agree if size and direction are independent given
    `x`, and then it is far less noisy: a few large rows do not outweigh all others. If they do not agree, decisions
    are biased, so use it only if it decides better on held-out rows.

    Parameters
    ----------
    estimator, exponent, scale, lifted, random_state
        As for `WiseRegressor`.
    clip : float
        The quantile of the positive norms, from 0 to 1, that is the limit. 1 is `WiseRegressor`.

    Examples
    --------
    >>> costs = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 98.0]])
    >>> ClippedWise(clip=0.0, scale="unit").fit(np.zeros((3, 1)), costs).predict([[0.0]]).round(3)
    array([[0.333, 0.667]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        clip: float = 0.5,
        exponent: float = 1.0,
        scale: Any = "mean",
        lifted: bool = False,
        random_state: Any = 0,
    ) -> None:
        super().__init__(estimator, exponent=exponent, scale=scale, lifted=lifted, random_state=random_state)
        self.clip = clip

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the learner as `WiseRegressor.fit`, with clipped weights."""
        as_number(self.clip, name="clip", at_least=0, at_most=1)
        if y is None:
            return super().fit(X, y)  # which says what to pass
        costs = as_matrix(y)
        check_same_rows(X=X, costs=costs)
        sizes, weights = norms(costs), as_sample_weight(sample_weight, len(costs))
        counted = (sizes > 0) & (weights > 0)
        if counted.any():
            limit = np.quantile(sizes[counted], self.clip, weights=weights[counted], method="inverted_cdf")
            weights = weights * np.minimum(1.0, limit / np.where(sizes > 0, sizes, limit)) ** self.exponent
        return super().fit(X, costs, weights)

    @property
    def partial_fit(self) -> Any:
        """Not available: the limit is a quantile of all rows."""
        raise AttributeError("the weights are clipped at a quantile of all rows, so ClippedWise has no partial_fit.")
