"""One thread of BLAS per thread of ours while many of ours compute at once, and one of OpenMP for small fits."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController


class _OneLibraryThread:
    """A context in which BLAS runs on one thread; its value is the number of threads that BLAS had before.

    With one BLAS thread in each thread of ours, NumPy's elementwise operations, half of the time, run in parallel too.
    Any number of threads may enter the context at once. The limit holds for the whole process: the first thread to
    enter sets it and the last to leave lifts it, so that no thread takes the limit for the original number.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0

    def __enter__(self) -> int:
        with self._lock:
            if self._n_inside == 0:
                self._n_threads = max((library["num_threads"] for library in _libraries().info()), default=1)
                self._limit = _blas().limit(limits=1)
                self._release()
            self._n_inside += 1
            return self._n_threads

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limit.restore_original_limits()
                self._release()

    @staticmethod
    def _release() -> None:
        """Let any thread set the next limit: since threadpoolctl 3.8, only the thread that set the last one may."""
        for library in _blas().lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread()


_one_library_thread = _OneLibraryThread()


def one_library_thread() -> AbstractContextManager[int]:
    """Return the context in which BLAS runs on one thread; its value is the number of threads that BLAS had before."""
    return _one_library_thread


def one_openmp_thread() -> AbstractContextManager[object]:
    """Return a context in which OpenMP runs on one thread in the thread that enters it; others are not affected."""
    return _openmp().limit(limits=1)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # cached: finding the libraries takes milliseconds, limiting them microseconds


@cache
def _blas() -> ThreadpoolController:
    # Without OpenMP: its number of threads belongs to the thread that sets it, so the last thread to leave could not
    # restore that of the first.
    return _libraries().select(user_api="blas")


@cache
def _openmp() -> ThreadpoolController:
    # Not selected from the libraries above: those that use OpenMP are often loaded later than BLAS.
    return ThreadpoolController().select(user_api="openmp")
