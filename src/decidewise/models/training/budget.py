"""A limit on the solver calls and the seconds of one fit."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from decidewise.errors import TimeLimitReached
from decidewise.problems.base import Problem
from decidewise.problems.wrappers.counted import CountedProblem


class OutOfBudget(Exception):  # noqa: N818  (it ends training; nothing went wrong)
    """The next batch would take more solver calls than are left."""


class Budget(CountedProblem):
    """A problem that raises before it solves more than `max_solves - reserve` rows, or after a deadline.

    Parameters
    ----------
    problem : Problem
    max_solves : int, optional
    deadline : float
        As a time of `perf_counter`; infinite if there is none.
    """

    def __init__(self, problem: Problem, max_solves: int | None, deadline: float) -> None:
        super().__init__(problem)
        self.max_solves = np.inf if max_solves is None else max_solves
        self.deadline = deadline
        self.reserve = 0

    def count(self, n_solves: int) -> None:
        """Count the rows; raise `OutOfBudget` or `TimeLimitReached` instead of solving them beyond the limits."""
        self.check_time()
        self.check_calls(n_solves)
        self.n_solves += n_solves

    def check_calls(self, n_solves: int) -> None:
        """Raise `OutOfBudget` unless this many solver calls are left."""
        if self.n_solves + n_solves > self.max_solves - self.reserve:
            raise OutOfBudget

    def check_time(self) -> None:
        """Raise `TimeLimitReached` after the deadline."""
        if perf_counter() > self.deadline:
            raise TimeLimitReached("max_seconds are over")
