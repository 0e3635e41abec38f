"""Run tasks on a Dask cluster.

This calls Dask directly. joblib's Dask backend waits forever for a task that kills its workers. It also spreads the
parallel loops inside a task over the cluster, so seconds would not be comparable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any

from decidewise.operate.distributed.workers import connected

#: Seconds between two checks for results, and between two checks whether the cluster has workers.
_POLL_SECONDS, _COUNT_SECONDS = 0.05, 5.0


@contextmanager
def workers_of(address: str, say: Callable[[str], None]) -> Iterator[Callable[..., Iterator[Any]]]:
    """Connect to a scheduler; yield a parallel `starmap(function, tasks)` whose results come in any order.

    The cluster executes what this process sends, and this process unpickles the answers: each must trust the other.

    Parameters
    ----------
    address : str
        Such as "tcp://10.0.0.5:8786".
    say : callable
        Called once with a message if the cluster has no workers.
    """
    with connected(address) as client:
        yield _starmap(client, address, say)


def _starmap(client: Any, address: str, say: Callable[[str], None]) -> Callable[..., Iterator[Any]]:
    from distributed import KilledWorker, as_completed  # noqa: PLC0415  (an extra)

    def wait_for(running: Any) -> Any:
        counted, warned = time.monotonic(), False
        while not running.has_ready():
            time.sleep(_POLL_SECONDS)
            if not warned and time.monotonic() - counted > _COUNT_SECONDS:
                counted = time.monotonic()
                warned = not client.nthreads()
                if warned:
                    say(f"the cluster at {address} has no workers; waiting for some.")
        return next(running)

    def starmap(function: Callable[..., Any], tasks: Iterator[tuple]) -> Iterator[Any]:
        running = as_completed(loop=client.loop)
        while True:
            # Few tasks are taken ahead, to leave the rest to other runs. Workers come and go, so count them each time.
            ahead = max(1, 2 * sum(client.nthreads().values()))
            for task in islice(tasks, max(0, ahead - running.count())):
                running.add(client.submit(function, *task, pure=False))
            if running.is_empty():
                return
            try:
                yield wait_for(running).result()
            except KilledWorker as reason:
                raise BrokenProcessPool(str(reason)) from reason  # the same error as for local workers
            except CancelledError as reason:
                raise ConnectionError(
                    f"lost the Dask scheduler at {address!r}; the rows so far are kept, and the same command continues."
                ) from reason

    return starmap
