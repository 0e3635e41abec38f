"""Run plans: compute the missing cells in parallel, store each row as it is done."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Literal
from uuid import uuid4

import msgspec
from joblib import effective_n_jobs
from rich.console import Console

from decidewise.checks import as_integer
from decidewise.errors import InputError
from decidewise.experiments.cells import Cell, cells_of, check_names, compute
from decidewise.experiments.cluster import workers_of
from decidewise.experiments.display import display
from decidewise.experiments.periodic import repeated
from decidewise.experiments.plan import Plan
from decidewise.experiments.processes import processes
from decidewise.experiments.rows import Row
from decidewise.experiments.store import LEASE, Store
from decidewise.experiments.version import code_version, library_versions
from decidewise.runtime.interrupts import interruptible, raise_noted

#: More than these is more likely a typing mistake than intended.
MOST_CELLS, MOST_JOBS = 1_000_000, 1_000


class OtherCodeError(InputError):
    """A worker has other code or libraries than the run began with, and rows of two versions must not mix."""


def cells_of_all(
    plans: Sequence[Plan], *, trials: int | None = None, version: str | None = None, libraries: str | None = None
) -> list[Cell]:
    """Return the cells of several plans, trial after trial, so that all tables fill evenly.

    Parameters
    ----------
    trials : int, optional
        Instead of the number in each plan.
    version : str, optional
        The version of the code; by default that of this code.
    libraries : str, optional
        The versions of the libraries; by default those that are installed.
    """
    names = [plan.name for plan in plans]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two plans are called {name!r}; rename one of the files, or run them apart.")
    chosen = [plan if trials is None else msgspec.structs.replace(plan, trials=trials) for plan in plans]
    if (n_cells := sum(plan.n_cells for plan in chosen)) > MOST_CELLS:
        raise InputError(f"the plans have {n_cells:,} cells, more than {MOST_CELLS:,}; ask for fewer trials.")
    libraries = libraries or library_versions()
    cells = [
        cell
        for plan in chosen
        for cell in cells_of(plan, version or code_version(plan.modules, plan.folder), libraries)
    ]
    return sorted(cells, key=lambda cell: cell.trial)


def run(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int = -1,
    cluster: str | None = None,
    anew: Literal["failed", "all"] | None = None,
    console: Console | None = None,
) -> None:
    """Compute all cells that have no row yet, and return when every cell has one.

    The modules that the plans name are imported, and so executed: run only plans you trust. Cells that another run is
    at work on are left to it, and waited for. Ctrl-C and SIGTERM end the run with a `KeyboardInterrupt`; rows are
    stored whole or not at all, and an interrupt is never stored as a failure.

    Parameters
    ----------
    jobs : int
        Number of worker processes; -1 is one per core, 1 is this process itself.
    cluster : str, optional
        Address of a Dask scheduler, to use its workers instead. Their decidewise must be this one.
    anew : {"failed", "all"}, optional
        Compute these cells again. Each keeps its row until the new one is stored; a run that ends before its time is
        continued by one without this argument, and begun again by one with it.
    console : rich.console.Console, optional
        Where to show the progress of the run.
    """
    jobs = _number_of_jobs(jobs, cells)
    name = uuid4().hex
    with interruptible():
        _check_names(cells)
        say = partial(console.print, markup=False) if console else lambda _: None
        with store.held_open(), _heartbeat(store, name), _workers(jobs, cluster, say) as starmap:
            store.drop_stale_claims()
            if anew:
                store.set_aside(cells, only_failed=anew == "failed")
            with display(cells, store, console) if console else nullcontext():
                _compute_missing(cells, store, name, starmap, write=cluster is None)


def _compute_missing(
    cells: Sequence[Cell], store: Store, name: str, starmap: Callable[..., Iterator[Any]], *, write: bool
) -> None:
    while missing := store.missing(cells):
        idle = True
        # Remote workers cannot write to a local file; their rows are added when the whole draw is back.
        for done, rows in starmap(_work, _tasks(missing, store, name, write=write)):
            idle = False
            for cell, row in zip(done, rows, strict=True):
                store.add(cell, row)
            store.release(name, done)
        if idle:
            time.sleep(1.0)
        raise_noted()


def _tasks(cells: Sequence[Cell], store: Store, name: str, *, write: bool) -> Iterator[tuple]:
    """Yield the arguments of `_work` for each draw of data, with the cells that are still free when its turn comes."""
    draws: dict[Any, list[Cell]] = {}
    for cell in cells:
        draws.setdefault(cell.draw, []).append(cell)
    for together in draws.values():
        if free := store.claim(together, name):
            yield free, store if write else None


def _work(cells: Sequence[Cell], store: Store | None) -> tuple[Sequence[Cell], list[Row]]:
    """Compute the cells of one draw, in a worker."""
    here = code_version(cells[0].modules, cells[0].folder), library_versions()
    for has, began in zip(here, (cells[0].version, cells[0].libraries), strict=True):
        if has != began:
            raise OtherCodeError(
                f"a worker has {has}, and the run began with {began}: a file was edited meanwhile, or the cluster is "
                "not up to date. Start again, with the same code and libraries everywhere."
            )
    rows = []
    for cell, row in zip(cells, compute(cells), strict=True):
        rows.append(row)
        if store:
            store.add(cell, row)
    return cells, rows


def _number_of_jobs(jobs: int, cells: Sequence[Cell]) -> int:
    """Return how many processes may work at once, no more than there are draws; one is this process."""
    if as_integer(jobs, name="jobs", minimum=-sys.maxsize) == 0 or abs(jobs) > MOST_JOBS:
        raise InputError(f"jobs must be from 1 to {MOST_JOBS}, or -1 for one per core; got jobs={jobs}.")
    wanted = int(effective_n_jobs(jobs))
    return min(wanted, max(2, len({cell.draw for cell in cells})))


def _check_names(cells: Sequence[Cell]) -> None:
    """Import what the plans name, and raise unless it is there, before anything is computed or replaced."""
    kinds = {(cell.plan, cell.problem, cell.method.name, cell.method.mode): cell for cell in cells}
    for (plan, problem, method, _), cell in kinds.items():
        try:
            check_names(cell)
        except InputError as error:
            raise InputError(f"{plan}, {problem}, {method}: {error}") from error


@contextmanager
def _heartbeat(store: Store, name: str) -> Iterator[None]:
    """Keep the claims of a run alive while it lasts, and give them up at its end."""
    try:
        with repeated(partial(store.record_heartbeat, name), seconds=LEASE / 6):
            yield
    finally:
        store.release(name)


@contextmanager
def _workers(jobs: int, cluster: str | None, say: Callable[[str], None]) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield a function that maps another over tuples of arguments, in parallel and in any order."""
    if cluster is not None:
        with workers_of(cluster, say) as starmap:
            yield starmap
    elif jobs > 1:
        with processes(jobs) as starmap:
            yield starmap
    else:
        yield itertools.starmap
