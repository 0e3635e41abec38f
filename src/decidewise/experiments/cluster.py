"""Work sent to a Dask cluster.

This calls Dask itself and not joblib's backend, which waits forever for a task that ends its workers, and spreads the
parallel loops within a task over the cluster, so that their seconds could not be compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any

#: Seconds between two looks for results, and between two looks whether there are workers to wait for.
_LOOK_EVERY, _COUNT_EVERY = 0.05, 5.0


@contextmanager
def workers_of(address: str, say: Callable[[str], None]) -> Iterator[Callable[..., Iterator[Any]]]:
    """Connect to a scheduler; yield a function that maps another over tuples of arguments, in any order.

    The cluster executes what it is sent, and this process unpickles what comes back: each has to trust the other.

    Parameters
    ----------
    address : str
        Such as "tcp://10.0.0.5:8786".
    say : callable
        Called once with a sentence if the cluster has no workers.
    """
    try:
        from distributed import Client, KilledWorker, as_completed  # noqa: PLC0415  (an extra)
        from distributed.comm import get_address_host  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise ImportError("a cluster needs Dask: pip install 'decidewise[dask]'.") from missing
    try:
        # A client that refuses its address is only closed as garbage, in any thread: its lock can stop the next one.
        get_address_host(address)
        client = Client(address)
    except (OSError, ValueError) as reason:
        raise ConnectionError(
            f"no Dask scheduler at {address!r} ({reason}). Check the address, or start one with `dask scheduler`."
        ) from reason

    def wait_for(running: Any) -> Any:
        counted, told = time.monotonic(), False
        while not running.has_ready():
            time.sleep(_LOOK_EVERY)
            if not told and time.monotonic() - counted > _COUNT_EVERY:
                counted = time.monotonic()
                told = not client.nthreads()
                if told:
                    say(f"the cluster at {address} has no workers; waiting for some.")
        return next(running)

    def starmap(function: Callable[..., Any], tasks: Iterator[tuple]) -> Iterator[Any]:
        running = as_completed(loop=client.loop)
        while True:
            # Tasks are drawn late, so that a run shares them with others; counted anew, for workers come and go.
            ahead = max(1, 2 * sum(client.nthreads().values()))
            for task in islice(tasks, max(0, ahead - running.count())):
                running.add(client.submit(function, *task, pure=False))
            if running.is_empty():
                return
            try:
                yield wait_for(running).result()
            except KilledWorker as reason:
                raise BrokenProcessPool(str(reason)) from reason  # as with workers of this machine
            except CancelledError as reason:
                raise ConnectionError(
                    f"the Dask scheduler at {address!r} is gone; the rows so far are kept."
                ) from reason

    with client:
        yield starmap
