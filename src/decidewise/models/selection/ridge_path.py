"""Models that differ only in their ridge, fitted together: features, weights and sums over the rows are shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline

from decidewise.kit.checks import FloatArray
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.linear.blocks import Blocks
from decidewise.models.linear.deviances import Deviance
from decidewise.models.linear.moments import Moments, WideMoments
from decidewise.models.wise_regressor import WiseRegressor
from decidewise.rows.passes import Passes


def ridge_paths(candidates: Mapping[str, Any]) -> list[list[str]]:
    """Return the names of the candidates, grouped where they differ only in the ridge of a linear or log-linear fit.

    >>> ridges = {f"ridge {a:g}": WiseRegressor(GeneralizedLinear(alpha=a)) for a in (0.1, 1.0)}
    >>> ridge_paths({**ridges, "gamma": WiseRegressor(GeneralizedLinear("gamma"))})
    [['ridge 0.1', 'ridge 1'], ['gamma']]
    """
    groups: dict[Any, list[str]] = {}
    for name, candidate in candidates.items():
        groups.setdefault(_all_but_ridge(candidate) or name, []).append(name)
    return list(groups.values())


def fit_path(path: Sequence[Any], X: Any, costs: Any) -> list[Any]:
    """Fit models of one path; only the first reads the rows, and it is the only one of `path` that is changed.

    The others of a linear path have its sums over the rows and one decomposition. The others of a log-linear path have
    its features and weights, and each starts from the fit before.
    """
    first = path[0]
    if len(path) == 1:
        return [first.fit(X, costs)]
    learner, ridges = _last(first.estimator), [_last(other.estimator).alpha for other in path[1:]]
    if learner.effective_link == "identity":
        solved = _last(first.fit(X, costs).estimator_).moments_.ridges()
        return [first] + [_refit(first, ridge, *solved(ridge)) for ridge in ridges]
    together = _LogLinearPath(**learner.get_params(deep=False), more_ridges=tuple(ridges))
    model = copy(first).set_params(estimator=_with_last(first.estimator, together)).fit(X, costs)
    return [_twin(model, fit) for fit in _last(model.estimator_).fits_]


class _LogLinearPath(GeneralizedLinear):
    """A log-linear model for several ridges, each of which starts from the fit before."""

    def __init__(
        self,
        deviance: Any = "squared",
        *,
        power: float = 1.5,
        link: Any = None,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        per_item: Any = "none",
        max_iter: int = 100,
        tol: float = 1e-8,
        warm_start: bool = False,
        more_ridges: tuple[float, ...] = (),
    ) -> None:
        super().__init__(
            deviance,
            power=power,
            link=link,
            alpha=alpha,
            fit_intercept=fit_intercept,
            per_item=per_item,
            max_iter=max_iter,
            tol=tol,
            warm_start=warm_start,
        )
        self.more_ridges = more_ridges

    def _iterate(
        self, blocks: Blocks, moments: Moments | WideMoments, deviance: Deviance, n_dimensions: int
    ) -> Passes[Self]:
        self.fits_ = [copy((yield from super()._iterate(blocks, moments, deviance, n_dimensions)))]
        for ridge in self.more_ridges:
            following = copy(self.fits_[-1])
            following.alpha, following.warm_start = ridge, True
            passes = super(_LogLinearPath, following)._iterate(blocks, moments, deviance, n_dimensions)
            self.fits_.append((yield from passes))
        return self


def _refit(model: WiseRegressor, ridge: float, coefficients: FloatArray, intercepts: FloatArray) -> WiseRegressor:
    """Return a copy of a fitted model with another ridge, and its coefficients."""
    learner = copy(_last(model.estimator_))
    learner.alpha = ridge
    learner.coef_ = coefficients.T.reshape(np.shape(learner.coef_))  # a single target has no axis of its own
    learner.intercept_ = np.reshape(intercepts, np.shape(learner.intercept_))
    return _twin(model, learner)


def _twin(model: WiseRegressor, learner: Any) -> WiseRegressor:
    """Return a copy of a fitted model with another fitted learner behind the same feature steps."""
    twin = copy(model)
    twin.estimator_ = _with_last(model.estimator_, learner)
    return twin


def _all_but_ridge(candidate: Any) -> tuple[Any, ...] | None:
    """Return what the candidates of one path have in common, or None if this one has to be fitted alone."""
    if not isinstance(candidate, WiseRegressor) or candidate.lifted or candidate.scale not in ("unit", "mean"):
        return None
    learner = _last(candidate.estimator)
    if not isinstance(learner, GeneralizedLinear) or not learner.fit_intercept or learner.warm_start:
        return None
    if learner.effective_link == "log" and learner.deviance == "squared":
        return None  # it has several minima, and the start decides which one is found
    parameters = candidate.get_params(deep=True)
    plain = {key: value for key, value in parameters.items() if not hasattr(value, "get_params") and key != "memory"}
    steps = [type(step).__name__ for _, step in getattr(candidate.estimator, "steps", [])]
    shared = sorted((key, repr(value)) for key, value in plain.items() if not key.endswith(("alpha", "steps")))
    return type(candidate).__name__, *steps, *shared


def _last(learner: Any) -> Any:
    return learner.steps[-1][1] if _is_chain(learner) else learner


def _with_last(learner: Any, last: Any) -> Any:
    return Pipeline([*learner.steps[:-1], (learner.steps[-1][0], last)]) if _is_chain(learner) else last


def _is_chain(learner: Any) -> bool:
    return isinstance(learner, Pipeline)
