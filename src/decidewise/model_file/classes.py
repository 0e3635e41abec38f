"""The classes that a model file holds as plain values and arrays; each checks what was read, by `_check_kept`.

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

from decidewise.kit.kept import are_floats, check_kept, need
from decidewise.kit.lazy import require


def _pipeline(model: Any) -> None:
    steps = model.steps
    need(
        isinstance(steps, list)
        and len(steps) > 0
        and all(isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in steps),
        "the steps of a pipeline must be pairs of a name and an estimator",
    )
    need(model.memory is None, "a pipeline with a memory, which is a folder of this machine, is not kept")


def _scaler(model: Any) -> None:
    for name in ("mean_", "scale_", "var_", "min_"):
        value = getattr(model, name, None)
        need(value is None or (are_floats(value) and np.shape(value) == (model.n_features_in_,)), f"{name} is no row")


#: The modules that the classes are imported from, and the names of the classes, which are those in a file.
_MODULES = {
    "decidewise.models": (
        "GeneralizedLinear", "DecisionRegressor", "SpoTreeRegressor", "SpoForestRegressor",
        "DecisionBoostingRegressor", "WiseRegressor", "ClippedWise", "FlooredRegressor", "CorrectedRegressor",
        "AveragedRegressor", "GivenForecast", "SmoothFeatures", "Epoch", "NearestScenarios", "ResidualScenarios",
        "DemandRegressor",
    ),
    "decidewise.models.trees.nodes": ("Nodes",),
    "decidewise.models.estimator.learner": ("LiftedItems",),
    "decidewise.models.estimator.changed_fit": ("PredictedScale",),
    "decidewise.models.linear.moments": ("Moments", "WideMoments"),
    "decidewise.models.linear.per_item": ("ItemMoments",),
    "decidewise.app.tables.features": ("TableFeatures",),
    "decidewise.app.tables.table_model": ("TableModel",),
    "decidewise.problems.levels.demand": ("DemandCost",),
    "decidewise.problems.levels.features": ("DemandTable",),
    "sklearn.pipeline": ("Pipeline",),
    "sklearn.compose": ("ColumnTransformer", "TransformedTargetRegressor"),
    "sklearn.multioutput": ("MultiOutputRegressor",),
    "sklearn.preprocessing": (
        "StandardScaler", "MinMaxScaler", "PolynomialFeatures", "OneHotEncoder", "FunctionTransformer",
    ),
    "sklearn.impute": ("SimpleImputer", "MissingIndicator"),
    "sklearn.dummy": ("DummyRegressor",),
    "sklearn.linear_model": ("LinearRegression", "Ridge"),
    "lightgbm": ("LGBMRegressor",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
#: The checks of classes that are not ours.
_FOREIGN_CHECKS: dict[str, Callable[[Any], None]] = {
    "Pipeline": _pipeline,
    "StandardScaler": _scaler,
    "MinMaxScaler": _scaler,
}


def _left_out(name: str) -> tuple[str, ...]:
    """Return parameters that are not kept in a file, and are None after reading.

    Problems are files of their own. How many processes work is up to the reader, and no file may start any.
    """
    return () if name == "LGBMRegressor" else ("problem", "n_jobs")


def name_of(value: Any) -> str | None:
    """Return the name in a file of the class of an object, or None if files do not hold it as plain values.

    >>> from sklearn.preprocessing import StandardScaler
    >>> name_of(StandardScaler()), name_of(object())
    ('StandardScaler', None)
    """
    name = type(value).__name__
    return name if name in _MODULE_OF and _class_of(name) is type(value) else None


def state_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, parameters included."""
    name = type(value).__name__
    state = value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else vars(value)
    return {key: part for key, part in state.items() if key not in _left_out(name)}


def build(name: str, state: dict[str, Any]) -> Any:
    """Return the object of a class of the list with these attributes; raise a `ValueError` if they do not fit."""
    if name not in _MODULE_OF:
        raise ValueError(f"this format has no class {name!r}")
    kind = _class_of(name)
    if issubclass(kind, BaseEstimator):
        known = _parameters(kind)
        parameters = {key: None for key in _left_out(name) if key in known}
        need(not parameters.keys() & state.keys(), f"{name} cannot have the parameters {', '.join(parameters)}")
        parameters |= {key: state[key] for key in known if key in state}
        attributes = {key: value for key, value in state.items() if key not in parameters}
        hidden = [key for key in attributes if not key.isidentifier() or key.startswith("__") or hasattr(kind, key)]
        need(not hidden, f"{name} cannot have an attribute {hidden[:1]}")
        value = kind(**parameters)
        vars(value).update(attributes)
    else:
        assert is_dataclass(kind) or issubclass(kind, tuple)
        value = kind(**state)
    check_object(value)
    return value


def check_object(value: Any) -> None:
    """Raise a `ValueError`, `TypeError` or `AttributeError` if an object of a class of the list is not as it should."""
    _FOREIGN_CHECKS.get(type(value).__name__, check_kept)(value)


def library_of(name: str) -> str:
    """Return the package that a class of the list comes from."""
    return _MODULE_OF[name].partition(".")[0]


def _parameters(kind: Any) -> list[str]:
    names: list[str] = kind._get_param_names()
    return names


@cache
def _class_of(name: str) -> type:
    if library_of(name) == "lightgbm":
        require("boosting", by="this model")
    found: type = getattr(import_module(_MODULE_OF[name]), name)
    return found
