"""The change of measure where some costs of a row are not seen: a size that is predicted, and a fit for each item.

The norm of what is seen would not do as the size of a row. It depends on which costs are seen and on their values, so
the predictions of two items would be divided by different means, and their ratio would be wrong. A size `a(x)` that is
predicted from the features divides all items alike (`docs/theory.md`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from decidewise.kit.batches import check_time
from decidewise.kit.checks import BoolArray, FloatArray, all_finite, as_features, check_finite, is_per_item
from decidewise.measure import cost_sizes, draw, mean_one, nothing_to_learn, out_of_range, targets_of, weights_of
from decidewise.models.estimator.base import as_generator
from decidewise.models.estimator.changed_fit import SMALLEST
from decidewise.models.estimator.learner import check_features, deviance_power, fitted, rows_of, weight_keyword
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.rows.source import Rows


def seen_costs(costs: FloatArray, weights: FloatArray | None, *, missing: str) -> BoolArray | None:
    """Return which costs (n, d) are seen, or None if all are; raise if some may not be, or nothing is left to learn."""
    if all_finite(costs):
        return None
    unseen = np.isnan(costs)
    if missing == "error" and unseen.any():
        try:
            check_finite(costs, name="costs")
        except ValueError as error:
            raise ValueError(f'{error} If NaN means "not seen", pass missing="ignore".') from None
    check_finite(np.where(unseen, 0.0, costs), name="costs")
    rows = np.flatnonzero(unseen.all(axis=1))
    if len(rows):
        raise ValueError(
            f"row {rows[0]} has no cost that is seen ({len(rows)} such rows in all), so it says nothing. Drop it."
        )
    counted = ~unseen if weights is None else ~unseen[weights > 0]
    items = np.flatnonzero(~counted.any(axis=0))
    if len(items):
        raise ValueError(
            f"column {items[0]} of the costs is not seen in any row of positive weight ({len(items)} such columns in "
            "all), so nothing can be learned about it. Drop the item from the problem, or try it in some rows."
        )
    return ~unseen


def predicted_sizes(rows: Rows, seen: BoolArray, exponent: float, unit: float) -> FloatArray:
    """Return the size `a(x)` of each row, at least a tenth of their mean: (n,).

    It is a log-linear fit of `‖y‖^exponent`, with the norm that the row would have if the costs that are not seen had
    the mean square of those that are. The ridge on standardised features is `p/n`: next to nothing with many rows, and
    enough with few that the size of a row is not its own costs again.
    """
    costs = np.where(seen, rows.costs, 0.0) / unit  # type: ignore[arg-type]
    sizes = cost_sizes(costs * np.sqrt(seen.shape[1] / seen.sum(axis=1))[:, None], exponent)
    weights = np.ones(len(sizes)) if rows.weights is None else rows.weights
    mean = float(weights @ sizes / weights.sum())
    if not np.isfinite(mean):
        raise out_of_range(exponent)
    if mean == 0:
        raise nothing_to_learn(len(sizes))
    if exponent == 0:
        return sizes
    X = rows_of(as_features(rows.X))
    some, lowest = weights > 0, SMALLEST * mean
    log_linear = make_pipeline(StandardScaler(), GeneralizedLinear("gamma", alpha=X.shape[1] / some.sum()))
    check_features(X)
    log_linear.fit(X[some], np.maximum(sizes[some], lowest), generalizedlinear__sample_weight=weights[some])
    return np.maximum(log_linear.predict(X), lowest)


def fit_seen(
    learner: Any, rows: Rows, seen: BoolArray, sizes: FloatArray, scale: float | None, unit: float, random_state: Any
) -> Any:
    """Return the learner fitted to the costs that are seen, of rows with given sizes: a model of all items.

    Each item is fitted on the rows in which it is seen; with features per item, all items on all that is seen.
    """
    costs = np.asarray(rows.costs, dtype=np.float64) / unit
    targets, weights = targets_of(costs, sizes, scale), weights_of(sizes, scale, deviance_power(learner))
    if rows.weights is not None:
        weights = weights * rows.weights
    seen = seen & (weights > 0)[:, None]
    if not is_per_item(rows.X):
        models = []
        for item, own in enumerate(seen.T):
            check_time()
            X = _safe_indexing(rows.X, np.flatnonzero(own))
            try:
                models.append(_fit_one(learner, X, targets[own, item], weights[own], random_state))
            except ValueError as error:
                raise ValueError(f"cost {item}, in the {own.sum()} rows where it is seen: {error}") from error
        return _joined(learner, models)
    if getattr(learner, "per_item", "none") != "none":
        raise ValueError(
            f'per_item="{learner.per_item}" needs rows whose costs are all seen. Use per_item="none", or leave out the '
            "other rows."
        )
    repeated = np.repeat(weights[:, None], seen.shape[1], axis=1)
    shared = _fit_one(learner, as_features(rows.X)[seen], targets[seen], repeated[seen], random_state)
    if isinstance(shared, GeneralizedLinear):
        shared.n_items_in_ = seen.shape[1]
    return shared


def _fit_one(learner: Any, X: Any, targets: FloatArray, weights: FloatArray, random_state: Any) -> Any:
    """Return a copy of the learner fitted to one target, (b,)."""
    if not weights.any():
        raise nothing_to_learn(len(weights))
    if not isinstance(learner, GeneralizedLinear):  # which takes features in any unit
        check_features(X)
    keyword, by_keyword = weight_keyword(learner), {}
    if keyword is not None:
        by_keyword[keyword] = mean_one(weights)  # which keeps the meaning of the learner's own penalties
    elif weights.min() < weights.max():
        drawn = draw(weights, len(weights), as_generator(random_state))
        X, targets = _safe_indexing(X, drawn), targets[drawn]
    model = fitted(clone(learner), X, targets, by_keyword)
    # Sums over the rows of one item are not those of a model of all items.
    model.__dict__.pop("moments_", None)
    return model


def _joined(learner: Any, models: list[Any]) -> Any:
    """Return models of one item each as one model of all items."""
    if isinstance(learner, GeneralizedLinear):
        joined: Any = models[0]
        for name in ("coef_", "intercept_", "n_iter_", "converged_"):
            setattr(joined, name, np.array([getattr(model, name) for model in models]))
        return joined
    joined = MultiOutputRegressor(clone(learner))
    joined.estimators_ = models
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(models[0], name) and not hasattr(joined, name):
            setattr(joined, name, getattr(models[0], name))
    return joined
