"""The boosted trees of scikit-learn on one thread."""

from __future__ import annotations

from typing import Any, Self

from sklearn.ensemble import HistGradientBoostingRegressor

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray
from decidewise.kit.machine import one_openmp_thread


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
