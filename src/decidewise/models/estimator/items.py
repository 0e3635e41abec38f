"""Any learner of one output as a model shared by all items: it sees one row per item of each sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from decidewise.kit.checks import FloatArray, is_per_item
from decidewise.kit.kept import need_model
from decidewise.models.estimator.traits import fitted


@dataclass(frozen=True)
class LiftedItems:
    """A model of all items, and one of the cost that is always 1, from the means of the features over the items."""

    items: Any
    always_one: Any

    def _check_kept(self) -> None:
        need_model(self.items, "items")
        need_model(self.always_one, "always_one")


def fit_items(learner: Any, X: FloatArray, targets: FloatArray, weights: Mapping[str, FloatArray]) -> Any:
    """Fit a learner, or a pipeline, to features (n, d, q) and targets (n, d).

    A learner that does not take features per item itself sees the long form, (n * d, q) and (n * d,).

    Parameters
    ----------
    targets : ndarray of shape (n, d) or (n, d + 1)
        The last of d + 1 targets belongs to the row, not to an item; see `LiftedItems`.
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
    if targets.shape[1] > n_items:
        items = fit_items(clone(learner), X, targets[:, :n_items], weights)
        return LiftedItems(items, fitted(_without_items(learner), rows_of(X), targets[:, n_items], weights))
    if hasattr(learner, "fit_blocks"):
        return fitted(learner, X, targets, weights)
    repeated = {keyword: np.repeat(weight, n_items) for keyword, weight in weights.items()}
    return fitted(learner, X.reshape(-1, n_features), targets.ravel(), repeated)


def predict_items(model: Any, X: FloatArray) -> FloatArray:
    """Return the predictions (n, d), or (n, d + 1) if lifted, of a fitted model for features (n, d, q)."""
    if isinstance(model, LiftedItems):
        always_one = np.reshape(model.always_one.predict(rows_of(X)), (-1, 1))
        return np.hstack([predict_items(model.items, X), always_one])
    if hasattr(model, "fit_blocks"):
        return np.asarray(model.predict(X))
    return np.reshape(model.predict(X.reshape(-1, X.shape[2])), X.shape[:2])


def rows_of(X: Any) -> Any:
    """Return features of rows, for what depends on the row and not on an item: the means over the items."""
    return np.mean(X, axis=1) if is_per_item(X) else X


def _without_items(learner: Any) -> Any:
    """Return a copy of the learner in which items have no intercepts or coefficients of their own."""
    return clone(learner).set_params(**({"per_item": "none"} if hasattr(learner, "per_item") else {}))
