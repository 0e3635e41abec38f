"""Calls of an estimator that fail leave it unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Return a context that restores the attributes of an estimator if it ends in an error.

    The values of the attributes are not copied, so they must not be changed in place.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
