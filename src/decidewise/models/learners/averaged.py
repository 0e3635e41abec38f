"""The average of several models."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from decidewise.checks import FloatArray
from decidewise.models.linear.blocks import one_library_thread
from decidewise.scaling import unit_rows


class AveragedRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Average the predictions of several models.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Regressors of many outputs.
    directions : bool
        Whether to average the directions of the predictions, so that models with predictions of any length have the
        same say. If not, all of them must predict in the units of the costs.
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
    >>> model.predict(np.zeros((1, 1)))
    array([[0.5, 0.5]])
    """

    def __init__(
        self, estimators: list[tuple[str, Any]], *, directions: bool = True, n_jobs: int | None = None
    ) -> None:
        self.estimators = estimators
        self.directions = directions
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Fit all models on features X (n, p) and costs y (n, d)."""
        self.n_outputs_ = np.shape(y)[1]
        with one_library_thread():
            self.estimators_ = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit)(clone(estimator), X, y) for _, estimator in self.estimators
            )
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the mean direction, or the mean prediction, of the models: (n, d)."""
        check_is_fitted(self)
        total: FloatArray | float = 0.0
        for model in self.estimators_:
            prediction = np.reshape(model.predict(X), (-1, self.n_outputs_))
            total = total + (unit_rows(prediction) if self.directions else prediction)
        return np.asarray(total) / len(self.estimators_)

    @property
    def predicts_directions(self) -> bool:
        """Whether predictions are directions, which cannot be added to known costs."""
        return self.directions

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        return tags


def _fit(model: Any, X: Any, y: Any) -> Any:
    return model.fit(X, y)
