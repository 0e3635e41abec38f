"""Long work in short parts, so that an interrupt, a time limit and a progress bar act within a second.

A compiled kernel hears nothing while it works. So a batch is cut into parts of a fraction of a second (`in_parts`), a
search stops after so many steps and goes on where it was (`search_in_parts`), and the one row that takes longer than
that is searched in a thread of its own, which can be told to give up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.errors import SolverError, TimeLimitReached

IntArray = npt.NDArray[np.int64]
#: Solves rows (n, d) within `steps[0]` steps, counted down there; returns decisions and the first row unsolved, or -1.
Search = Callable[[FloatArray, IntArray], tuple[FloatArray, int]]

#: Seconds that one part should take.
PART = 0.2
#: Numbers in the first part of a batch: even a slow problem answers soon, and a fast one takes its whole batch at once.
FIRST_PART = 2**16

_deadline: ContextVar[float] = ContextVar("deadline", default=np.inf)


@contextmanager
def time_limit(deadline: float) -> Iterator[None]:
    """Raise `TimeLimitReached` from any solve within this context that goes on after `deadline`, on `perf_counter`."""
    token = _deadline.set(min(deadline, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def check_time() -> None:
    """Raise `TimeLimitReached` if the deadline of `time_limit` has passed."""
    if perf_counter() > _deadline.get():
        raise TimeLimitReached("the time is up")


def in_parts(solve: Callable[[FloatArray, FloatArray], object], costs: FloatArray) -> FloatArray:
    """Return the decisions for costs, both (n, d), that `solve` writes: a function that treats each row by itself.

    It is called with rows and the place for their decisions, which are zero before. So no part has to be copied: fresh
    memory takes longer than a fast problem.

    >>> in_parts(np.negative, np.array([[1.0], [2.0]]))
    array([[-1.],
           [-2.]])
    """
    size = max(1, FIRST_PART // costs.shape[1])
    decisions = np.zeros(costs.shape)
    start = 0
    while start < len(costs):
        check_time()
        begin = perf_counter()
        try:
            solve(_writable(costs[start : start + size]), decisions[start : start + size])
        except SolverError as error:
            raise error.at(start + error.row) from error
        start += size
        pace = PART / max(perf_counter() - begin, 1e-9)
        size = max(1, int(size * min(4.0, pace)))
    return decisions


def search_in_parts(search: Search, costs: FloatArray, *, steps: int, most: int) -> tuple[FloatArray, int]:
    """Solve each row by a search that may take long; return decisions and the first row given up, or -1.

    Parameters
    ----------
    steps : int
        About as many as take a part of a second. Rows that together stay within them are searched at once.
    most : int
        After how many a row is given up.
    """
    decisions = np.zeros_like(costs)
    size = max(1, FIRST_PART // costs.shape[1])
    start = 0
    while start < len(costs):
        check_time()
        rows = _writable(costs[start : start + size])
        found, stuck = search(rows, np.array([min(steps, most)]))
        if stuck == 0:  # a row that takes more than a part for itself
            rows = rows[:1]
            found, stuck = _apart(search, rows, np.array([most]))
            if stuck == 0:
                return decisions, start
        done = stuck if stuck > 0 else len(rows)
        decisions[start : start + done] = found[:done]
        start += done
    return decisions, -1


def _apart(search: Search, costs: FloatArray, steps: IntArray) -> tuple[FloatArray, int]:
    """Search in another thread; an interrupt, or the end of the time, takes its steps away and then acts here."""
    answers: list[tuple[FloatArray, int]] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(search(costs, steps))
        except BaseException as error:  # raised again by whoever waits
            errors.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(PART / 4)
            check_time()
    finally:
        while worker.is_alive():
            steps[0] = -1
            worker.join(0.01)
    if errors:
        raise errors[0]
    return answers[0]


def _writable(rows: FloatArray) -> FloatArray:
    """Return rows that may be written to, for which kernels are compiled; nobody does write."""
    return rows if rows.flags.writeable else rows.copy()
