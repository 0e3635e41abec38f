"""Forecasts of demand as scenarios, with past errors or from similar rows; and what levels cost by them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from decidewise.kit.checks import FloatArray, as_features, as_integer, as_matrix, check_same_rows
from decidewise.kit.kept import are_floats, need, need_model
from decidewise.models.estimator.base import ManyOutputs, ScoredByVariance
from decidewise.models.generalized_linear import GeneralizedLinear

#: Rows whose scenarios are in memory together.
_ROWS = 256


class ResidualScenarios(ManyOutputs, ScoredByVariance, BaseEstimator):
    """Predict scenarios: the forecast of a learner, plus each of the errors that it made on the training rows.

    What to stock, employ or bid depends on more than the expected demand. `Levels` with a cost of demand decides on
    such scenarios of it, in `decide` and `compare`.

    Parameters
    ----------
    learner : estimator, optional
        Least squares by default.
    most : int
        The most scenarios; of more training rows, as many are taken at regular places.

    Examples
    --------
    >>> X, demand = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[1.0], [2.0], [4.0], [5.0]])
    >>> ResidualScenarios().fit(X, demand).predict([[4.0]]).round(6)[0, :, 0]
    array([6.6, 6.2, 6.8, 6.4])
    """

    def __init__(self, learner: Any = None, *, most: int = 500) -> None:
        self.learner = learner
        self.most = most

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the learner on features X (n, p) or (n, d, q) and demand y (n, d), and keep its errors."""
        most, y = as_integer(self.most, name="most", minimum=1), as_matrix(y)
        learner = GeneralizedLinear() if self.learner is None else clone(self.learner)
        self.learner_ = learner.fit(X, y)
        errors = y - np.reshape(learner.predict(X), y.shape)
        self.errors_ = errors[_regular(len(errors), most)]
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return scenarios (n, samples, d)."""
        check_is_fitted(self)
        forecast = np.reshape(self.learner_.predict(X), (-1, 1, self.errors_.shape[1]))
        scenarios: FloatArray = forecast + self.errors_
        return scenarios

    def _check_kept(self) -> None:
        as_integer(self.most, name="most", minimum=1)
        if hasattr(self, "learner_"):
            need_model(self.learner_, "the learner of scenarios")
            need(are_floats(self.errors_) and self.errors_.ndim == 2, "errors_ must be a matrix")


class NearestScenarios(ManyOutputs, ScoredByVariance, BaseEstimator):
    """Predict scenarios: what was demanded in the training rows with the nearest features.

    Parameters
    ----------
    n_neighbors : int, optional
        By default twice the root of the number of training rows.

    Examples
    --------
    >>> X, demand = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[1.0], [2.0], [4.0], [5.0]])
    >>> NearestScenarios(2).fit(X, demand).predict([[2.9]])[0, :, 0]
    array([5., 4.])
    """

    def __init__(self, n_neighbors: int | None = None) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the features X (n, p) or (n, d, q), each divided by its spread, and the demand y (n, d)."""
        y = as_matrix(y)
        check_same_rows(X=X, y=y)
        rows = _rows(X)
        k = round(2 * len(y) ** 0.5) if self.n_neighbors is None else as_integer(self.n_neighbors, name="n_neighbors")
        self.n_features_in_ = rows.shape[1]
        self.scaler_ = StandardScaler().fit(rows)
        self.rows_, self.demand_, self.k_ = self.scaler_.transform(rows), y, min(k, len(y))
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return scenarios (n, samples, d)."""
        check_is_fitted(self)
        nearest = NearestNeighbors(n_neighbors=self.k_).fit(self.rows_)
        places = nearest.kneighbors(self.scaler_.transform(_rows(X)), return_distance=False)
        scenarios: FloatArray = self.demand_[places]
        return scenarios

    def _check_kept(self) -> None:
        if hasattr(self, "rows_"):
            fits = are_floats(self.rows_) and are_floats(self.demand_) and len(self.rows_) == len(self.demand_)
            need(fits and 1 <= as_integer(self.k_, name="k_") <= len(self.rows_), "rows_ must be those of demand_")


class DemandRegressor(ManyOutputs, ScoredByVariance, BaseEstimator):
    """Predict what each level costs by a forecast of the demand, or scenarios of it; correct that, if wanted.

    It is a candidate of `WiseRegressorCV` where the demand is known, and learns from that of its problem.

    Parameters
    ----------
    learner : estimator
        Predicts demand (n, items), or scenarios of it (n, samples, items).
    problem : Levels
        With a cost of demand, and the demand of the rows of the fit: `problem.with_demand(demand)`.
    correction : estimator, optional
        Learns from features of the levels what the costs of the scenarios leave.

    Examples
    --------
    >>> from decidewise.problems import Levels, level_costs, newsvendor
    >>> problem = Levels([[0, 5, 10]], cost=newsvendor(over=1, under=4))
    >>> X, demand = np.array([[0.0], [1.0], [2.0]]), np.array([[2.0], [4.0], [6.0]])
    >>> costs = level_costs(demand, problem.levels, problem.cost)
    >>> DemandRegressor(GeneralizedLinear(), problem.with_demand(demand)).fit(X, costs).predict([[4.0]]).round(6)
    array([[40., 20.,  0.]])
    """

    def __init__(self, learner: Any, problem: Any, correction: Any = None) -> None:
        self.learner = learner
        self.problem = problem
        self.correction = correction

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on features X, those of levels if they are per item, and costs y (n, n_costs) of the problem's demand."""
        demand = getattr(self.problem, "demand_of_rows", None)
        if demand is None:
            raise ValueError("DemandRegressor learns from demand: pass problem.with_demand(demand).")
        y = as_matrix(y)
        check_same_rows(X=X, y=y, demand=demand)
        self.n_outputs_ = y.shape[1]
        self.table_ = self.problem.demand_table
        self.learner_ = clone(self.learner).fit(self.table_.item_features(X), demand)
        if self.correction is not None:
            self.correction_ = clone(self.correction).fit(X, y - self._of_scenarios(X))
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the costs (n, n_costs)."""
        check_is_fitted(self)
        costs = self._of_scenarios(X)
        if self.correction is not None:
            costs = costs + np.reshape(self.correction_.predict(X), costs.shape)
        return costs

    def _of_scenarios(self, X: Any) -> FloatArray:
        items = self.table_.item_features(X)
        parts = [items[first : first + _ROWS] for first in range(0, len(items), _ROWS)]
        return np.concatenate([self.table_.costs(np.asarray(self.learner_.predict(part))) for part in parts])

    def _check_kept(self) -> None:
        if hasattr(self, "learner_"):
            need_model(self.learner_, "the learner of demand")
            need(callable(getattr(self.table_, "costs", None)), "table_ must be a DemandTable")
            if self.correction is not None:
                need_model(self.correction_, "the correction")


def _rows(X: Any) -> FloatArray:
    """Return features as one row for each sample: (n, p), or (n, d q)."""
    features = np.asarray(as_features(X), dtype=np.float64)
    return features.reshape(len(features), -1)


def _regular(n: int, most: int) -> Any:
    return np.linspace(0, n - 1, min(n, most)).round().astype(int)
