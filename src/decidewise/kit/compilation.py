"""How `kernels` are compiled: by Numba, with a cache on disk where that is possible, and a message if it takes long."""

from __future__ import annotations

import gc
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from multiprocessing import parent_process
from types import FunctionType
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.compiler import Flags as NumbaFlags
from numba.core.types import unliteral  # type: ignore[attr-defined]

#: Seconds of compiling after which a message is printed.
PATIENCE = 1.0


def dispatcher(function: FunctionType, options: Mapping[str, Any], stamp: str) -> Any:
    """Return a function that compiles `function` for the types of its arguments; it ignores code of another stamp."""
    made = njit(**options)(function)
    if made is not function:  # Numba returns the function itself if its JIT compiler is disabled
        _register_watch()
        made.get_call_template = partial(_resolve, made.get_call_template)
        made._compiler._customize_flags = Flags
        try:
            made._cache = KernelCache(function, stamp)
        except RuntimeError as reason:  # no folder beside the source, in the user's cache or in NUMBA_CACHE_DIR
            if os.path.exists(function.__code__.co_filename):  # code typed at a prompt is never cached
                _warn(reason)
    return made


def _resolve(resolve: Callable[..., Any], args: Sequence[Any], kws: dict[str, Any]) -> Any:
    """Resolve a call from another kernel by the types of numbers; Numba would also compile it for literal values."""
    return resolve([unliteral(arg) for arg in args], kws)


class Flags(NumbaFlags):
    """Numba's options of one compilation, compared fast: for each expression of a kernel it compares them many times.

    >>> Flags(NumbaFlags()) == Flags() == NumbaFlags(), hash(Flags()) == hash(NumbaFlags())
    (True, True)
    """

    __slots__ = ()
    _hash = hash(NumbaFlags())

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, NumbaFlags) and self._values == other._values) or super().__eq__(other)


class KernelCache(FunctionCache):
    """Numba's cache of one function, made safe against damaged files and full disks."""

    def __init__(self, function: FunctionType, stamp: str) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = stamp

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature, or None if there is none that can be used."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling a damaged file can raise anything: recompile, and replace the file
            with suppress(OSError):
                os.unlink(self._cache_file._index_path)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled code for a signature; if that fails, warn and stop caching this function."""
        try:
            super().save_overload(sig, data)
        except OSError as reason:
            self.disable()
            _warn(reason)


_warned = threading.Event()


def _warn(reason: Exception) -> None:
    """Warn, once per process, that compiled code cannot be cached."""
    if not _warned.is_set():
        _warned.set()
        warnings.warn(
            f"compiled code cannot be cached ({reason}), so each process spends seconds on compiling it again. Set "
            "NUMBA_CACHE_DIR to a writable folder.",
            RuntimeWarning,
            stacklevel=4,
        )


@cache
def _register_watch() -> None:
    event.register("numba:compile", watch)


class Watch(event.Listener):
    """Sees when a kernel of decidewise, with all kernels that it calls, is compiled.

    If that takes long, it prints to standard error which module is compiled. Meanwhile no garbage is collected: Numba
    makes many objects that live to the end, and looking through them again and again took a fifth of the time.
    """

    def __init__(self) -> None:
        self.silent = False  # set by callers that show the progress of compiling themselves
        self.depth = 0
        self.timer: threading.Timer | None = None
        self.collected = False

    def on_start(self, event: Any) -> None:
        """Start the timer of the message and pause the collector, if the outermost function belongs to decidewise."""
        self.depth += 1
        module = event.data["dispatcher"].py_func.__module__ or ""
        if self.depth > 1 or not module.startswith("decidewise."):
            return
        if gc.isenabled():
            self.collected = True
            gc.disable()
        if not self.silent and parent_process() is None:  # workers would repeat the messages of the main process
            self.timer = threading.Timer(PATIENCE, _print_message, [module.removeprefix("decidewise.")])
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        """Undo both when the outermost function is compiled."""
        self.depth -= 1
        if self.depth > 0:
            return
        if self.collected:
            self.collected = False
            gc.enable()
        if self.timer:
            self.timer.cancel()


watch = Watch()


def _print_message(module: str) -> None:
    if sys.stderr is not None:
        line = f"decidewise: compiling {module} for this machine, once (`decidewise warmup` compiles everything) ..."
        print(line, file=sys.stderr, flush=True)
