"""How `kernels` are compiled: by Numba, with a cache on disk where that is possible, and a message if it takes long."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from multiprocessing import parent_process
from types import FunctionType
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache

#: Seconds of compiling after which a message is printed.
PATIENCE = 1.0


def dispatcher(function: FunctionType, options: Mapping[str, Any], stamp: str) -> Any:
    """Return a function that compiles `function` for the types of its arguments; it ignores code of another stamp."""
    made = njit(**options)(function)
    if made is not function:  # Numba returns the function itself if its JIT compiler is disabled
        _register_watch()
        try:
            made._cache = KernelCache(function, stamp)
        except RuntimeError as reason:  # no folder beside the source, in the user's cache or in NUMBA_CACHE_DIR
            if os.path.exists(function.__code__.co_filename):  # code typed at a prompt is never cached
                _warn(reason)
    return made


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
    """Prints to standard error which module is compiled if a kernel, with all kernels that it calls, takes long."""

    def __init__(self) -> None:
        self.silent = False  # set by callers that show the progress of compiling themselves
        self.depth = 0
        self.timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """Start the timer of the message if the outermost function belongs to decidewise."""
        self.depth += 1
        module = event.data["dispatcher"].py_func.__module__ or ""
        if self.depth > 1 or not module.startswith("decidewise."):
            return
        if not self.silent and parent_process() is None:  # workers would repeat the messages of the main process
            self.timer = threading.Timer(PATIENCE, _print_message, [module.removeprefix("decidewise.")])
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        """Cancel it when the outermost function is compiled."""
        self.depth -= 1
        if self.depth == 0 and self.timer:
            self.timer.cancel()


watch = Watch()


def _print_message(module: str) -> None:
    if sys.stderr is not None:
        line = f"decidewise: compiling {module} for this machine, once (`decidewise warmup` compiles everything) ..."
        print(line, file=sys.stderr, flush=True)
