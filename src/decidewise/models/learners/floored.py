"""A learner for positive targets, on data with a few targets at or below zero."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, MultiOutputMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from decidewise.kit.checks import FloatArray, as_matrix, as_positive
from decidewise.kit.kept import need_model
from decidewise.models.estimator.traits import KnownParameters, ScoredByVariance


class FlooredRegressor(MetaEstimatorMixin, MultiOutputMixin, ScoredByVariance, KnownParameters):
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
        tags.target_tags.single_output = False
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
