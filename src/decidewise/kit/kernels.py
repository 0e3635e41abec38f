"""Compiled functions that work on read-only and full disks, with damaged caches and under signals.

`kernel` is Numba's `njit` with four differences:

- nothing is compiled, and Numba is not even imported, before the first call;
- compiled code is cached on disk where possible. Otherwise (a read-only package without a home folder, a full disk) it
  is compiled in memory, with one warning; a damaged file is replaced. The cache is never stale: a function is compiled
  again when a kernel that it calls or a constant that it uses has changed, in any file;
- a signal that arrives inside a kernel raises its own exception; from Numba it would come as a `SystemError`;
- a message on standard error says what is being compiled if that takes more than a second.

>>> import numpy as np
>>> @kernel
... def total(values):
...     result = 0.0
...     for value in values:
...         result += value
...     return result
>>> total(np.array([1.0, 2.0, 3.0]))
6.0
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cached_property, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, overload

_making = threading.RLock()


class Kernel:
    """A function that is compiled when it is first called; see `kernel`."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = options  # Numba reads here whether to inline a kernel into its caller

    def __call__(self, *args: Any) -> Any:
        """Run the compiled function; an inner kernel runs as Python, since only other kernels can call its code."""
        if self.targetoptions.get("no_cpython_wrapper"):
            return self.py_func(*args)
        try:
            return self.compiled(*args)
        except SystemError as error:
            # A signal handler raised while Numba converted the results to Python objects; each conversion can wrap it.
            cause: BaseException = error
            while isinstance(cause, SystemError) and cause.__cause__ is not None:
                cause = cause.__cause__
            raise cause from None

    @cached_property
    def compiled(self) -> Any:
        """Numba's dispatcher, which compiles for the types of its arguments."""
        from decidewise.kit.compilation import dispatcher  # noqa: PLC0415  (Numba is slow to import)

        with _making:  # so that concurrent threads compile once
            return self.__dict__.get("compiled") or dispatcher(self.py_func, self.targetoptions, self.stamp)

    @property
    def _numba_type_(self) -> Any:
        """The Numba type of this kernel, for the kernels that call it."""
        return self.compiled._numba_type_

    @property
    def stamp(self) -> str:
        """A hash of all that the compiled code depends on: the function's own file, and what it uses from others."""
        digest = hashlib.sha256()
        for part in sorted(set(_ingredients(self.py_func, set()))):
            digest.update(part.encode())
        return digest.hexdigest()


@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(*, inner: bool = ..., **options: Any) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(function: Any = None, /, *, inner: bool = False, **options: Any) -> Any:
    """Compile a function when it is first called; the options are those of Numba's `njit`.

    Kernels release the GIL (`nogil`), so that progress bars move while a kernel runs. An `inner` kernel is called only
    by other kernels: without a wrapper for calls from Python it compiles in half the time.
    """
    # Kernels are never called from C, and the wrapper for that takes time to compile.
    options = {"nogil": True, "no_cfunc_wrapper": True, **options}
    if inner:
        options["no_cpython_wrapper"] = True
    return Kernel(function, options) if function else lambda given: Kernel(given, options)


def _ingredients(function: FunctionType, seen: set[FunctionType]) -> Iterator[str]:
    """Yield the source of a function's file, the constants it names, and the same for the kernels that it calls."""
    if function in seen:
        return
    seen.add(function)
    yield _source(function.__code__.co_filename)
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Kernel):
            yield from _ingredients(value.py_func, seen)
        elif isinstance(value, type):
            yield _source(getattr(sys.modules.get(value.__module__), "__file__", None) or "")
        elif isinstance(value, int | float | str | tuple):
            yield f"{name} = {value!r}"


def _source(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):  # typed at a prompt, built in, or inside an archive
        return path
