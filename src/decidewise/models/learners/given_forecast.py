"""A forecast that is already among the features, as it is."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from decidewise.kit.checks import FloatArray, as_integer, as_matrix
from decidewise.kit.kept import need
from decidewise.models.estimator.base import ManyOutputs, ScoredByVariance, refuse_no_numbers


class GivenForecast(ManyOutputs, ScoredByVariance, BaseEstimator):
    """Predict the costs by a forecast that the features contain: nothing is fitted.

    Parameters
    ----------
    columns : list of int or str, int, or callable
        The columns of `X` with the forecast, one per cost, in the order of the costs. If `X` has shape (n, d, q), the
        number of one feature of the items. Or a function that computes the forecast (n, d) from `X`.
    name : str
        What messages call it.

    Examples
    --------
    The last two columns are yesterday's costs:

    >>> X = np.array([[7.0, 1.0, 2.0], [8.0, 3.0, 4.0]])
    >>> GivenForecast([1, 2], name="yesterday").fit(X, np.ones((2, 2))).predict(X)
    array([[1., 2.],
           [3., 4.]])
    """

    def __init__(self, columns: Any, *, name: str = "forecast") -> None:
        self.columns = columns
        self.name = name

    def fit(self, X: Any, y: Any) -> Self:
        """Check that the forecast has as many columns as the costs y (n, d)."""
        self.n_outputs_ = as_matrix(y).shape[1]
        self.predict(X)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the forecast (n, d)."""
        check_is_fitted(self)
        refuse_no_numbers(X, name="X", text=hasattr(X, "columns"))  # those of a frame that it names are checked below
        forecast = as_matrix(self._read(X), name=f"the forecast {self.name!r}", min_rows=0)
        if forecast.shape[1] != self.n_outputs_ or len(forecast) != np.shape(X)[0]:
            raise ValueError(
                f"the forecast {self.name!r} has shape {forecast.shape}, but there are {self.n_outputs_} costs in "
                f"{np.shape(X)[0]} rows. Name one column for each cost, in the order of the costs."
            )
        return forecast

    def _read(self, X: Any) -> Any:
        if isinstance(self.columns, Callable):  # type: ignore[arg-type]
            return self.columns(X)
        per_item = np.ndim(X) == 3
        try:
            if per_item:
                return np.asarray(X)[:, :, index(self.columns)]
            return _safe_indexing(X, list(self.columns), axis=1)
        except (IndexError, KeyError, TypeError, ValueError) as reason:
            wanted = "the number of one feature of the items" if per_item else "a list of columns of X"
            raise ValueError(
                f"the forecast {self.name!r} must be {wanted} or a function of X; got {self.columns!r}, which does not "
                f"fit X of shape {np.shape(X)}: {reason}"
            ) from reason

    def _check_kept(self) -> None:
        columns = self.columns if isinstance(self.columns, list | tuple) else [self.columns]
        need(
            all(isinstance(column, int | str) for column in columns),
            "columns of a GivenForecast must be numbers or names; a function cannot be kept in a file",
        )
        if hasattr(self, "n_outputs_"):
            as_integer(self.n_outputs_, name="n_outputs_")
