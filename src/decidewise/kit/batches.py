"""Long work in short parts, so that an interrupt, a time limit and a progress bar act within a second.

A compiled kernel cannot be interrupted while it runs. So `in_parts` cuts a batch into parts that take a fraction of a
second each. `search_in_parts` stops a search after a number of steps and continues at the first unsolved row; a row
that takes more steps than that is searched in a thread of its own, which can be stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.errors import TimeLimitReached, at_rows

Answer = TypeVar("Answer")
#: Solves rows (n, d) in at most `steps[0]` steps, counting `steps[0]` down; returns decisions and the first unsolved
#: row, or -1. It is also given the same rows of what differs by row.
Search = Callable[..., tuple[FloatArray, int]]

#: The target duration of one part, in seconds.
PART = 0.2
#: Entries in the first part of a batch: few enough for a slow problem, and for a fast one often the whole batch.
FIRST_PART = 2**16

_deadline: ContextVar[float] = ContextVar("deadline", default=np.inf)


@contextmanager
def time_limit(deadline: float) -> Iterator[None]:
    """Raise `TimeLimitReached` from any solve in this context that runs past `deadline`, a time of `perf_counter`."""
    token = _deadline.set(min(deadline, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def check_time() -> None:
    """Raise `TimeLimitReached` if the deadline of `time_limit` has passed."""
    if perf_counter() > _deadline.get():
        raise TimeLimitReached("the time is up")


def seconds_left() -> float:
    """Return the seconds until the deadline of `time_limit`, infinite if there is none."""
    return _deadline.get() - perf_counter()


def in_parts(solve: Callable[..., object], costs: FloatArray, *by_row: npt.NDArray[Any]) -> FloatArray:
    """Call `solve` on one part of the rows after another, and return the decisions for all costs: (n, d) -> (n, d).

    `solve(rows, decisions, *parts)` treats each row independently and writes into `decisions`, which start as zeros;
    `parts` are the same rows of the arrays `by_row`, which have one row per sample. It writes in place because
    allocating memory for each part would take longer than solving a fast problem.

    >>> in_parts(np.negative, np.array([[1.0], [2.0]]))
    array([[-1.],
           [-2.]])
    """
    decisions = np.zeros(costs.shape)
    if costs.size <= FIRST_PART:  # a batch of a training step
        check_time()
        solve(_writable(costs), decisions, *map(_writable, by_row))
        return decisions
    size = max(1, FIRST_PART // costs.shape[1])
    start = 0
    while start < len(costs):
        check_time()
        begin = perf_counter()
        part = slice(start, start + size)
        with at_rows(range(start, len(costs))):
            solve(_writable(costs[part]), decisions[part], *(_writable(values[part]) for values in by_row))
        start += size
        pace = PART / max(perf_counter() - begin, 1e-9)
        size = max(1, int(size * min(4.0, pace)))
    return decisions


def search_in_parts(
    search: Search, costs: FloatArray, *by_row: npt.NDArray[Any], steps: int, max_steps: int
) -> tuple[FloatArray, int]:
    """Solve each row by a search that may take long; return decisions and the first row it gave up on, or -1.

    So many `steps` take a fraction of a second; rows that need no more together are searched in one call. After
    `max_steps` the search gives up on a row.
    """
    decisions = np.zeros_like(costs)
    size = max(1, FIRST_PART // costs.shape[1])
    start = 0
    while start < len(costs):
        check_time()
        rows = _writable(costs[start : start + size])
        own = [_writable(values[start : start + size]) for values in by_row]
        found, stuck = search(rows, np.array([min(steps, max_steps)]), *own)
        if stuck == 0:  # this row alone takes longer than one part
            rows = rows[:1]
            found, stuck = _search_in_thread(search, rows, np.array([max_steps]), *(values[:1] for values in own))
            if stuck == 0:
                return decisions, start
        done = stuck if stuck > 0 else len(rows)
        decisions[start : start + done] = found[:done]
        start += done
    return decisions, -1


def in_thread(work: Callable[[], Answer], stop: Callable[[], object]) -> Answer:
    """Return `work()`, done in another thread; on an interrupt or at the time limit, `stop` it, wait, and raise.

    The work must end soon after a call of `stop`, and hold Python's global lock for fractions of a second only.

    >>> in_thread(lambda: 6 * 7, stop=lambda: None)
    42
    """
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # raised again in the calling thread
            errors.append(error)

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(PART / 4)
            check_time()
    finally:
        while worker.is_alive():
            stop()
            worker.join(0.01)
    if errors:
        raise errors[0]
    return answers[0]


def _search_in_thread(
    search: Search, costs: FloatArray, steps: IntArray, *by_row: npt.NDArray[Any]
) -> tuple[FloatArray, int]:
    """Search in another thread, which setting its steps to -1 stops."""

    def stop() -> None:
        steps[0] = -1

    return in_thread(lambda: search(costs, steps, *by_row), stop)


def _writable(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return writable rows: kernels are compiled for writable arrays, although they do not write to these."""
    return rows if rows.flags.writeable else rows.copy()
