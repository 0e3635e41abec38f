"""The models that `WiseRegressorCV` chooses among, unless it is told otherwise."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from decidewise.checks import as_matrix, check_same_rows
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.wise_regressor import WiseRegressor

# A log-linear fit takes time in proportion to the square of the features.
_MOST_QUADRATIC_FEATURES = 200
# With fewer rows trees decide worse than linear models; with more costs, each of which is fitted alone, they are slow.
_FEWEST_ROWS_FOR_TREES = 2000
_MOST_COSTS_FOR_TREES = 100


def default_candidates(X: Any, costs: Any) -> dict[str, WiseRegressor]:
    """Return solver-free models that suit the data, by name, from the simplest to the most complex.

    All of them are `WiseRegressor`s, of which "gamma" is the plain fit (exponent 0), "wise 0.75 gamma" and "wise gamma"
    are those under the change of measure. In this order:

    - least squares;
    - where all costs are positive, log-linear models with the gamma, Poisson and squared deviances;
    - "wise 0.75" and "wise", least squares under the change of measure;
    - the squared and gamma deviances with a ridge;
    - the same with quadratic features, where there are at most 200 of them and at least three rows for each;
    - boosted trees, where LightGBM is installed and there are 2,000 rows or more.

    Parameters
    ----------
    X : array-like or frame of shape (n, p)
    costs : array-like or frame of shape (n, d)

    Examples
    --------
    Add to the dictionary, or leave some of it out:

    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> candidates = default_candidates(np.zeros((9, 4)), -np.ones((9, 2)))
    >>> candidates["neighbours"] = WiseRegressor(KNeighborsRegressor())
    >>> list(candidates)[:4]
    ['least squares', 'wise 0.75', 'wise', 'least squares, ridge 0.01']
    """
    costs = as_matrix(costs)
    check_same_rows(X=X, costs=costs)
    n_samples, n_costs = costs.shape
    n_features = np.shape(X)[1]
    squared = ("least squares", GeneralizedLinear())
    log_linear = [
        ("gamma", GeneralizedLinear("gamma")),
        ("poisson", GeneralizedLinear("poisson")),
        ("log squared", GeneralizedLinear(link="log")),
    ]
    if costs.min() <= 0:
        log_linear = []
    candidates = _variants(*squared, (0.0,))
    # These have as many parameters each. Where they tie, a log link is the safer choice: it more often fits.
    for name, learner in log_linear:
        candidates |= _variants(name, learner, (0.0, 0.75, 1.0))
    candidates |= _variants(*squared, (0.75, 1.0))

    expansions: dict[str, list[Any]] = {"": []}
    if n_features * (n_features + 3) // 2 <= min(n_samples / 3, _MOST_QUADRATIC_FEATURES):
        expansions[", quadratic"] = [StandardScaler(), PolynomialFeatures(2, include_bias=False)]
    for detail, steps in expansions.items():
        for ridge in (0.01, 0.1):
            for name, learner in [squared, *log_linear[:1]]:
                # A ridge treats all features alike, so they are brought to one size.
                pipeline = make_pipeline(*steps, StandardScaler(), clone(learner).set_params(alpha=ridge))
                candidates |= _variants(name, pipeline, (0.0, 1.0), f"{detail}, ridge {ridge:g}")
    if n_samples >= _FEWEST_ROWS_FOR_TREES and n_costs <= _MOST_COSTS_FOR_TREES and find_spec("lightgbm"):
        candidates |= _variants("trees", _boosted_trees(), (0.0, 1.0))
    return candidates


def _variants(name: str, learner: Any, exponents: tuple[float, ...], detail: str = "") -> dict[str, WiseRegressor]:
    return {_name(name, e) + detail: WiseRegressor(learner, exponent=e) for e in exponents}


def _name(learner: str, exponent: float) -> str:
    if exponent == 0:
        return learner
    wise = "wise" if exponent == 1 else f"wise {exponent:g}"
    return wise if learner == "least squares" else f"{wise} {learner}"


def _boosted_trees() -> Any:
    # By its name: the extra is imported only here, where it is known to be installed.
    lightgbm = import_module("lightgbm")
    return lightgbm.LGBMRegressor(
        n_estimators=200, learning_rate=0.05, num_leaves=15, random_state=0, n_jobs=1, verbosity=-1
    )
