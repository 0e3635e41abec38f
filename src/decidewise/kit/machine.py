"""What a machine offers: the memory that is left, the threads of its libraries, and calls spread over its processors.

In a context of `spread_to`, calls are spread over the machines of others instead.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias, TypeVar

from threadpoolctl import ThreadpoolController

from decidewise.kit.interrupts import begin_worker, forget_noted, held_from_children

_PROC, _CGROUP = Path("/proc"), Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Return the bytes that this process may still take: of the machine, of its container and under its own limit.

    >>> available_memory() > 2**20
    True
    """
    return max(0, min(filter(None, (_of_machine(), _of_container(), _under_limit())), default=2**32))


def _of_machine() -> int | None:
    for line in _text(_PROC / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2  # what others hold is not known here
    except (AttributeError, ValueError, OSError):  # Windows
        return None


def _of_container() -> int | None:
    limit, used = (_text(_CGROUP / name).strip() for name in ("memory.max", "memory.current"))
    return max(1, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else None


def _under_limit() -> int | None:
    """Return what is left of the address space and of the data, if they are limited (`ulimit -v`, `ulimit -d`)."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ModuleNotFoundError:
        return None
    used = _text(_PROC / "self" / "statm").split()  # in pages: all, in memory, shared, code, -, data and stack
    limits = [(resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)]
    left = [
        limit - int(used[place]) * resource.getpagesize()
        for kind, place in limits
        if used and (limit := resource.getrlimit(kind)[0]) != resource.RLIM_INFINITY
    ]
    return max(1, min(left)) if left else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


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


Item = TypeVar("Item")
Result = TypeVar("Result")

#: Called as `starmap(function, shared, tasks)`, it yields `function(shared, *task)` for each task, in order.
StarMap: TypeAlias = Callable[[Callable[..., Any], Any, Iterable[tuple]], Iterator[Any]]
_elsewhere: ContextVar[tuple[StarMap, Callable[[], int]] | None] = ContextVar("elsewhere", default=None)


def map_in_order(
    work: Callable[[Item], Result], items: Generator[Item, None, None]
) -> Generator[tuple[Item, Result], None, None]:
    """Yield items with the results of `work`, computed by one thread per core, with one BLAS thread each, in order.

    The next item is made meanwhile, in this thread. At most one item more than threads is in memory at once. Close the
    generator, also after an error: it holds threads, and the limit on those of BLAS.

    >>> list(map_in_order(abs, (number for number in (3, -4))))
    [(3, 3), (-4, 4)]
    """
    with one_library_thread() as n_threads, ThreadPoolExecutor(n_threads) as workers:
        running: deque[tuple[Item, Future[Result]]] = deque()
        try:
            for item in items:
                running.append((item, workers.submit(work, item)))
                if len(running) > n_threads:
                    done, future = running.popleft()
                    yield done, future.result()
            while running:
                done, future = running.popleft()
                yield done, future.result()
        finally:
            for _, future in running:
                future.cancel()
            items.close()


def spread_calls(
    function: Callable[..., Any], shared: Any, tasks: Iterable[tuple], *, n_jobs: int | None, by_copy: bool = False
) -> Iterator[Any]:
    """Yield `function(shared, *task)` for each task, in order; `shared` travels once to each process that needs it.

    In a context of `spread_to`, `n_jobs` does not matter. Large arrays are mapped as files that are read only, unless
    they are sent `by_copy`.

    >>> list(spread_calls(pow, 2, [(1,), (2,), (3,)], n_jobs=None))
    [2, 4, 8]
    """
    elsewhere = _elsewhere.get()
    if elsewhere is not None:
        return elsewhere[0](function, shared, tasks)
    from joblib import Parallel, delayed, effective_n_jobs  # noqa: PLC0415 - slow to import

    parallel = Parallel(n_jobs=n_jobs, return_as="generator", max_nbytes=None if by_copy else "1M")
    calls = (delayed(_call)(os.getpid(), function, shared, *task) for task in tasks)
    # Here workers start, which Ctrl-C would end with a traceback.
    with held_from_children() if effective_n_jobs(n_jobs) > 1 else nullcontext():
        found: Iterator[Any] = parallel(calls)
    return found


def _call(parent: int, function: Callable[..., Any], shared: Any, *task: Any) -> Any:
    """Return `function(shared, *task)`; in a worker of `parent`, leave signals to that process."""
    if os.getppid() == parent:
        _begin_worker(parent)
        forget_noted()  # workers are kept: a Ctrl-C during an earlier call must not end this one
    return function(shared, *task)


@cache
def _begin_worker(parent: int) -> None:
    begin_worker(parent)


def n_elsewhere() -> int | None:
    """Return how many calls a context of `spread_to` computes at a time; None outside of one."""
    elsewhere = _elsewhere.get()
    return None if elsewhere is None else elsewhere[1]()


@contextmanager
def spread_to(starmap: StarMap, count: Callable[[], int]) -> Iterator[None]:
    """Return a context in which `spread_calls` calls another map, which computes `count()` calls at a time."""
    token = _elsewhere.set((starmap, count))
    try:
        yield
    finally:
        _elsewhere.reset(token)
