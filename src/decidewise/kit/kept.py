"""What a class that model files hold says of itself: `_check_kept` raises unless its attributes fit together.

Attributes may come from a file that somebody else wrote, so nothing about them is known when it is called. A class
without the method checks nothing: what does not fit together is then an error of `predict`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def check_kept(value: Any) -> None:
    """Raise a `ValueError`, `TypeError` or `AttributeError` if an object is not as its class says it should be."""
    check = getattr(type(value), "_check_kept", None)  # of the class: an attribute may come from the file
    if check is not None:
        check(value)


def need(fact: bool, otherwise: str) -> None:
    """Raise a `ValueError` that says what must be, unless it is a fact."""
    if not fact:
        raise ValueError(otherwise)


def need_model(model: Any, name: str) -> None:
    """Raise unless an attribute can predict."""
    need(callable(getattr(model, "predict", None)), f"{name} must be a model")


def are_floats(value: Any) -> bool:
    """Whether a value is a number or an array of them, in double precision."""
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype == np.float64)
