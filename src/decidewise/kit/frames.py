"""Frames of whatever library the caller uses, without importing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray


def is_frame(values: Any) -> bool:
    """Whether this is a frame of pandas or polars, or an Arrow table."""
    return hasattr(values, "columns") and (hasattr(values, "to_numpy") or hasattr(values, "column_names"))


def frame_like(given: Any, values: FloatArray, names: Sequence[str]) -> Any:
    """Return values (n, d) as a frame of the kind of the given one, with its index; as they are if it is no frame.

    >>> import pandas as pd
    >>> frame_like(pd.DataFrame({"x": [1, 2]}, index=["mon", "tue"]), np.eye(2), ["a", "b"])
           a    b
    mon  1.0  0.0
    tue  0.0  1.0
    """
    if not is_frame(given):
        return values
    if hasattr(given, "index"):  # pandas
        return type(given)(values, index=given.index, columns=list(names))
    columns = {name: np.ascontiguousarray(values[:, j]) for j, name in enumerate(names)}
    make = getattr(type(given), "from_pydict", type(given))  # Arrow, or polars
    return make(columns)
