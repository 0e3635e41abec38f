"""Write a fitted model to one file, and read it again; nothing in the file is executed."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import decidewise
from decidewise.kit.errors import InputError
from decidewise.kit.files import write_whole
from decidewise.model_file.container import pack, unpack
from decidewise.model_file.summary import ModelSummary
from decidewise.model_file.values import Decoder, Encoder, UntrustedTypesError
from decidewise.models import WiseRegressorCV
from decidewise.models.estimator.learner import found

_LIBRARIES = ("numpy", "scikit-learn")


def save_model(model: Any, path: str | os.PathLike[str], *, summary: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model to one file, from which `load_model` reads it again.

    All models of decidewise are kept as plain arrays and JSON, and so are pipelines of common steps of scikit-learn
    (scalers, polynomials, one-hot encoding, imputation, column transformers), linear and constant models. Predictions
    stay the same bit for bit. Any other estimator is written through skops (`pip install "decidewise[skops]"`), and
    LightGBM as its own text; to read those, the caller must name their types as trusted. A `WiseRegressorCV` is saved
    as its chosen model, also at the end of a pipeline, a `DecisionRegressor` without its problem, and all of them
    without `n_jobs`.

    The file of a linear model that was fitted on fewer rows than features, from 200 features on, holds the weighted
    training rows, from which `partial_fit` goes on.

    Parameters
    ----------
    model : fitted estimator
    path : path of the file, by convention `*.dw`
        It is written beside and then moved into place, so it is never half-written.
    summary : mapping, optional
        What `read_model_summary` will say of the model. The keys "feature_names", "item_names" and "cost_names" are
        lists of names, for models fitted on arrays, and "units" is what units the numbers have; all others, such as
        "rows", "dates", "regret" and "plan", describe the training. Values are text, numbers, dates, lists or mappings.

    Raises
    ------
    TypeError
        If a part of the model cannot be kept in a file, such as a function; the message names it.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from decidewise import WiseRegressor
    >>> path = Path(mkdtemp()) / "model.dw"
    >>> model = WiseRegressor().fit([[0.0], [1.0], [2.0]], [[1.0, 3.0], [2.0, 2.5], [3.0, 2.0]])
    >>> save_model(model, path, summary={"rows": 3})
    >>> bool((load_model(path).predict([[0.5]]) == model.predict([[0.5]])).all())
    True
    """
    check_is_fitted(model)
    described = ModelSummary.of(model, summary or {}, _versions())
    chosen = _chosen(model)
    if chosen is not model:
        model, described = chosen, replace(described, model=" ".join(repr(chosen).split()))
    encoder = Encoder()
    node = encoder.encode(model, "the model")
    described = replace(described, types=tuple(sorted(encoder.types)))
    try:
        Decoder(encoder.arrays, described.types).decode(node)
    except ValueError as reason:  # such as a lambda, which skops writes but does not read
        raise TypeError(f"a model file cannot hold the model, a {type(model).__name__}: {reason}.") from reason
    write_whole({Path(path): pack({"summary": described.as_dict(), "model": node}, encoder.arrays)})


def _chosen(model: Any) -> Any:
    """Return the model with what a `WiseRegressorCV` has chosen in its place."""
    if isinstance(model, WiseRegressorCV):
        return model.best_estimator_
    if isinstance(model, Pipeline) and isinstance(model.steps[-1][1], WiseRegressorCV):
        *steps, (name, last) = model.steps
        return Pipeline([*steps, (name, last.best_estimator_)])
    return model


def load_model(path: str | os.PathLike[str], *, trusted: Collection[str] | None = None) -> Any:
    """Return the fitted model in a file that `save_model` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : path of the file
    trusted : collection of str, optional
        Types that may be built beside those of decidewise and plain steps of scikit-learn. Without it, a file that
        needs any is refused with a list of them, which is also `read_model_summary(path).types`. Name only types whose
        libraries you trust, in files whose origin you trust: they are built by code that is not made for hostile files.

    Returns
    -------
    fitted estimator

    Raises
    ------
    InputError
        If the file cannot be read, is not a model file, is cut off, damaged or of a newer format, or needs types that
        are not trusted.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from decidewise import GeneralizedLinear
    >>> path = Path(mkdtemp()) / "model.dw"
    >>> save_model(GeneralizedLinear().fit([[0.0], [1.0], [2.0]], [[1.0], [2.0], [3.0]]), path)
    >>> load_model(path).predict([[4.0]]).round(6)
    array([[5.]])
    """
    path = Path(path)
    names = _as_names(trusted)
    header, arrays = unpack(path)
    summary = ModelSummary.from_header(header, path)
    decoder = Decoder(arrays, names)
    try:
        model = decoder.decode(header.get("model"))
        if not callable(getattr(model, "predict", None)):
            raise ValueError("it holds no model")
    except UntrustedTypesError as reason:
        needed = [_printable(name) for name in sorted({*summary.types, *reason.types})]
        raise UntrustedTypesError(
            needed,
            f"{path} needs types that you must trust first: {', '.join(needed)}. If you know where the file comes "
            f"from, pass trusted={needed}.",
        ) from reason
    except (ValueError, RecursionError) as reason:
        raise InputError(f"{path} is not a valid model file: {_printable(str(reason)).rstrip('.')}.") from reason
    if summary.cost_names is not None and found(model, "cost_names_in_") is None:
        model.cost_names_in_ = np.array(summary.cost_names, dtype=object)  # such as of a choice, which is not kept
    if decoder.libraries - {"decidewise"}:
        _warn_of_another_version(model, summary.versions.get("scikit-learn", ""))
    return model


def _warn_of_another_version(model: Any, wrote: str) -> None:
    now = version("scikit-learn")
    if wrote.split(".")[:2] != now.split(".")[:2]:
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=type(model).__name__,
                current_sklearn_version=now,
                original_sklearn_version=_printable(wrote) or "an unknown version",
            ),
            stacklevel=3,
        )


def _printable(text: str) -> str:
    """Return text of a file for a message: short, and without characters that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:300])


def _as_names(trusted: Any) -> frozenset[str]:
    if trusted is None:
        return frozenset()
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(f"trusted must be a list of names of types, such as ['lightgbm.Booster']; got {trusted!r}.")
    return frozenset(trusted)


def _versions() -> dict[str, str]:
    libraries = {name: version(name) for name in _LIBRARIES}
    return {"python": platform.python_version(), "decidewise": decidewise.__version__, **libraries}
