"""Any learner of one output as a model shared by all items: it sees one row per item of each sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from decidewise.checks import FloatArray


def fit_items(learner: Any, X: FloatArray, targets: FloatArray, weights: Mapping[str, FloatArray]) -> Any:
    """Fit a learner, or a pipeline, to features (n, d, q) and targets (n, d) in the long form, (n * d, q) and (n * d,).

    Parameters
    ----------
    weights : mapping of keywords of `learner.fit` to ndarrays of shape (n,)
        All items of a row have its weight.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[[0.0], [1.0]], [[2.0], [3.0]]])
    >>> predict_items(fit_items(LinearRegression(), X, np.array([[1.0, 3.0], [5.0, 7.0]]), {}), X).round(12)
    array([[1., 3.],
           [5., 7.]])
    """
    n_items, n_features = X.shape[1:]
    repeated = {keyword: np.repeat(weight, n_items) for keyword, weight in weights.items()}
    return learner.fit(X.reshape(-1, n_features), targets.ravel(), **repeated)


def predict_items(learner: Any, X: FloatArray) -> FloatArray:
    """Return the predictions (n, d) of a fitted learner for features (n, d, q)."""
    return np.reshape(learner.predict(X.reshape(-1, X.shape[2])), X.shape[:2])
