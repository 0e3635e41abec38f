"""The models that `WiseRegressorCV` chooses among by default."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from decidewise.checks import as_matrix, check_items, check_same_rows, is_per_item
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.wise_regressor import WiseRegressor

# The time of a log-linear fit grows with the square of the number of features.
_MAX_QUADRATIC_FEATURES = 200
# With fewer rows, trees decide worse than linear models. With more costs, they are slow: each cost has its own trees.
_MIN_ROWS_FOR_TREES = 2000
_MAX_COSTS_FOR_TREES = 100


def default_candidates(X: Any, costs: Any, *, lifted: bool = False) -> dict[str, WiseRegressor]:
    """Return solver-free models that suit the data, by name, from the simplest to the most complex.

    Each of them is a `WiseRegressor`. A name without "wise", such as "gamma", is the plain fit (exponent 0); "wise 0.75
    gamma" and "wise gamma" are fits under the change of measure with exponents 0.75 and 1. The order is:

    - least squares;
    - if all costs are positive, log-linear models with the gamma, Poisson and squared deviances;
    - "wise 0.75" and "wise", least squares under the change of measure;
    - the squared and, if all costs are positive, the gamma deviance with a ridge;
    - the same with quadratic features, if there are at most 200 of them and at least three rows for each;
    - boosted trees, if LightGBM is installed and there are at least 2,000 rows and at most 100 costs.

    Parameters
    ----------
    X : array-like or frame of shape (n, p), or array-like of shape (n, d, q) with features of each item
        With features of each item, all candidates share one model among the items.
    costs : array-like or frame of shape (n, d)
    lifted : bool
        Whether all candidates estimate the costs themselves, not only their direction, as a problem with known costs
        needs.

    Examples
    --------
    Add candidates to the dictionary, or remove some:

    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> candidates = default_candidates(np.zeros((9, 4)), -np.ones((9, 2)))
    >>> candidates["neighbours"] = WiseRegressor(KNeighborsRegressor())
    >>> list(candidates)[:4]
    ['least squares', 'wise 0.75', 'wise', 'least squares, ridge 0.01']
    """
    costs = as_matrix(costs)
    check_same_rows(X=X, costs=costs)
    n_samples, n_costs = costs.shape
    n_features = np.shape(X)[-1]
    if is_per_item(X):
        check_items(X, n_costs)
        n_samples, n_costs = costs.size, 1  # one model for all items, fitted on one row per item of each sample
    squared = ("least squares", GeneralizedLinear())
    log_linear = [
        ("gamma", GeneralizedLinear("gamma")),
        ("poisson", GeneralizedLinear("poisson")),
        ("log squared", GeneralizedLinear(link="log")),
    ]
    if costs.min() <= 0:
        log_linear = []
    candidates = _variants(*squared, (0.0,))
    # These models have equally many parameters. The log link comes first, since it suits positive costs more often.
    for name, learner in log_linear:
        candidates |= _variants(name, learner, (0.0, 0.75, 1.0))
    candidates |= _variants(*squared, (0.75, 1.0))

    expansions: dict[str, list[Any]] = {"": []}
    if n_features * (n_features + 3) // 2 <= min(n_samples / 3, _MAX_QUADRATIC_FEATURES):
        expansions[", quadratic"] = [StandardScaler(), PolynomialFeatures(2, include_bias=False)]
    for detail, steps in expansions.items():
        for ridge in (0.01, 0.1):
            for name, learner in [squared, *log_linear[:1]]:
                # A ridge penalises all coefficients equally, so the features are scaled to the same variance.
                pipeline = make_pipeline(*steps, StandardScaler(), clone(learner).set_params(alpha=ridge))
                candidates |= _variants(name, pipeline, (0.0, 1.0), f"{detail}, ridge {ridge:g}")
    if n_samples >= _MIN_ROWS_FOR_TREES and n_costs <= _MAX_COSTS_FOR_TREES and find_spec("lightgbm"):
        candidates |= _variants("trees", _boosted_trees(), (0.0, 1.0))
    for candidate in candidates.values():
        candidate.lifted = lifted and candidate.exponent > 0  # with exponent 0 they do so already
    return candidates


def _variants(name: str, learner: Any, exponents: tuple[float, ...], detail: str = "") -> dict[str, WiseRegressor]:
    return {_name(name, e) + detail: WiseRegressor(learner, exponent=e) for e in exponents}


def _name(learner: str, exponent: float) -> str:
    if exponent == 0:
        return learner
    wise = "wise" if exponent == 1 else f"wise {exponent:g}"
    return wise if learner == "least squares" else f"{wise} {learner}"


def _boosted_trees() -> Any:
    # Imported by name, since it is an optional dependency and known to be installed only here.
    lightgbm = import_module("lightgbm")
    return lightgbm.LGBMRegressor(
        n_estimators=200, learning_rate=0.05, num_leaves=15, random_state=0, n_jobs=1, verbosity=-1
    )
