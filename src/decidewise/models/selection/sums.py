"""Which candidates can be fitted on rows that need not be in memory, and their fits."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyRegressor

from decidewise.models.estimator.base import all_or_nothing
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.learners.averaged import AveragedRegressor
from decidewise.models.learners.given_forecast import GivenForecast
from decidewise.models.wise_regressor import WiseRegressor
from decidewise.rows.passes import Pass, Passes, run, together
from decidewise.rows.source import Rows, RowSource, Sums


def is_sum_over_rows(model: Any, *, per_item: bool = False) -> bool:
    """Whether a model can be fitted in passes over rows: an exact linear fit, the mean, or nothing to fit at all.

    `per_item` says whether the features are those of items.

    >>> from sklearn.linear_model import LinearRegression
    >>> is_sum_over_rows(WiseRegressor()), is_sum_over_rows(WiseRegressor(LinearRegression()))
    (True, False)
    """
    if type(model) is WiseRegressor:  # a class derived from it may need all rows, such as one that clips weights
        linear = model.estimator is None or isinstance(model.estimator, GeneralizedLinear)
        lifted_items = bool(model.lifted and model.exponent > 0 and per_item)
        return linear and isinstance(model.scale, str) and not lifted_items
    return isinstance(model, GeneralizedLinear) or _is_mean(model) or _needs_no_rows(model)


def _is_mean(model: Any) -> bool:
    return type(model) is DummyRegressor and model.strategy == "mean"


def _needs_no_rows(model: Any) -> bool:
    return isinstance(model, GivenForecast) or (type(model) is DummyRegressor and model.strategy == "constant")


def fit_on_rows(model: Any, source: RowSource) -> Any:
    """Return a copy of a model, fitted on the rows of a source; the members of an average are fitted together."""
    fitted = run(passes_of(model, source), source)
    source.close()
    return fitted


def passes_of(model: Any, source: RowSource) -> Passes[Any]:
    """Return the same as passes over the rows of a source, which is asked for its first rows and columns alone."""
    fitted = clone(model)
    first = source.first()
    if isinstance(fitted, AveragedRegressor):
        with all_or_nothing(fitted):
            fitted.n_outputs_ = first.costs.shape[1]  # type: ignore[union-attr]
            found = yield from together([passes_of(member, source) for _, member in fitted.estimators])
            for member in found:
                if isinstance(member, Exception):
                    raise member
            fitted.estimators_ = found
        return fitted
    if _needs_no_rows(fitted):
        return fitted.fit(first.X, first.costs)
    if _is_mean(fitted):
        weight, total = yield Pass(_weighted_sum)
        if weight <= 0:
            raise ValueError("all rows have weight zero, so they have no mean.")
        return fitted.fit(first.X[:1], (total / weight)[None])
    return (yield from fitted.passes(source))


def _weighted_sum(rows: Rows) -> Sums:
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    return np.array(weights.sum()), weights @ rows.costs  # type: ignore[operator]  # a choice has checked for them
