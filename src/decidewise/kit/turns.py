"""One caller at a time, for code of others that threads cannot share."""

from __future__ import annotations

from threading import RLock
from typing import Any


class Turns:
    """A lock that can be pickled and copied; a copy is a lock of its own.

    >>> from copy import deepcopy
    >>> turns = Turns()
    >>> with turns:
    ...     deepcopy(turns) is turns
    False
    """

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return Turns, ()
