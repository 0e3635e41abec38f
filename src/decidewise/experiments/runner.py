"""Run plans: compute the missing cells in parallel, store each row as it is done."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any
from uuid import uuid4

from joblib import Parallel, delayed, parallel_config

from decidewise.experiments.cells import Cell, cells_of, compute
from decidewise.experiments.cluster import workers_of
from decidewise.experiments.plan import Plan
from decidewise.experiments.rows import Row
from decidewise.experiments.store import LEASE, Store
from decidewise.experiments.version import code_version


class OtherCodeError(RuntimeError):
    """A worker has other code than the run began with, and rows of two versions must not mix."""


def cells_of_all(plans: Sequence[Plan], *, trials: int | None = None, version: str | None = None) -> list[Cell]:
    """Return the cells of several plans, trial after trial, so that all tables fill evenly.

    Parameters
    ----------
    trials : int, optional
        Instead of the number in each plan.
    version : str, optional
        The version of the code; by default that of this code.
    """
    names = [plan.name for plan in plans]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two plans are called {name!r}; rename one of the files, or run them apart.")
    chosen = [plan if trials is None else replace(plan, trials=trials) for plan in plans]
    cells = [cell for plan in chosen for cell in cells_of(plan, version or code_version(plan.modules))]
    return sorted(cells, key=lambda cell: cell.trial)


def run(cells: Sequence[Cell], store: Store, *, jobs: int = -1, cluster: str | None = None) -> None:
    """Compute all cells that have no row yet, and return when every cell has one.

    Cells that another run is at work on are left to it, and waited for.

    Parameters
    ----------
    jobs : int
        Number of worker processes; -1 is one a core, 1 is this process itself.
    cluster : str, optional
        Address of a Dask scheduler, to use its workers instead. Their decidewise must be this one.
    """
    name = uuid4().hex
    with store.kept_open(), _signs_of_life(store, name), _workers(jobs, cluster) as starmap:
        while missing := store.missing(cells):
            # Remote workers cannot write to a local file; their rows are added when the whole draw is back.
            tasks = _tasks(missing, store, name, write=cluster is None)
            idle = True
            for done, rows in starmap(_work, tasks):
                idle = False
                for cell, row in zip(done, rows, strict=True):
                    store.add(cell, row)
                store.release(name, done)
            if idle:
                time.sleep(1.0)


def _tasks(cells: Sequence[Cell], store: Store, name: str, *, write: bool) -> Iterator[tuple]:
    """Yield the arguments of `_work` for each draw of data, with the cells that are still free when its turn comes."""
    draws: dict[Any, list[Cell]] = {}
    for cell in cells:
        draws.setdefault(cell.draw, []).append(cell)
    for together in draws.values():
        if free := store.claim(together, name):
            yield free, store if write else None, os.getpid()


def _work(cells: Sequence[Cell], store: Store | None, parent: int) -> tuple[Sequence[Cell], list[Row]]:
    """Compute the cells of one draw, in a worker."""
    if store and os.getpid() != parent:
        _end_with(parent)
    if (version := code_version(cells[0].modules)) != cells[0].version:
        raise OtherCodeError(
            f"a worker has code {version}, and the run began with {cells[0].version}: a file was edited meanwhile, or "
            "the cluster is not up to date. Start again, with the same code everywhere."
        )
    rows = []
    for cell, row in zip(cells, compute(cells), strict=True):
        rows.append(row)
        if store:
            store.add(cell, row)
    return cells, rows


@cache
def _end_with(parent: int) -> None:
    """End this process when its parent is gone, killed perhaps, so that nobody works for a run that is no more."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _signs_of_life(store: Store, name: str) -> Iterator[None]:
    """Keep the claims of a run alive while it lasts, and give them up at its end."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(LEASE / 6):
            store.hear(name)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        store.release(name)


@contextmanager
def _workers(jobs: int, cluster: str | None) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield a function that maps another over tuples of arguments, in parallel and in any order."""
    if cluster is not None:
        with workers_of(cluster) as starmap:
            yield starmap
        return
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
        yield lambda function, tasks: parallel(delayed(function)(*task) for task in tasks)
