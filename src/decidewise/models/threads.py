"""Threads of our own in place of those of BLAS."""

from __future__ import annotations

from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


class OneLibraryThread:
    """A context in which BLAS runs on one thread, and that gives the number it had before.

    With one library thread for each thread of our own, NumPy's elementwise work, half of the time, runs in parallel
    too. Several threads may be inside at once: the first to enter sets the limit, the last to leave lifts it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._n_threads = 1
        self._blas: ThreadpoolController | None = None
        self._limit: Any = None

    def __enter__(self) -> int:
        with self._lock:
            if self._n_inside == 0:
                # Kept, since it takes milliseconds to find the libraries and microseconds to limit them. OpenMP is left
                # alone: its number belongs to a thread, and the last to leave may be another.
                self._blas = self._blas or ThreadpoolController().select(user_api="blas")
                self._n_threads = max((library["num_threads"] for library in self._blas.info()), default=1)
                self._limit = self._blas.limit(limits=1)
            self._n_inside += 1
            return self._n_threads

    def __exit__(self, *reason: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limit.restore_original_limits()


one_library_thread = OneLibraryThread()
