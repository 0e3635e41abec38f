"""Features as an estimator reads them: one row per sample, or one row per item of each sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from decidewise.checks import as_features, is_per_item
from decidewise.models.estimator.traits import refuse_masked


def read_features(estimator: Any, X: Any, *, reset: bool, **options: Any) -> Any:
    """Return features (n, p) or (n, d, q), checked against those of the last fit, or recorded if `reset`.

    Features (n, p) are read by scikit-learn's `validate_data`, with the given options. Features per item set
    `n_features_in_` to q and `n_items_in_` to d; since all items share one model, d may differ after the fit.
    """
    refuse_masked(X)
    if not is_per_item(X):
        if reset:
            estimator.__dict__.pop("n_items_in_", None)
        elif hasattr(estimator, "n_items_in_"):
            raise ValueError(
                f"{type(estimator).__name__} was fitted with features per item, X of shape (n, "
                f"{estimator.n_items_in_}, {estimator.n_features_in_}); got X.shape={np.shape(X)}. Pass one row of "
                f"{estimator.n_features_in_} features for each item."
            )
        if _is_plain(estimator, X, reset=reset, **options):
            estimator.n_features_in_ = X.shape[1]
            return X
        return validate_data(estimator, X, reset=reset, **options)
    X = as_features(X, finite=options.get("ensure_all_finite", True) is True)
    if reset:
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_items_in_, estimator.n_features_in_ = X.shape[1:]
    elif not hasattr(estimator, "n_items_in_"):
        raise ValueError(
            f"{type(estimator).__name__} was fitted with {estimator.n_features_in_} features per row, X of shape (n, "
            f"{estimator.n_features_in_}); got X.shape={X.shape}, which has features per item."
        )
    elif X.shape[2] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[2]} features per item, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input: X.shape={X.shape}."
        )
    return X


def _is_plain(
    estimator: Any, X: Any, *, reset: bool, dtype: Any = (), ensure_all_finite: bool = True, **others: Any
) -> bool:
    """Whether `validate_data` would return the features as they are, which takes it a tenth of a small fit to see."""
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not X.size:
        return False
    if others or hasattr(estimator, "feature_names_in_") or not (dtype is np.float64 or np.float64 in dtype):
        return False
    known = reset or getattr(estimator, "n_features_in_", None) == X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        return known and (not ensure_all_finite or bool(np.isfinite(X.sum())))


def check_known_items(estimator: Any, X: Any) -> None:
    """Raise unless features per item have the items of the last fit, for a model in which items differ."""
    if X.shape[1] != estimator.n_items_in_:
        raise ValueError(
            f"X has {X.shape[1]} items, and {type(estimator).__name__} was fitted with {estimator.n_items_in_}, each "
            "with an intercept or coefficients of its own: a new item has none. Pass the items of training, in the "
            'same order, or fit with per_item="none".'
        )
