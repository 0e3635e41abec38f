"""How the checks complain: an `AssertionError` with a sentence."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from decidewise.checks import FloatArray

#: Of the sizes that are compared: more than rounding, less than any mistake.
ROUNDING = 1e-8


def require(holds: Any, sentence: str) -> None:
    """Complain unless something holds."""
    if not holds:
        raise AssertionError(sentence)


def require_rows(right: Any, sentence: Callable[[int], str]) -> None:
    """Complain about the first row (n, ...) in which not everything is right."""
    wrong = np.flatnonzero(~right.reshape(len(right), -1).all(axis=1))
    if len(wrong):
        raise AssertionError(f"row {wrong[0]}: {sentence(int(wrong[0]))}")


def require_same(actual: FloatArray, expected: FloatArray, tolerance: float, sentence: str) -> None:
    """Complain about the first row that differs by more than the tolerance, relative to the largest entry of all."""
    room = tolerance * max(1.0, float(np.abs(expected).max()))
    require_rows(
        np.abs(actual - expected) <= room,
        lambda row: f"{sentence} It was {shown_row(expected, row)}, and is {shown_row(actual, row)}.",
    )


def require_refusal(error: type[Exception], call: Callable[..., Any], *arguments: Any, sentence: str) -> None:
    """Complain unless a call raises this error."""
    try:
        call(*arguments)
    except error:
        return
    except Exception as reason:
        raise AssertionError(f"{sentence}; it raised {type(reason).__name__}: {reason}") from reason
    raise AssertionError(f"{sentence}; it raised nothing.")


@contextmanager
def complaining(owner: Any, sentence: str) -> Iterator[None]:
    """Complain about any error, and say whose it is."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as reason:
        raise AssertionError(f"{type(owner).__name__} {sentence}: {type(reason).__name__}: {reason}") from reason


def shown_row(array: FloatArray, row: int) -> str:
    """Show a row, cut where it is long."""
    return np.array2string(array[row], precision=6, threshold=12)


def described(found: Any) -> str:
    """Describe what came in place of what was expected."""
    if isinstance(found, np.ndarray):
        return f"an array of shape {found.shape} and {found.dtype}"
    return f"a {type(found).__name__}"


def pickled(item: Any) -> Any:
    """Return a copy as another process would get it."""
    return pickle.loads(pickle.dumps(item))  # noqa: S301  (made here, just now)
