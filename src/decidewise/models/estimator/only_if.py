"""Methods that an estimator has only with some parameters, and whose absence is explained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class OnlyIf:
    """A method behind a check; see `only_if`."""

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], object]) -> None:
        self.method, self.check = method, check
        self.__doc__ = method.__doc__

    def __get__(self, owner: Any, of: type | None = None) -> Any:
        if owner is None:
            return self.method
        self.check(owner)
        return self.method.__get__(owner, of)


def only_if(check: Callable[[Any], object]) -> Callable[[Callable[..., Any]], Any]:
    """Make a method available only if `check(estimator)` raises no `AttributeError`, which says what is needed.

    scikit-learn's `available_if` hides this sentence behind "This '...' has no attribute '...'".

    >>> def is_open(door):
    ...     if not door.open:
    ...         raise AttributeError("the door is shut; open it first.")
    >>> class Door:
    ...     open = False
    ...     walk = only_if(is_open)(lambda self: "through")
    >>> hasattr(Door(), "walk")
    False
    >>> Door().walk()
    Traceback (most recent call last):
    AttributeError: the door is shut; open it first.
    """
    return lambda method: OnlyIf(method, check)
