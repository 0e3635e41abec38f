"""Ctrl-C and SIGTERM end a run, whatever code they land in.

A signal raises `KeyboardInterrupt`, but there is code that wraps it into another exception or swallows it: compiled
code, callbacks, trainings that keep what they have, anything a user writes. So a signal is also noted, and whoever has
something to store asks first (`raise_noted`). Where workers compute, a signal is only noted, here and in the workers,
to which a terminal sends it too: nothing breaks into the midst of starting or feeding them, and one process acts.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_noted: list[int] = []
_deferred = threading.Event()


class Terminated(KeyboardInterrupt):
    """SIGTERM has come: like Ctrl-C, but asked for by another process."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Have SIGTERM act as Ctrl-C does, and note both; outside the main thread, which alone gets signals, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    # A shell has its background jobs ignore Ctrl-C; a handler that is not Python's own could not be put back.
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, _note)
    hook = sys.unraisablehook

    def unless_noted(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):  # swallowed in a finalizer: no news to the user
            hook(unraisable)

    sys.unraisablehook = unless_noted
    try:
        yield
    except KeyboardInterrupt:
        raise_noted()  # as what it was: on its way it may have lost its kind
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
        _noted.clear()


@contextmanager
def deferred() -> Iterator[None]:
    """Only note signals meanwhile; `raise_noted` says when they may act."""
    _deferred.set()
    try:
        yield
    finally:
        _deferred.clear()


def raise_noted() -> None:
    """Raise if a signal has come."""
    if _noted:
        raise Terminated if signal.SIGTERM in _noted else KeyboardInterrupt


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an exception is an interrupt, or was raised because of one.

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


@contextmanager
def held_from_children() -> Iterator[None]:
    """Have processes that are started meanwhile get no signal before they call `begin_worker`: it would end them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows, where one that has just begun may be hit
        yield
        return
    from multiprocessing import resource_tracker  # noqa: PLC0415  (only where there are children)

    resource_tracker.ensure_running()  # a process that goes with the others, and whose start unblocks the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker(parent: int) -> None:
    """Have this process note signals only, for its parent to act on, and end when the parent does, even if killed."""
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
