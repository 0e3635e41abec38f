"""Feature steps that many candidates have in common, fitted once for each fold."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils import _safe_indexing

from decidewise.kit.checks import is_per_item
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.learners.smooth_features import SmoothFeatures
from decidewise.models.learners.wrappers import FlooredRegressor
from decidewise.models.selection.time_folds import Rows
from decidewise.models.wise_regressor import WiseRegressor

# Steps that look neither at the targets nor at the weights, so that they are the same for all candidates.
_SHAREABLE = (StandardScaler, PolynomialFeatures, SmoothFeatures)
# The learners of default candidates behind such steps, which see what the steps make and nothing else.
_LEARNERS = (GeneralizedLinear, FlooredRegressor)
# The bytes of features that are kept for other candidates.
_MOST_BYTES = 2**26


class Steps(NamedTuple):
    """Feature steps, and a text by which equal ones are known."""

    pipeline: Pipeline
    key: str


def without_steps(path: Sequence[Any]) -> tuple[Steps | None, list[Any]]:
    """Return the feature steps that the models of a ridge path share, and the models without them.

    Steps are None if there are none, or none that can be shared; then the models are returned as they are.

    >>> from sklearn.pipeline import make_pipeline
    >>> steps, models = without_steps([WiseRegressor(make_pipeline(StandardScaler(), GeneralizedLinear(alpha=0.1)))])
    >>> steps.pipeline, models
    (Pipeline(steps=[('standardscaler', StandardScaler())]), [WiseRegressor(estimator=GeneralizedLinear(alpha=0.1))])
    """
    learners: list[Any] = [model.estimator if isinstance(model, WiseRegressor) else None for model in path]
    if not all(isinstance(learner, Pipeline) for learner in learners) or not isinstance(path[0].scale, str):
        return None, list(path)
    *steps, (_, last) = learners[0].steps
    if not isinstance(last, _LEARNERS) or not all(isinstance(step, _SHAREABLE) for _, step in steps):
        return None, list(path)
    bare = [copy(model) for model in path]
    for model, learner in zip(bare, learners, strict=True):
        model.estimator = learner.steps[-1][1]
    key = repr([(type(step).__name__, *sorted(step.get_params().items())) for _, step in steps])
    return Steps(Pipeline(steps), key), bare


class SharedFeatures:
    """The features of all rows, and what feature steps make of them in each fold.

    Parameters
    ----------
    X : array-like or frame of shape (n, p), or array-like of shape (n, d, q)
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self._kept: dict[Any, tuple[Any, ...]] = {}
        self._n_bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"X": self.X, "_kept": {}, "_n_bytes": 0}  # another process computes them itself

    @property
    def has_steps(self) -> bool:
        """Whether feature steps can be applied to all rows at once: features per item are first made long."""
        return not is_per_item(self.X)

    def of(self, train: Rows, test: Rows, steps: Steps | None = None) -> tuple[Any, Any]:
        """Return the features of training rows and held-out rows, behind steps that are fitted on the former."""
        if steps is None:
            return _safe_indexing(self.X, train), _safe_indexing(self.X, test)
        # The rows are kept as well, so that no other rows can get the same identity.
        key = steps.key, id(train), id(test)
        if key not in self._kept:
            features, held_out = self.of(train, test)
            fitted = clone(steps.pipeline)
            made = fitted.fit_transform(features), fitted.transform(held_out)
            size = sum(getattr(part, "nbytes", _MOST_BYTES) for part in made)
            if self._n_bytes + size > _MOST_BYTES:
                return made
            self._n_bytes += size
            self._kept[key] = *made, train, test
        return self._kept[key][:2]
