"""The classes that a model file holds as plain values and arrays, each with a check of what was read.

Objects of these classes are built from their parameters, and their other attributes are set: no code comes from the
file, and no class outside this list is ever imported for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from decidewise.kit.checks import as_choice, as_flag, as_integer, as_number
from decidewise.kit.extras import require
from decidewise.losses import as_loss

Check = Callable[[Any], None]


def _linear(model: Any) -> None:
    """Check the coefficients of a linear or log-linear model, of rows or of items."""
    if not hasattr(model, "coef_"):
        return
    as_choice(model.link, name="link", choices=(None, "identity", "log"))
    as_choice(model.per_item, name="per_item", choices=("none", "intercept", "coefficients"))
    n_features = as_integer(model.n_features_in_, name="n_features_in_", minimum=0)
    shape, intercepts = np.shape(model.coef_), np.shape(model.intercept_)
    _need(_is_floats(model.coef_) and _is_floats(model.intercept_), "coef_ and intercept_ must be numbers")
    _need(len(shape) in (1, 2) and shape[-1] == n_features, f"coef_ must have {n_features} columns; it has {shape}")
    own = shape[:-1]
    if hasattr(model, "n_items_in_"):
        n_items = as_integer(model.n_items_in_, name="n_items_in_")
        _need((len(shape) == 2) == (model.per_item == "coefficients"), f"coef_ of shape {shape} does not fit per_item")
        own = () if model.per_item == "none" else (n_items,)
        _need(shape[:-1] in ((), own), f"coef_ of shape {shape} does not fit {n_items} items")
    _need(intercepts == own, f"intercept_ must have the shape {own}; it has {intercepts}")


def _generalized_linear(model: Any) -> None:
    as_choice(model.deviance, name="deviance", choices=("squared", "poisson", "gamma", "tweedie"))
    as_number(model.power, name="power", at_least=0)
    _linear(model)


def _wise(model: Any) -> None:
    _optional_model(model.estimator, "estimator")
    if not hasattr(model, "estimator_"):
        return
    if type(model.estimator_).__name__ != "LiftedItems":
        _predictor(model.estimator_, "estimator_")
    as_integer(model.n_outputs_, name="n_outputs_")
    as_number(model.unit_, name="unit_", above=0)
    exponent, _, lifted = model._seen_with
    as_number(exponent, name="exponent", at_least=0)
    if as_flag(lifted, name="lifted") and exponent > 0:
        as_number(model._smallest_lifted, name="_smallest_lifted", above=0)


def _floored(model: Any) -> None:
    _predictor(model.estimator, "estimator")
    if hasattr(model, "estimator_"):
        _predictor(model.estimator_, "estimator_")


def _corrected(model: Any) -> None:
    for name in ("estimator", "correction"):
        _predictor(getattr(model, name), name)
        if hasattr(model, f"{name}_"):
            _predictor(getattr(model, f"{name}_"), f"{name}_")


def _averaged(model: Any) -> None:
    as_flag(model.directions, name="directions")
    _need(isinstance(model.estimators, list) and len(model.estimators) > 0, "estimators must be a list of models")
    n_shares = len(model.shares)  # raises if the weights are not those of the models
    if hasattr(model, "estimators_"):
        as_integer(model.n_outputs_, name="n_outputs_")
        _need(
            isinstance(model.estimators_, list) and len(model.estimators_) == n_shares,
            f"estimators_ must be a list of {n_shares} models",
        )
        for member in model.estimators_:
            _predictor(member, "a member of the average")


def _given_forecast(model: Any) -> None:
    columns = model.columns if isinstance(model.columns, list | tuple) else [model.columns]
    _need(
        all(isinstance(column, int | str) for column in columns),
        "columns of a GivenForecast must be numbers or names; a function cannot be kept in a file",
    )
    if hasattr(model, "n_outputs_"):
        as_integer(model.n_outputs_, name="n_outputs_")


def _smooth_features(model: Any) -> None:
    as_integer(model.n_components, name="n_components")
    if hasattr(model, "directions_"):
        directions = model.directions_
        _need(_is_floats(directions) and np.ndim(directions) == 2, "directions_ must be a matrix")
        _need(len(directions) == model.n_features_in_, "directions_ must have one row per feature")


def _decision_regressor(model: Any) -> None:
    as_loss(model.loss)
    _linear(model)


def _nodes(nodes: Any) -> None:
    """Check the arrays of a tree: children come after their parents, so that every sample ends at a leaf."""
    size = len(nodes.feature)
    for name in ("feature", "left", "right", "count"):
        numbers = getattr(nodes, name)
        whole = isinstance(numbers, np.ndarray) and numbers.dtype == np.intp and numbers.shape == (size,)
        _need(whole, f"{name} of a tree must be {size} whole numbers")
    _need(_is_floats(nodes.threshold) and np.shape(nodes.threshold) == (size,), "threshold of a tree must be a row")
    _need(_is_floats(nodes.value) and np.ndim(nodes.value) == 2 and len(nodes.value) == size, "value must be a matrix")
    inner = np.flatnonzero(nodes.feature >= 0)
    for child in (nodes.left[inner], nodes.right[inner]):
        _need(bool(((child > inner) & (child < size)).all()), "the children of a node must come after it")


def _tree(model: Any) -> None:
    if hasattr(model, "nodes_"):
        _trees(model, [model.nodes_])


def _forest(model: Any) -> None:
    if hasattr(model, "trees_"):
        _need(isinstance(model.trees_, list) and len(model.trees_) > 0, "trees_ must be a list of trees")
        _trees(model, model.trees_)


def _trees(model: Any, trees: list[Any]) -> None:
    n_features = as_integer(model.n_features_in_, name="n_features_in_")
    for nodes in trees:
        _need(type(nodes).__name__ == "Nodes", "a tree must be of nodes")
        _need(nodes.feature.max() < n_features, f"a tree must split by one of {n_features} features")
        _need(nodes.value.shape[1] == trees[0].value.shape[1], "all trees must predict as many costs")


def _boosting(model: Any) -> None:
    as_loss(model.loss)
    if hasattr(model, "trees_"):
        _need(isinstance(model.trees_, list) and isinstance(model.steps_, list), "trees_ and steps_ must be lists")
        _need(len(model.trees_) == len(model.steps_), "trees_ and steps_ must be as many")
        for tree, step in zip(model.trees_, model.steps_, strict=True):
            _predictor(tree, "a tree")
            as_number(step, name="a step")


def _lifted_items(model: Any) -> None:
    _predictor(model.items, "items")
    _predictor(model.always_one, "always_one")


def _pipeline(model: Any) -> None:
    steps = model.steps
    _need(
        isinstance(steps, list)
        and len(steps) > 0
        and all(isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in steps),
        "the steps of a pipeline must be pairs of a name and an estimator",
    )
    _need(model.memory is None, "a pipeline with a memory, which is a folder of this machine, is not kept")


def _scaler(model: Any) -> None:
    for name in ("mean_", "scale_", "var_", "min_"):
        value = getattr(model, name, None)
        _need(value is None or (_is_floats(value) and np.shape(value) == (model.n_features_in_,)), f"{name} is no row")


def _by_itself(model: Any) -> None:
    model.check()


def _anything(model: Any) -> None:
    """Check nothing: what does not fit together is an error of `predict`."""


#: By the name in the file: where the class is imported from, and its check.
_CLASSES: dict[str, tuple[str, Check]] = {
    "GeneralizedLinear": ("decidewise.models", _generalized_linear),
    "DecisionRegressor": ("decidewise.models", _decision_regressor),
    "SpoTreeRegressor": ("decidewise.models", _tree),
    "SpoForestRegressor": ("decidewise.models", _forest),
    "DecisionBoostingRegressor": ("decidewise.models", _boosting),
    "Nodes": ("decidewise.models.trees.nodes", _nodes),
    "WiseRegressor": ("decidewise.models", _wise),
    "ClippedWise": ("decidewise.models", _wise),
    "FlooredRegressor": ("decidewise.models", _floored),
    "CorrectedRegressor": ("decidewise.models", _corrected),
    "AveragedRegressor": ("decidewise.models", _averaged),
    "GivenForecast": ("decidewise.models", _given_forecast),
    "SmoothFeatures": ("decidewise.models", _smooth_features),
    "TableFeatures": ("decidewise.app.tables.features", _by_itself),
    "TableModel": ("decidewise.app.tables.table_model", _by_itself),
    "Epoch": ("decidewise.models", _anything),
    "LiftedItems": ("decidewise.models.estimator.items", _lifted_items),
    "PredictedScale": ("decidewise.models.estimator.changed_fit", _anything),
    "Moments": ("decidewise.models.linear.moments", _anything),
    "WideMoments": ("decidewise.models.linear.wide", _anything),
    "ItemMoments": ("decidewise.models.linear.per_item", _anything),
    "Pipeline": ("sklearn.pipeline", _pipeline),
    "ColumnTransformer": ("sklearn.compose", _anything),
    "TransformedTargetRegressor": ("sklearn.compose", _anything),
    "MultiOutputRegressor": ("sklearn.multioutput", _anything),
    "StandardScaler": ("sklearn.preprocessing", _scaler),
    "MinMaxScaler": ("sklearn.preprocessing", _scaler),
    "PolynomialFeatures": ("sklearn.preprocessing", _anything),
    "OneHotEncoder": ("sklearn.preprocessing", _anything),
    "FunctionTransformer": ("sklearn.preprocessing", _anything),
    "SimpleImputer": ("sklearn.impute", _anything),
    "MissingIndicator": ("sklearn.impute", _anything),
    "DummyRegressor": ("sklearn.dummy", _anything),
    "LinearRegression": ("sklearn.linear_model", _anything),
    "Ridge": ("sklearn.linear_model", _anything),
    "LGBMRegressor": ("lightgbm", _anything),
}


#: The classes with a problem among their parameters.
_WITH_PROBLEM = {"DecisionRegressor", "SpoTreeRegressor", "SpoForestRegressor", "DecisionBoostingRegressor"}


def _left_out(name: str) -> tuple[str, ...]:
    """Return parameters that are not kept in a file, and are None after reading.

    Problems are files of their own. How many processes work is up to the reader, and no file may start any.
    """
    return (*(("problem",) if name in _WITH_PROBLEM else ()), *(("n_jobs",) if name != "LGBMRegressor" else ()))


def name_of(value: Any) -> str | None:
    """Return the name in a file of the class of an object, or None if files do not hold it as plain values.

    >>> from sklearn.preprocessing import StandardScaler
    >>> name_of(StandardScaler()), name_of(object())
    ('StandardScaler', None)
    """
    name = type(value).__name__
    return name if name in _CLASSES and _class_of(name) is type(value) else None


def state_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, parameters included."""
    name = type(value).__name__
    state = value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else vars(value)
    return {key: part for key, part in state.items() if key not in _left_out(name)}


