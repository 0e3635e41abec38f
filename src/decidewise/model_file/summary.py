"""What a model file says of its model, read without building the model."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from decidewise.evaluate.scorer import predicts_directions
from decidewise.kit.checks import check_same_names
from decidewise.kit.errors import InputError
from decidewise.model_file.container import read_header
from decidewise.models.estimator.learner import found

#: Keys of the `summary` of `save_model` that are names, not results of training.
NAMES = ("feature_names", "item_names", "cost_names")


@dataclass(frozen=True)
class ModelSummary:
    """What a model file says of its model.

    Attributes
    ----------
    model : str
        The estimator, as it prints itself.
    n_features : int, optional
        The number of features, of a row or of each item.
    n_items : int, optional
        The number of items of training, if features are per item.
    n_costs : int, optional
    feature_names, item_names, cost_names : tuples of str, optional
    units : Any
        The units of features and costs, as `save_model` was told.
    predicts_directions : bool
        Whether predictions are right up to a factor that depends on the row, so that they cannot be added to known
        costs.
    training : dict
        What `save_model` was told beside names and units, such as rows, dates, regret and plan.
    versions : dict of str to str
        Of Python, decidewise and the libraries that wrote the file.
    types : tuple of str
        The types that `load_model` must be told to trust; empty for models of plain arrays.

    Examples
    --------
    >>> from decidewise import WiseRegressor
    >>> model = WiseRegressor().fit([[0], [1], [2]], [[1, 2], [2, 3], [3, 5]])
    >>> ModelSummary.of(model, {"cost_names": ("north", "south")}, {}).cost_names
    ('north', 'south')
    """

    model: str
    n_features: int | None = None
    n_items: int | None = None
    n_costs: int | None = None
    feature_names: tuple[str, ...] | None = None
    item_names: tuple[str, ...] | None = None
    cost_names: tuple[str, ...] | None = None
    units: Any = None
    predicts_directions: bool = False
    training: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    types: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Any, summary: Mapping[str, Any], versions: dict[str, str]) -> Self:
        """Return the summary of a fitted model, with what the caller says of it."""
        if not isinstance(summary, Mapping):
            raise TypeError(f"summary must be a dict of what to say of the model; got {type(summary).__name__}.")
        said = {str(key): as_json(value, f"summary[{key!r}]") for key, value in summary.items()}
        names = {"feature_names": found(model, "feature_names_in_"), "cost_names": found(model, "cost_names_in_")}
        for key in NAMES:
            given = said.pop(key, None)
            if given is None:
                continue
            if not (isinstance(given, list) and all(isinstance(name, str) for name in given)):
                raise TypeError(f"summary[{key!r}] must be a list of names; got {type(summary[key]).__name__}.")
            check_same_names(names.get(key), given, of=f"summary[{key!r}]", expected="the data the model was fitted on")
            names[key] = given
        n_costs, named = _n_costs(model), names["cost_names"]
        if n_costs is not None and named is not None and len(named) != n_costs:
            raise ValueError(f"summary['cost_names'] must have {n_costs} names, one per cost; got {len(named)}.")
        n_features, n_items = found(model, "n_features_in_"), found(model, "n_items_in_")
        texts: dict[str, Any] = {key: None if some is None else tuple(map(str, some)) for key, some in names.items()}
        return cls(
            model=" ".join(repr(model).split()),
            n_features=None if n_features is None else int(n_features),
            n_items=None if n_items is None else int(n_items),
            n_costs=n_costs,
            units=said.pop("units", None),
            predicts_directions=predicts_directions(model),
            training=said,
            versions=versions,
            **texts,
        )

    @classmethod
    def from_header(cls, header: Any, path: Path) -> Self:
        """Return the summary in the header of a file; raise an `InputError` if it is not valid."""
        given = header.get("summary")
        if not isinstance(given, dict) or not given.keys() <= set(cls.__dataclass_fields__):
            raise InputError(f"{path} is not a valid model file: it has no summary.")
        sizes = [given.get(key) for key in ("n_features", "n_items", "n_costs")]
        names = [given.get(key) for key in NAMES]
        valid = (
            isinstance(given.get("model"), str)
            and all(size is None or (type(size) is int and size >= 0) for size in sizes)
            and all(some is None or _is_texts(some) for some in names)
            and (names[-1] is None or sizes[-1] in (None, len(names[-1])))
            and _is_texts(given.get("types"))
            and isinstance(given.get("training"), dict)
            and isinstance(given.get("predicts_directions"), bool)
            and isinstance(given.get("versions"), dict)
            and _is_texts(list(given["versions"].values()))
        )
        if not valid:
            raise InputError(f"{path} is not a valid model file: its summary is malformed.")
        texts = {key: tuple(given[key]) for key in (*NAMES, "types") if given.get(key) is not None}
        return cls(**{**given, **texts})

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as a dictionary that JSON can hold."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def read_model_summary(path: str | os.PathLike[str]) -> ModelSummary:
    """Return what a model file says of its model, without building the model or reading its arrays.

    Parameters
    ----------
    path : path of a file that `save_model` wrote

    Returns
    -------
    ModelSummary

    Raises
    ------
    InputError
        If the file cannot be read, is not a model file, is damaged or has a newer format.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from decidewise import WiseRegressor, save_model
    >>> path = Path(mkdtemp()) / "model.dw"
    >>> model = WiseRegressor().fit([[0.0], [1.0], [2.0]], [[1.0, 3.0], [2.0, 2.5], [3.0, 2.0]])
    >>> save_model(model, path, summary={"cost_names": ["left", "right"], "units": "EUR", "rows": 3})
    >>> summary = read_model_summary(path)
    >>> summary.model, summary.n_features, summary.cost_names, summary.units, summary.training
    ('WiseRegressor()', 1, ('left', 'right'), 'EUR', {'rows': 3})
    """
    path = Path(path)
    return ModelSummary.from_header(read_header(path), path)


def as_json(value: Any, where: str) -> Any:
    """Return a value as JSON holds it: arrays as lists, dates as text, numbers that are not finite as None."""
    if isinstance(value, np.datetime64 | datetime.date | datetime.time):
        return str(value)
    if isinstance(value, np.ndarray | np.generic):
        plain = value.astype(str) if value.dtype.kind == "M" else value  # as a list, nanoseconds would be integers
        return as_json(plain.tolist(), where)
    if value is None or isinstance(value, bool | str | int | float):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if isinstance(value, Mapping):
        return {str(key): as_json(part, f"{where}[{key!r}]") for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part, where) for part in value]
    raise TypeError(f"{where} must be text, numbers, dates, lists and mappings of these; got {type(value).__name__}.")


def _n_costs(model: Any) -> int | None:
    found = (getattr(model, "n_outputs_", None), getattr(getattr(model, "problem", None), "n_costs", None))
    known = [int(size) for size in (*found, getattr(model, "n_items_in_", None)) if size is not None]
    if known:
        return known[0]
    last = model.steps[-1][1] if hasattr(model, "steps") else None
    if last is not None:
        return _n_costs(last)
    coefficients = getattr(model, "coef_", None)
    return None if coefficients is None or np.ndim(coefficients) != 2 else len(coefficients)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
