"""A property that is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class once(Generic[Value]):  # noqa: N801 - it is used like `property`
    """A property that is computed at first use and then kept, as `functools.cached_property`.

    That one holds a lock for all objects of a class while it computes, before Python 3.12. Fits that wait for each
    other, each in its thread, would wait forever.

    >>> class Circle:
    ...     @once
    ...     def area(self):
    ...         print("computing")
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area + circle.area
    computing
    6.28
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self.function, self.name = function, function.__name__
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]
        value = vars(instance)[self.name] = self.function(instance)
        return value
