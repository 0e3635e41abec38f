"""Models that differ only in their ridge, fitted together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.pipeline import Pipeline

from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.linear.moments import Moments
from decidewise.models.wise_regressor import WiseRegressor


def ridge_paths(candidates: Mapping[str, Any]) -> list[list[str]]:
    """Return the names of the candidates, grouped where they differ only in the ridge of an exact linear fit.

    >>> ridges = {f"ridge {a:g}": WiseRegressor(GeneralizedLinear(alpha=a)) for a in (0.1, 1.0)}
    >>> ridge_paths({**ridges, "gamma": WiseRegressor(GeneralizedLinear("gamma"))})
    [['ridge 0.1', 'ridge 1'], ['gamma']]
    """
    groups: dict[Any, list[str]] = {}
    for name, candidate in candidates.items():
        groups.setdefault(_all_but_ridge(candidate) or name, []).append(name)
    return list(groups.values())


def fit_path(path: Sequence[Any], X: Any, costs: Any) -> list[Any]:
    """Fit models of one path: the first is fitted, the others have its sums over the rows and one decomposition."""
    first = path[0].fit(X, costs)
    fitted = [first]
    if len(path) > 1:
        ridges = _Ridges(_last(first.estimator_).moments_)
        fitted += [ridges.refit(first, _last(other.estimator).alpha) for other in path[1:]]
    return fitted


class _Ridges:
    """The eigenvectors of the features, from which the coefficients for any ridge take one product."""

    def __init__(self, moments: Moments) -> None:
        self.moments = moments
        self.mean, self.level, gram, self.cross = moments.centered(fit_intercept=True)
        self.exact = bool((moments.unit == 1).all())
        if self.exact:
            self.values, self.vectors = eigh(gram)
            self.projected = self.vectors.T @ self.cross

    def refit(self, model: WiseRegressor, ridge: float) -> WiseRegressor:
        """Return a copy of a fitted model with another ridge."""
        if self.exact and ridge > 0:
            shrunk = np.maximum(self.values, 0.0) + ridge * self.moments.total_weight
            coefficients = self.vectors @ (self.projected / shrunk[:, None])
            intercepts = self.level - self.mean @ coefficients
        else:
            coefficients, intercepts = self.moments.solve(ridge, fit_intercept=True)
        twin = copy(model)
        learner = copy(_last(model.estimator_))
        learner.alpha = ridge
        learner.coef_ = coefficients.T.reshape(np.shape(learner.coef_))  # a single target has no axis of its own
        learner.intercept_ = np.reshape(intercepts, np.shape(learner.intercept_))
        fitted = model.estimator_
        twin.estimator_ = (
            Pipeline([*fitted.steps[:-1], (fitted.steps[-1][0], learner)]) if _is_chain(fitted) else learner
        )
        return twin


def _all_but_ridge(candidate: Any) -> tuple[Any, ...] | None:
    """Return what the candidates of one path have in common, or None if this one has to be fitted alone."""
    if not isinstance(candidate, WiseRegressor) or candidate.lifted or candidate.scale not in ("unit", "mean"):
        return None
    learner = _last(candidate.estimator)
    if not isinstance(learner, GeneralizedLinear) or learner.effective_link == "log" or not learner.fit_intercept:
        return None
    parameters = candidate.get_params(deep=True)
    plain = {key: value for key, value in parameters.items() if not hasattr(value, "get_params") and key != "memory"}
    steps = [type(step).__name__ for _, step in getattr(candidate.estimator, "steps", [])]
    shared = sorted((key, repr(value)) for key, value in plain.items() if not key.endswith(("alpha", "steps")))
    return type(candidate).__name__, *steps, *shared


def _last(learner: Any) -> Any:
    return learner.steps[-1][1] if _is_chain(learner) else learner


def _is_chain(learner: Any) -> bool:
    return isinstance(learner, Pipeline)
