"""The check of an estimator of costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from decidewise.kit.checks import FloatArray, as_features, as_matrix
from decidewise.testing.requirements import (
    ROUNDING,
    described,
    pickled,
    require,
    require_no_error,
    require_refusal,
    require_same,
)


def check_model(estimator: Any, *, n_costs: int = 3, X: Any = None, costs: Any = None, seed: int = 0) -> None:
    """Check that an estimator of costs works wherever those of decidewise work, and refuses bad input.

    It checks that `fit` returns the estimator, changes neither its parameters nor the data, and forgets earlier fits;
    that `predict` returns one finite row per sample and one column per cost; and that arrays that do not match are
    refused. The estimator itself is not fitted, only clones of it. For all of scikit-learn's conventions see
    `sklearn.utils.estimator_checks`.

    Parameters
    ----------
    estimator : object with `fit(X, costs)`, `predict(X)` and `get_params()`
    n_costs : int
        The number of costs to predict, if `costs` are not given.
    X, costs : array-like of shapes (n, p), or (n, d, q) with features of each item, and (n, d), optional
        Data that suit the estimator; by default 60 rows with four features and positive costs.
    seed : int
        The seed of the default data, and the value of every `random_state` of the estimator and its parts.

    Examples
    --------
    >>> from decidewise import WiseRegressor
    >>> check_model(WiseRegressor())
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4)) if X is None else as_features(X)
    if costs is None:
        costs = np.exp(X @ rng.normal(scale=0.3, size=(X.shape[1], n_costs))) + rng.uniform(size=(len(X), n_costs))
    costs = as_matrix(costs)
    _check_fit(estimator, X, costs, seed)
    _check_predict(estimator, X, costs, seed)
    _check_refit(estimator, X, costs, seed)
    _check_refusals(estimator, X, costs, seed)


def _fresh(estimator: Any, seed: int) -> Any:
    with require_no_error(estimator, "cannot be cloned. Store each argument of __init__ unchanged, under its own name"):
        model = clone(estimator)
        states = [key for key in model.get_params() if key.split("__")[-1] == "random_state"]
        return model.set_params(**dict.fromkeys(states, seed))


def _fitted(estimator: Any, X: FloatArray, costs: FloatArray, seed: int) -> Any:
    with require_no_error(estimator, "cannot be fitted"):
        return _fresh(estimator, seed).fit(X, costs)


def _check_fit(estimator: Any, X: FloatArray, costs: FloatArray, seed: int) -> None:
    name, model = type(estimator).__name__, _fresh(estimator, seed)
    given_X, given_costs, before = X.copy(), costs.copy(), model.get_params(deep=False)
    require_refusal(NotFittedError, model.predict, X, sentence=f"{name}.predict must raise NotFittedError before fit")
    with require_no_error(estimator, "cannot be fitted"):
        returned = model.fit(given_X, given_costs)
    require(returned is model, f"{name}.fit must return the estimator itself; it returned {described(returned)}.")
    changed = [key for key, value in model.get_params(deep=False).items() if value is not before[key]]
    require(
        not changed,
        f"{name}.fit changes its parameters: {', '.join(changed)}. Store what it learns in attributes that end in _.",
    )
    require(
        np.array_equal(given_X, X) and np.array_equal(given_costs, costs),
        f"{name}.fit writes to the data that it is given. Copy them first.",
    )
    n_features = getattr(model, "n_features_in_", None)
    require(
        n_features == X.shape[-1],
        f"{name} must have n_features_in_ = {X.shape[-1]} after fit; it has {n_features}. Read X "
        "with sklearn.utils.validation.validate_data.",
    )


def _check_predict(estimator: Any, X: FloatArray, costs: FloatArray, seed: int) -> None:
    name, model = type(estimator).__name__, _fitted(estimator, X, costs, seed)
    with require_no_error(estimator, "cannot predict"):
        prediction, alone = model.predict(X), model.predict(X[:1])
    for n_rows, found in ((len(X), prediction), (1, alone)):
        require(
            isinstance(found, np.ndarray) and found.shape == (n_rows, costs.shape[1]),
            f"{name}.predict must return one row per sample and one column per cost, of shape "
            f"{(n_rows, costs.shape[1])}; it returned {described(found)}.",
        )
    require(np.isfinite(prediction).all(), f"{name}.predict returned numbers that are not finite.")
    sentence = f"{name} predicts differently for a row alone and for the same row among others."
    require_same(alone, prediction[:1], ROUNDING, sentence)
    with require_no_error(estimator, "cannot be pickled. Define its class in a module, and hold plain data"):
        twin = pickled(model)
    sentence = f"{name} predicts differently after it is pickled. Keep all it needs in its attributes."
    require_same(twin.predict(X), prediction, 0.0, sentence)


def _check_refit(estimator: Any, X: FloatArray, costs: FloatArray, seed: int) -> None:
    name, prediction = type(estimator).__name__, _fitted(estimator, X, costs, seed).predict(X)
    again = _fitted(estimator, X, costs, seed).predict(X)
    sentence = f"{name} predicts differently when a clone is fitted on the same data. Draw only from random_state."
    require_same(again, prediction, ROUNDING, sentence)
    used = _fitted(estimator, X[len(X) // 2 :], costs[len(X) // 2 :], seed)
    with require_no_error(estimator, "cannot be fitted a second time"):
        used.fit(X, costs)
    sentence = f"{name}.fit remembers an earlier fit. Start from nothing in fit; only partial_fit may continue."
    require_same(used.predict(X), prediction, ROUNDING, sentence)


def _check_refusals(estimator: Any, X: FloatArray, costs: FloatArray, seed: int) -> None:
    name = type(estimator).__name__
    for bad in (np.nan, np.inf):
        spoilt = costs.copy()
        spoilt[2, 0] = bad
        sentence = f"{name}.fit must refuse a cost of {bad} with a ValueError"
        require_refusal(ValueError, _fresh(estimator, seed).fit, X, spoilt, sentence=sentence)
    sentence = f"{name}.fit must refuse X and costs of different lengths with a ValueError"
    require_refusal(ValueError, _fresh(estimator, seed).fit, X, costs[:-1], sentence=sentence)
    sentence = f"{name}.predict must refuse X with another number of features than in fit with a ValueError"
    require_refusal(ValueError, _fitted(estimator, X, costs, seed).predict, X[..., :-1], sentence=sentence)
