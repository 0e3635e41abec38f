"""Read ahead in one thread, compute in others, and combine the results in order."""

from __future__ import annotations

import atexit
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from decidewise.kit.library_threads import one_library_thread

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Blocks that are read ahead of the arithmetic.
N_AHEAD = 2
_POLL = 0.1


def read_ahead(items: Iterator[Item], n_ahead: int = N_AHEAD) -> Generator[Item, None, None]:
    """Yield the items, which another thread reads ahead; an error there is raised here, in its place.

    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    ready: queue.Queue[tuple[bool, Any]] = queue.Queue(maxsize=n_ahead)
    stop = threading.Event()

    def put(entry: tuple[bool, Any]) -> bool:
        while not stop.is_set():
            try:
                ready.put(entry, timeout=_POLL)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for item in items:
                if not put((True, item)):
                    return
            put((False, None))
        except BaseException as error:  # raised again in the thread that consumes
            put((False, error))

    reader = threading.Thread(target=read, daemon=True, name="decidewise-reader")

    def end() -> None:
        stop.set()
        reader.join()

    reader.start()
    atexit.register(end)  # a thread that is inside Arrow when the interpreter ends aborts the process
    try:
        while True:
            is_item, value = ready.get()
            if is_item:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        atexit.unregister(end)
        end()


def map_in_order(
    work: Callable[[Item], Result], items: Generator[Item, None, None]
) -> Generator[tuple[Item, Result], None, None]:
    """Yield items with the results of `work`, computed by one thread per core, with one BLAS thread each, in order.

    At most as many items as threads, one more, and those read ahead are in memory at once. Close the generator, also
    after an error: it holds threads, and the limit on those of BLAS.
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
