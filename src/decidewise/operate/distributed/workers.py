"""The workers of a Dask cluster: blocks of rows and independent calls, computed there with the code that is here."""

from __future__ import annotations

import hashlib
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import decidewise
from decidewise.kit.errors import InputError, OtherCodeError
from decidewise.kit.machine import spread_to

#: Seconds after which a scheduler that does not answer is given up, and between two looks at a task that is not done.
_CONNECT_SECONDS, _LOOK_SECONDS = 10, 5.0


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a Dask scheduler; yield the client.

    The cluster executes what this process sends, and this process unpickles the answers: each must trust the other.
    Raise a `ConnectionError` if nobody answers at the address, and an `ImportError` if Dask is not installed.
    """
    try:
        from distributed import Client  # noqa: PLC0415  (an extra)
        from distributed.comm import get_address_host  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise ImportError("a cluster needs Dask; install it with pip install 'decidewise[dask]'.") from missing
    try:
        # Check the address first. A client with a bad address is closed only by the garbage collector, in any thread,
        # and the lock that it holds can block the next client.
        get_address_host(address)
        client = Client(address, timeout=_timeout())
    except (OSError, ValueError) as reason:
        raise ConnectionError(
            f"no Dask scheduler at {address!r} ({reason}). Check the address, or start one with `dask scheduler`."
        ) from reason
    with client:
        yield client


@contextmanager
def workers_at(address: str, say: Callable[[str], None] | None = None) -> Iterator[Workers]:
    """Connect to a Dask scheduler, and check that its workers have the same code; yield them.

    Parameters
    ----------
    address : str
        Such as "tcp://10.0.0.5:8786".
    say : callable, optional
        Called with a sentence if the cluster has no workers yet.

    Examples
    --------
    Candidates of a `WiseRegressorCV` that is fitted in this context, and rows of a `ParallelProblem`, go to the
    workers; here to one in this process, elsewhere to those at an address such as "tcp://10.0.0.5:8786":

    >>> from distributed import LocalCluster
    >>> from joblib import Parallel, delayed
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as cluster:
    ...     with workers_at(cluster.scheduler_address) as workers, workers.parallel_loops():
    ...         Parallel(n_jobs=-1)(delayed(pow)(2, k) for k in range(4))
    [1, 2, 4, 8]
    """
    with connected(address) as client:
        workers = Workers(client, address, say or (lambda _: None))
        workers.check_code()
        yield workers


@dataclass(frozen=True, eq=False)
class Workers:
    """The workers of a cluster, by a client of its scheduler; `say` is told if there are none."""

    client: Any
    address: str
    say: Callable[[str], None]

    def check_code(self) -> None:
        """Raise if a worker has another version of the code, or none at all."""
        here = code_fingerprint()

        def there() -> str:  # sent as it is, since the worker's own code may lack it
            try:
                return code_fingerprint()
            except ImportError as reason:
                return str(reason)

        with sentences_about(self.address):
            for worker, found in self.client.run(there).items():
                if found != here:
                    raise OtherCodeError(_other_code(worker, found, here))

    @contextmanager
    def parallel_loops(self) -> Iterator[None]:
        """Return a context in which parallel loops, such as over candidates, are spread over the workers."""
        with spread_to(self.starmap, self._n_threads):
            yield

    def map_in_order(
        self, work: Callable[[Any], Any], items: Generator[Any, None, None]
    ) -> Generator[tuple[Any, Any], None, None]:
        """Yield items with the results of `work` on each, in order; close it, also after an error.

        As many items as the workers have threads, and as many again, are on their way at a time.
        """
        try:
            results = self._results(_call, work, ((item, (item,)) for item in items))
            yield from results
        finally:
            items.close()

    def starmap(self, function: Callable[..., Any], shared: Any, tasks: Iterable[tuple]) -> Iterator[Any]:
        """Yield `function(shared, *task)` for each task, in order."""
        for _, result in self._results(function, shared, ((None, task) for task in tasks)):
            yield result

    def _results(
        self, function: Callable[..., Any], shared: Any, tasks: Iterable[tuple[Any, tuple]]
    ) -> Iterator[tuple[Any, Any]]:
        running: deque[tuple[Any, Any]] = deque()
        here = code_fingerprint()
        with sentences_about(self.address), _large_tasks_are_fine():
            # As the result of a task, it is made again if the worker that holds it is lost; what is scattered is not.
            everywhere = self.client.submit(_itself, shared, pure=False)
            try:
                for item, task in tasks:
                    future = self.client.submit(_checked, here, function, everywhere, task, pure=False)
                    running.append((item, future))
                    while len(running) > 2 * max(1, self._n_threads()):
                        yield self._next(running)
                while running:
                    yield self._next(running)
            finally:
                self._cancel([future for _, future in running])

    def _next(self, running: deque[tuple[Any, Any]]) -> tuple[Any, Any]:
        item, future = running.popleft()
        warned, looked = False, time.monotonic()
        while not future.done():
            try:
                future.result(timeout=_LOOK_SECONDS)
            except TimeoutError:
                pass
            except Exception:  # raised again below, if it is the task's
                break
            if not warned and time.monotonic() - looked > _LOOK_SECONDS and not self._n_threads():
                self.say(f"the cluster at {self.address} has no workers; waiting for some.")
                warned = True
        return item, future.result()

    def _n_threads(self) -> int:
        return sum(self.client.nthreads().values())

    def _cancel(self, futures: list[Any]) -> None:
        if futures and self.client.status == "running":
            self.client.cancel(futures)


@contextmanager
def sentences_about(address: str) -> Iterator[None]:
    """Return a context whose errors about the cluster at an address say what to do."""
    from distributed import KilledWorker  # noqa: PLC0415  (an extra)

    try:
        yield
    except KilledWorker as reason:
        raise InputError(
            f"the task {reason.task} was given up: every worker that began it died, often for lack of memory. Give "
            "the workers more memory or fewer threads each, or make the partitions smaller."
        ) from reason
    except (CancelledError, OSError) as reason:
        if isinstance(reason, OSError) and reason.errno is not None:
            raise
        raise ConnectionError(
            f"lost the Dask scheduler at {address!r}. Connect to it, or to another one, and start again; a fit with a "
            "checkpoint continues where it was."
        ) from reason
    except (ModuleNotFoundError, AttributeError) as reason:
        if "decidewise" not in str(reason):
            raise
        raise OtherCodeError(
            f"a worker cannot load the work ({reason}): it has another decidewise. Install the same one "
            "everywhere, and start again."
        ) from reason


@cache
def code_fingerprint() -> str:
    """Return the versions of Python, NumPy and scikit-learn, and a hash of all modules of decidewise, as one text."""
    package = Path(decidewise.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(f"{file.relative_to(package).as_posix()}\0".encode())
        digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    python = ".".join(map(str, sys.version_info[:2]))
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scikit-learn"))
    return f"decidewise {digest.hexdigest()[:12]} on Python {python}, {libraries}"


def check_same_code(here: str) -> None:
    """Raise, in a worker, unless its code is that of the process that sent the work."""
    found = code_fingerprint()
    if found != here:
        raise OtherCodeError(_other_code(_own_address(), found, here))


def _other_code(worker: str, found: str, here: str) -> str:
    return (
        f"the worker {worker} has other code ({found}) than this process ({here}). Install the same versions "
        "everywhere, restart the workers, and start again."
    )


def _own_address() -> str:
    from distributed import get_worker  # noqa: PLC0415  (an extra)

    try:
        return str(get_worker().address)
    except ValueError:
        return "here"


def _checked(here: str, function: Callable[..., Any], shared: Any, task: tuple) -> Any:
    check_same_code(here)
    return function(shared, *task)


def _itself(shared: Any) -> Any:
    return shared


def _call(work: Callable[[Any], Any], item: Any) -> Any:
    return work(item)


def _timeout() -> float:
    import dask  # noqa: PLC0415  (an extra)
    from dask.utils import parse_timedelta  # noqa: PLC0415

    return min(_CONNECT_SECONDS, parse_timedelta(dask.config.get("distributed.comm.timeouts.connect")))


@contextmanager
def _large_tasks_are_fine() -> Iterator[None]:
    """Return a context without Dask's warning about large tasks: rows travel to workers that may not see the files."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield
