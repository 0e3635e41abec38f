"""Run plans: compute the missing cells in parallel, and store each row as soon as it is done."""

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

from decidewise.kit.checks import as_integer
from decidewise.kit.errors import InputError, OtherCodeError
from decidewise.kit.interrupts import interruptible, raise_noted
from decidewise_bench.experiments.cells import Cell, cells_of, check_names, compute
from decidewise_bench.experiments.cluster import workers_of
from decidewise_bench.experiments.display import display
from decidewise_bench.experiments.periodic import repeated
from decidewise_bench.experiments.plan import Plan
from decidewise_bench.experiments.processes import processes
from decidewise_bench.experiments.rows import Row
from decidewise_bench.experiments.store import LEASE, Store
from decidewise_bench.experiments.version import code_version, library_versions

#: Larger numbers are refused: they are more likely a typing mistake than intended.
MAX_CELLS, MAX_JOBS = 1_000_000, 1_000


def cells_of_all(
    plans: Sequence[Plan], *, trials: int | None = None, version: str | None = None, libraries: str | None = None
) -> list[Cell]:
    """Return the cells of several plans, ordered by trial so that all tables fill evenly.

    Parameters
    ----------
    trials : int, optional
        The number of trials, in place of the number in each plan.
    version : str, optional
        The version of the code; by default the current one.
    libraries : str, optional
        The versions of the libraries; by default the installed ones.

    Examples
    --------
    >>> from decidewise_bench.experiments import read_plan
    >>> from decidewise_bench.paper import PLANS
    >>> cells = cells_of_all([read_plan(PLANS / "knapsack.toml")])
    >>> len(cells), cells[0].trial, cells[-1].trial
    (2160, 0, 19)
    """
    names = [plan.name for plan in plans]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two plans are called {name!r}; rename one of the files, or run them separately.")
    if trials is not None:
        trials = as_integer(trials, name="trials")
    chosen = [plan if trials is None else msgspec.structs.replace(plan, trials=trials) for plan in plans]
    if (n_cells := sum(plan.n_cells for plan in chosen)) > MAX_CELLS:
        raise InputError(f"the plans have {n_cells:,} cells, more than {MAX_CELLS:,}; ask for fewer trials.")
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

    This imports, and so executes, the modules that the plans name: run only plans you trust. If another run is
    computing some of the cells, this one waits for their rows. Ctrl-C and SIGTERM end the run with a
    `KeyboardInterrupt`. A row is stored whole or not at all, and an interrupt is never stored as a failure.

    Parameters
    ----------
    jobs : int
        The number of worker processes. -1: one per core. 1: no workers, this process computes.
    cluster : str, optional
        The address of a Dask scheduler, to use its workers instead. They must have the same decidewise and libraries.
    anew : {"failed", "all"}, optional
        Compute these cells again. Each keeps its old row until the new one is stored. After an interrupt, a run without
        this argument computes only what is left; a run with "all" computes every cell again.
    console : rich.console.Console, optional
        The console on which to show the progress of the run.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from decidewise_bench.experiments import Method, Plan, PlannedProblem, Store
    >>> paths = PlannedProblem(
    ...     name="paths",
    ...     data="decidewise.data:make_shortest_path",
    ...     degrees=(2,),
    ...     samples=(50,),
    ...     test_samples=100,
    ...     methods=(Method(name="WISE", loss="wise", mode="exact"),),
    ... )
    >>> cells = cells_of_all([Plan(name="mine", problems=(paths,), trials=1)])
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "rows.sqlite"))
    ...     run(cells, store, jobs=1)
    ...     [row] = store.rows(cells)
    >>> row.status, row.n_solves, 0 < row.regret < 20
    ('ok', 0, True)
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
        # Local workers have stored their rows by now. Remote workers cannot write to the local file, so add theirs.
        for done, rows in starmap(_work, _tasks(missing, store, name, write=write)):
            idle = False
            for cell, row in zip(done, rows, strict=True):
                store.add(cell, row)
            store.release(name, done)
        if idle:
            time.sleep(1.0)
        raise_noted()


def _tasks(cells: Sequence[Cell], store: Store, name: str, *, write: bool) -> Iterator[tuple]:
    """Yield the arguments of `_work` for each draw of data; the cells are claimed only when their draw is taken."""
    draws: dict[Any, list[Cell]] = {}
    for cell in cells:
        draws.setdefault(cell.draw, []).append(cell)
    for together in draws.values():
        if free := store.claim(together, name):
            yield free, store if write else None


def _work(cells: Sequence[Cell], store: Store | None) -> tuple[Sequence[Cell], list[Row]]:
    """Compute the cells of one draw in a worker; return them with their rows."""
    here = code_version(cells[0].modules, cells[0].folder), library_versions()
    for has, began in zip(here, (cells[0].version, cells[0].libraries), strict=True):
        if has != began:
            raise OtherCodeError(
                f"a worker has {has}, but the run began with {began}. Either a file was edited during the run, or the "
                "cluster is not up to date. Start again, with the same code and libraries everywhere."
            )
    rows = []
    for cell, row in zip(cells, compute(cells), strict=True):
        rows.append(row)
        if store:
            store.add(cell, row)
    return cells, rows


def _number_of_jobs(jobs: int, cells: Sequence[Cell]) -> int:
    """Return the number of worker processes, at most one per draw of data (but at least 2 if several were asked for).

    1 means that this process computes.
    """
    if as_integer(jobs, name="jobs", minimum=-sys.maxsize) == 0 or abs(jobs) > MAX_JOBS:
        raise InputError(f"jobs must be from 1 to {MAX_JOBS}, or -1 for one per core; got jobs={jobs}.")
    wanted = int(effective_n_jobs(jobs))
    return min(wanted, max(2, len({cell.draw for cell in cells})))


def _check_names(cells: Sequence[Cell]) -> None:
    """Import what the plans name; raise if something is missing, before any cell is computed or replaced."""
    kinds = {(cell.plan, cell.problem, cell.method.name, cell.method.mode): cell for cell in cells}
    for (plan, problem, method, _), cell in kinds.items():
        try:
            check_names(cell)
        except InputError as error:
            raise InputError(f"{plan}, {problem}, {method}: {error}") from error


@contextmanager
def _heartbeat(store: Store, name: str) -> Iterator[None]:
    """Send heartbeats that keep the claims of a run alive, and release the claims at its end."""
    try:
        with repeated(partial(store.record_heartbeat, name), seconds=LEASE / 6):
            yield
    finally:
        store.release(name)


@contextmanager
def _workers(jobs: int, cluster: str | None, say: Callable[[str], None]) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield a `starmap(function, tasks)` of the cluster, of local processes, or of this process; see `processes`."""
    if cluster is not None:
        with workers_of(cluster, say) as starmap:
            yield starmap
    elif jobs > 1:
        with processes(jobs) as starmap:
            yield starmap
    else:
        yield itertools.starmap
