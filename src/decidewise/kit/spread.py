"""Independent calls, spread over threads or processes of this machine, or, in a context, over those of others."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeAlias, TypeVar

from decidewise.kit.interrupts import begin_worker, forget_noted, held_from_children
from decidewise.kit.library_threads import one_library_thread

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

    Parameters
    ----------
    n_jobs : int, optional
        As in scikit-learn. In a context of `spread_to` it does not matter.
    by_copy : bool
        Whether large arrays are sent by copy. Otherwise they are mapped as files that are read only.

    Examples
    --------
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
