"""The score of scikit-learn's regressors, of targets that are numbers."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from decidewise.models.estimator.features import refuse_no_numbers


class ScoredByVariance(RegressorMixin):
    """A regressor whose score is the coefficient of determination; targets that are no numbers are refused."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, as every regressor of scikit-learn does."""
        check_is_fitted(self)
        refuse_no_numbers(y, name="y")
        return float(super().score(X, y, sample_weight))