def build(name: str, state: dict[str, Any]) -> Any:
    """Return the object of a class of the list with these attributes; raise a `ValueError` if they do not fit."""
    if name not in _CLASSES:
        raise ValueError(f"this format has no class {name!r}")
    kind = _class_of(name)
    if issubclass(kind, BaseEstimator):
        known = _parameters(kind)
        parameters = {key: None for key in _left_out(name) if key in known}
        _need(not parameters.keys() & state.keys(), f"{name} cannot have the parameters {', '.join(parameters)}")
        parameters |= {key: state[key] for key in known if key in state}
        attributes = {key: value for key, value in state.items() if key not in parameters}
        hidden = [key for key in attributes if not key.isidentifier() or key.startswith("__") or hasattr(kind, key)]
        _need(not hidden, f"{name} cannot have an attribute {hidden[:1]}")
        value = kind(**parameters)
        vars(value).update(attributes)
    else:
        assert is_dataclass(kind) or issubclass(kind, tuple)
        value = kind(**state)
    check_object(value)
    return value


def check_object(value: Any) -> None:
    """Raise a `ValueError`, `TypeError` or `AttributeError` if an object of a class of the list is not as it should."""
    _CLASSES[type(value).__name__][1](value)


def library_of(name: str) -> str:
    """Return the package that a class of the list comes from."""
    return _CLASSES[name][0].partition(".")[0]


def _parameters(kind: Any) -> list[str]:
    names: list[str] = kind._get_param_names()
    return names


@cache
def _class_of(name: str) -> type:
    if library_of(name) == "lightgbm":
        require("boosting", by="this model")
    found: type = getattr(import_module(_CLASSES[name][0]), name)
    return found


def _is_floats(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype == np.float64)


def _predictor(model: Any, name: str) -> None:
    _need(callable(getattr(model, "predict", None)), f"{name} must be a model")


def _optional_model(model: Any, name: str) -> None:
    if model is not None:
        _predictor(model, name)


def _need(fact: bool, otherwise: str) -> None:
    if not fact:
        raise ValueError(otherwise)
