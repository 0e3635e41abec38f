"""The average of several models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from decidewise.evaluate.scorer import predicts_directions
from decidewise.kit.checks import FloatArray, as_flag, as_integer, as_vector, n_rows
from decidewise.kit.kept import need, need_model
from decidewise.kit.scaling import norms, unit_rows
from decidewise.models.estimator.base import ManyOutputs, ScoredByVariance
from decidewise.models.linear.blocks import one_library_thread


class AveragedRegressor(ManyOutputs, ScoredByVariance, BaseEstimator):
    """Average the predictions of several models, with equal or given weights.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Regressors of many outputs.
    directions : bool
        Whether to average the directions of the predictions, so that models with predictions of any size have the same
        say. The result has the mean size of the models that predict in the units of the costs, or of all if none does.
        If not, all of them must predict in the units of the costs.
    weights : sequence of float, optional
        One for each model, at least zero; by default all are equal. Only their ratios matter.
    n_jobs : int, optional
        How many models are fitted at a time.

    Attributes
    ----------
    estimators_ : list of fitted estimators

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> constants = [("a", [1.0, 0.0]), ("b", [0.0, 9.0])]
    >>> models = [(name, DummyRegressor(strategy="constant", constant=costs)) for name, costs in constants]
    >>> model = AveragedRegressor(models).fit(np.zeros((3, 1)), np.ones((3, 2)))
    >>> model.predict(np.zeros((1, 1)))  # the mean size is 5
    array([[2.5, 2.5]])
    >>> model.set_params(weights=[3, 1]).predict(np.zeros((1, 1)))  # and here 3
    array([[2.25, 0.75]])
    """

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        directions: bool = True,
        weights: Sequence[float] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.directions = directions
        self.weights = weights
        self.n_jobs = n_jobs

    @classmethod
    def of_fitted(
        cls, estimators: list[tuple[str, Any]], n_outputs: int, fitted: list[Any] | None = None, **settings: Any
    ) -> Self:
        """Return the average of models that are fitted already, or of others in their place that are."""
        average = cls(estimators, **settings)
        average.estimators_ = [model for _, model in estimators] if fitted is None else fitted
        average.n_outputs_ = n_outputs
        return average

    def fit(self, X: Any, y: Any) -> Self:
        """Fit all models on features X (n, p) and costs y (n, d)."""
        self.shares  # noqa: B018  (bad weights are an error before anything is fitted)
        self.n_outputs_ = np.shape(y)[1]
        with one_library_thread():
            self.estimators_ = Parallel(n_jobs=self.n_jobs)(
                delayed(clone(estimator).fit)(X, y) for _, estimator in self.estimators
            )
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the mean direction times the mean size, or the mean prediction, of the models: (n, d)."""
        check_is_fitted(self)
        if n_rows(X) == 0:
            return np.empty((0, self.n_outputs_))
        total: FloatArray | float = 0.0
        size: FloatArray | float = 0.0
        for share, of_size, model in zip(self.shares, self.shares_of_size, self.estimators_, strict=True):
            prediction = np.reshape(model.predict(X), (-1, self.n_outputs_))
            if self.directions:
                size = size + of_size * norms(prediction)[:, np.newaxis]
                prediction = unit_rows(prediction)
            total = total + share * prediction
        return np.asarray(total * size if self.directions else total)

    @property
    def shares(self) -> FloatArray:
        """The weights of the models, which sum to one."""
        n_models = len(self.estimators)
        if self.weights is None:
            return np.full(n_models, 1 / n_models)
        weights = as_vector(self.weights, name="weights", length=n_models)
        if weights.min() < 0 or not weights.any():
            raise ValueError(f"weights must be at least zero, and not all zero; got {weights.tolist()}.")
        return weights / weights.sum()

    @property
    def shares_of_size(self) -> FloatArray:
        """The weights of the models in the size of an average of directions: of those that predict sizes, if any."""
        shares = self.shares * [not found for found in self._members_predict_directions]
        return shares / shares.sum() if shares.any() else self.shares

    @property
    def predicts_directions(self) -> bool:
        """Whether the sizes of predictions mean nothing, so that they cannot be added to known costs."""
        return self.directions and all(self._members_predict_directions)

    @property
    def _members_predict_directions(self) -> list[bool]:
        # A search says so only once it is fitted.
        members = getattr(self, "estimators_", None) or [model for _, model in self.estimators]
        return [predicts_directions(model) for model in members]

    def _check_kept(self) -> None:
        as_flag(self.directions, name="directions")
        need(isinstance(self.estimators, list) and len(self.estimators) > 0, "estimators must be a list of models")
        n_shares = len(self.shares)  # raises if the weights are not those of the models
        if hasattr(self, "estimators_"):
            as_integer(self.n_outputs_, name="n_outputs_")
            fits = isinstance(self.estimators_, list) and len(self.estimators_) == n_shares
            need(fits, f"estimators_ must be a list of {n_shares} models")
            for member in self.estimators_:
                need_model(member, "a member of the average")
