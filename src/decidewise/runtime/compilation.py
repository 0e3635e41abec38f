"""How `kernels` are compiled: by Numba, kept on disk as long as that works, and announced where it takes long."""

from __future__ import annotations

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
from numba.core.types import unliteral  # type: ignore[attr-defined]

#: Seconds of compiling after which a line says so.
PATIENCE = 1.0


def dispatcher(function: FunctionType, options: Mapping[str, Any], stamp: str) -> Any:
    """Return a function that compiles `function` for the types of its arguments; code of another stamp is not used."""
    made = njit(**options)(function)
    if made is not function:  # as it is where Numba is switched off
        _announce()
        made.get_call_template = partial(_resolve, made.get_call_template)
        try:
            made._cache = KernelCache(function, stamp)
        except RuntimeError as reason:  # no folder beside the source, in the user's cache or in NUMBA_CACHE_DIR
            if os.path.exists(function.__code__.co_filename):  # what was typed at a prompt is never kept
                _warn(reason)
    return made


def _resolve(resolve: Callable[..., Any], args: Sequence[Any], kws: dict[str, Any]) -> Any:
    """Compile a call from another kernel for a number's type; Numba would compile it for a literal a second time."""
    return resolve([unliteral(arg) for arg in args], kws)


class KernelCache(FunctionCache):
    """Numba's cache of one function, which neither a bad file nor a full disk can break."""

    def __init__(self, function: FunctionType, stamp: str) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = stamp

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature, or None where there is none to be used."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # anything can come from unpickling a damaged file: it is compiled anew and replaced
            with suppress(OSError):
                os.unlink(self._cache_file._index_path)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled code for a signature, if that is possible."""
        try:
            super().save_overload(sig, data)
        except OSError as reason:
            self.disable()
            _warn(reason)


_warned = threading.Event()


def _warn(reason: Exception) -> None:
    """Warn that compiled code cannot be kept, the first time."""
    if not _warned.is_set():
        _warned.set()
        warnings.warn(
            f"compiled code cannot be kept ({reason}), so every process compiles for itself, which takes seconds. Set "
            "NUMBA_CACHE_DIR to a folder that can be written to.",
            RuntimeWarning,
            stacklevel=4,
        )


@cache
def _announce() -> None:
    """Have compiling that takes long announced, by the first process only, since workers would repeat it."""
    if parent_process() is None:
        event.register("numba:compile", announcer)


class Announcer(event.Listener):
    """Says on standard error what is compiled, after a while; the kernels that it calls are compiled meanwhile."""

    def __init__(self) -> None:
        self.silent = False  # for whoever shows the progress of compiling in another way
        self.depth = 0
        self.clock: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """Set the clock for a line, if the function is one of ours."""
        module = event.data["dispatcher"].py_func.__module__ or ""
        if self.depth == 0 and module.startswith("decidewise.") and not self.silent:
            self.clock = threading.Timer(PATIENCE, _say, [module.removeprefix("decidewise.")])
            self.clock.daemon = True
            self.clock.start()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Stop the clock with the outermost function."""
        self.depth -= 1
        if self.depth == 0 and self.clock:
            self.clock.cancel()


announcer = Announcer()


def _say(module: str) -> None:
    if sys.stderr is not None:
        line = f"decidewise: compiling {module} for this machine, once (`decidewise warmup` prepares everything) ..."
        print(line, file=sys.stderr, flush=True)
