"""Run tasks in several processes of this machine.

This calls loky directly. joblib takes tasks from their iterator in a background thread, where an error, such as a full
disk, would leave the run waiting forever.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from itertools import islice
from typing import Any

from joblib import parallel_config
from joblib.externals.loky import ProcessPoolExecutor

from decidewise.kit.interrupts import begin_worker, deferred, held_from_children, raise_noted

#: Seconds between two checks for a signal.
_POLL_SECONDS = 0.2
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
     "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)  # fmt: skip


@contextmanager
def processes(jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield a parallel `starmap(function, tasks)` with results in any order; its processes end with the block."""

    def starmap(function: Callable[..., Any], tasks: Iterator[tuple]) -> Iterator[Any]:
        running: set[Future] = set()
        while True:
            with held_from_children():  # `submit` may start a worker
                # Few tasks are taken ahead, to leave the rest to other runs.
                running |= {executor.submit(_task, function, *task) for task in islice(tasks, 2 * jobs - len(running))}
            if not running:
                return
            done, running = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            raise_noted()
            yield from (future.result() for future in done)

    with deferred():
        executor = ProcessPoolExecutor(jobs, initializer=begin_worker, initargs=(os.getpid(),), env=_ONE_THREAD)
        try:
            yield starmap
        finally:
            executor.shutdown(kill_workers=True)  # do not wait for unfinished tasks


def _task(function: Callable[..., Any], *arguments: Any) -> Any:
    with parallel_config("threading", n_jobs=1):  # parallel loops inside a task start no processes
        return function(*arguments)
