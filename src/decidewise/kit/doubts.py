"""The warning that a problem does not return optimal decisions, said once by work that would repeat it.

A choice scores many models with one problem, some of them in other processes, where a warning would not reach the
caller. Python's own way to collect warnings changes all threads of a process, so it is not used.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from decidewise.kit.errors import OptimalityWarning

_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


def doubt(message: str, *, stacklevel: int) -> None:
    """Warn by an `OptimalityWarning` or, in a context of `collected`, only collect the message."""
    heard = _heard.get()
    if heard is None:
        warnings.warn(message, OptimalityWarning, stacklevel=stacklevel + 1)
    else:
        heard.append(message)


@contextmanager
def collected() -> Iterator[list[str]]:
    """Collect the doubts of this context.

    >>> with collected() as messages:
    ...     doubt("the sense is wrong", stacklevel=1)
    >>> messages
    ['the sense is wrong']
    """
    messages: list[str] = []
    token = _heard.set(messages)
    try:
        yield messages
    finally:
        _heard.reset(token)


@contextmanager
def said_once() -> Iterator[None]:
    """Say only the first doubt of this context, or of the function that this decorates; an error gets it as a note."""
    messages: list[str] = []
    try:
        with collected() as messages:
            yield
    except BaseException as error:
        if messages:
            error.add_note(messages[0])  # which may be the reason
        raise
    if messages:
        doubt(messages[0], stacklevel=4)  # in the line that called the function
