"""Compiled functions that a machine, a signal or a damaged file cannot turn against the user.

`kernel` is Numba's `njit`, but for four things:

- nothing is compiled, and Numba is not even imported, before the first call;
- compiled code is kept on disk where that is possible. Where it is not (a read-only package without a home, a full
  disk), it is compiled in memory, with one warning; a damaged file is replaced. It is never stale: a function is
  compiled anew when a kernel that it calls or a constant that it uses has changed, in whatever file that stands;
- an interrupt is an interrupt: a signal that lands inside a kernel would otherwise surface as a `SystemError`;
- a line on standard error says what is going on when compiling takes more than a second.

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
        self.targetoptions = options  # where Numba looks whether to inline a kernel into its caller

    def __call__(self, *args: Any) -> Any:
        """Run the compiled function; an inner one runs as Python, since only other kernels get at its code."""
        if self.targetoptions.get("no_cpython_wrapper"):
            return self.py_func(*args)
        try:
            return self.compiled(*args)
        except SystemError as error:
            # The handler of a signal raised while the results were turned into Python objects, one after the other.
            cause: BaseException = error
            while isinstance(cause, SystemError) and cause.__cause__ is not None:
                cause = cause.__cause__
            raise cause from None

    @cached_property
    def compiled(self) -> Any:
        """Numba's dispatcher, which compiles for the types of its arguments."""
        from decidewise.runtime.compilation import dispatcher  # noqa: PLC0415  (without a kernel nobody waits for Numba)

        with _making:  # so that threads which come at the same time compile once
            return self.__dict__.get("compiled") or dispatcher(self.py_func, self.targetoptions, self.stamp)

    @property
    def _numba_type_(self) -> Any:
        """What a kernel is to another one that calls it."""
        return self.compiled._numba_type_

    @property
    def stamp(self) -> str:
        """A hash of all that the compiled code depends on: the function's own file, and what it uses of others."""
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

    Other threads go on meanwhile (`nogil`), so that progress bars move while a kernel works. An `inner` kernel is one
    that only other kernels call: without a way in from Python it compiles in half the time.
    """
    # Nobody calls a kernel from C, and the code for that takes time to compile.
    options = {"nogil": True, "no_cfunc_wrapper": True, **options}
    if inner:
        options["no_cpython_wrapper"] = True
    return Kernel(function, options) if function else lambda given: Kernel(given, options)


def _ingredients(function: FunctionType, seen: set[FunctionType]) -> Iterator[str]:
    """Yield the source of a function's file, the constants that it names, and the same of the kernels that it calls."""
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
