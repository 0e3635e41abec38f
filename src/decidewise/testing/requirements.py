"""What the checks are made of: functions that raise an `AssertionError` with a given sentence."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray

#: Differences up to this, relative to the sizes compared, count as rounding.
ROUNDING = 1e-8


def require(holds: Any, sentence: str) -> None:
    """Raise unless `holds` is true."""
    if not holds:
        raise AssertionError(sentence)


def require_rows(right: Any, sentence: Callable[[int], str]) -> None:
    """Raise for the first row of `right` (n, ...) that is not all true."""
    wrong = np.flatnonzero(~right.reshape(len(right), -1).all(axis=1))
    if len(wrong):
        raise AssertionError(f"row {wrong[0]}: {sentence(int(wrong[0]))}")


def require_same(actual: FloatArray, expected: FloatArray, tolerance: float, sentence: str) -> None:
    """Raise for the first row that differs by more than the tolerance, relative to the largest entry of all rows."""
    room = tolerance * max(1.0, float(np.abs(expected).max()))
    require_rows(
        np.abs(actual - expected) <= room,
        lambda row: f"{sentence} Expected {shown_row(expected, row)}; got {shown_row(actual, row)}.",
    )


def require_refusal(error: type[Exception], call: Callable[..., Any], *arguments: Any, sentence: str) -> None:
    """Raise unless the call raises this error."""
    try:
        call(*arguments)
    except error:
        return
    except Exception as reason:
        raise AssertionError(f"{sentence}; it raised {type(reason).__name__}: {reason}") from reason
    raise AssertionError(f"{sentence}; it raised nothing.")


@contextmanager
def require_no_error(owner: Any, sentence: str) -> Iterator[None]:
    """Turn any error of the block into an `AssertionError` that names the class of `owner`."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as reason:
        raise AssertionError(f"{type(owner).__name__} {sentence}: {type(reason).__name__}: {reason}") from reason


def shown_row(array: FloatArray, row: int) -> str:
    """Return the text that shows a row, shortened if long."""
    return np.array2string(array[row], precision=6, threshold=12)


def described(found: Any) -> str:
    """Return a short description of an object, for messages."""
    if isinstance(found, np.ndarray):
        return f"an array of shape {found.shape} and {found.dtype}"
    return f"a {type(found).__name__}"


def pickled(item: Any) -> Any:
    """Return a pickled copy, as another process would get it."""
    return pickle.loads(pickle.dumps(item))  # noqa: S301  (pickled in the same line)
