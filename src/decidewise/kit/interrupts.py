"""Ctrl-C and SIGTERM end a run, whatever code is running.

A signal raises `KeyboardInterrupt`, but some code swallows that exception or wraps it into another one: compiled code,
callbacks, training loops that keep the model trained so far, code of users. So each signal is also recorded, and code
that is about to store a result calls `raise_noted` first. While worker processes run, a signal is only recorded, here
and in the workers (a terminal sends it to them too). So no signal interrupts the start or the feeding of workers, and
only the parent process acts on it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from decidewise.kit.errors import TimeLimitReached

Result = TypeVar("Result")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_noted: list[int] = []
_deferred = threading.Event()


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM: like Ctrl-C, but sent by another process."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM act like Ctrl-C, and record both; do nothing outside the main thread, the only one to get signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    # Keep ignored signals ignored (a shell makes background jobs ignore Ctrl-C), and leave handlers that were not
    # installed from Python (None): they could not be restored.
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, _note)
    hook = sys.unraisablehook

    def unless_noted(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):  # a recorded signal, raised in a finalizer
            hook(unraisable)

    sys.unraisablehook = unless_noted
    try:
        yield
    except KeyboardInterrupt as stop:
        if signal.SIGTERM in _noted and not isinstance(stop, Terminated):  # code on the way replaced it
            raise Terminated(*stop.args) from stop
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
        _noted.clear()


@contextmanager
def deferred() -> Iterator[None]:
    """Only record signals in this context; they act at the next call of `raise_noted`."""
    _deferred.set()
    try:
        yield
    finally:
        _deferred.clear()


def raise_noted() -> None:
    """Raise `KeyboardInterrupt`, or `Terminated` after SIGTERM, if a signal has been recorded."""
    if _noted:
        raise Terminated if signal.SIGTERM in _noted else KeyboardInterrupt


def forget_noted() -> None:
    """Forget the signals that have been recorded."""
    _noted.clear()


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether an exception is an interrupt, or was raised because of one.

    >>> is_interrupt(ValueError()), is_interrupt(KeyboardInterrupt())
    (False, True)
    """
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False


def attempt(act: Callable[[], Result]) -> Result | Exception:
    """Return what a function returns, or the exception that it ends with, such as that of a user's model.

    Interrupts and time limits are raised: they end the work, not one part of it.

    >>> attempt(lambda: 1 / 0)
    ZeroDivisionError('division by zero')
    """
    result: Result | Exception
    try:
        result = act()
    except TimeLimitReached:
        raise
    except Exception as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        result = error
    raise_noted()
    return result


def reason_of(error: BaseException) -> str:
    """Return why something failed, as it is shown.

    >>> reason_of(ValueError("no rows")), reason_of(MemoryError())
    ('ValueError: no rows', 'MemoryError')
    """
    return f"{type(error).__name__}: {error}".removesuffix(": ")


@contextmanager
def held_from_children() -> Iterator[None]:
    """Block signals in processes started in this context until they call `begin_worker`: a signal would end them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows, where a signal can still end a process that has just started
        yield
        return
    from multiprocessing import resource_tracker  # noqa: PLC0415  (needed only with child processes)

    resource_tracker.ensure_running()  # started before the block: starting it later would unblock the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker(parent: int) -> None:
    """Only record signals in this process, since its parent acts on them; exit when the parent ends, even if killed."""
    _deferred.set()
    for number in SIGNALS:
        signal.signal(number, _note)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _note(number: int, _: object) -> None:
    _noted.append(number)
    if not _deferred.is_set():
        raise_noted()
