"""A limit on the solver calls and the seconds of one fit."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from decidewise.errors import TimeLimitReached
from decidewise.problems.base import Problem
from decidewise.problems.wrappers.counted import CountedProblem


class OutOfBudget(Exception):  # noqa: N818  (it ends training; nothing went wrong)
    """The next batch would take more solver calls than there are left."""


class Budget(CountedProblem):
    """A problem that refuses to be solved more than `max_solves` times, less what is reserved, or after a deadline.

    Parameters
    ----------
    problem : Problem
    max_solves : int, optional
    deadline : float
        By `perf_counter`; infinite for none.
    """

    def __init__(self, problem: Problem, max_solves: int | None, deadline: float) -> None:
        super().__init__(problem)
        self.max_solves = np.inf if max_solves is None else max_solves
        self.deadline = deadline
        self.reserve = 0

    def count(self, n_solves: int) -> None:
        """Count, or raise `OutOfBudget` or `TimeLimitReached` before anything is solved."""
        self.check_time()
        self.check_calls(n_solves)
        super().count(n_solves)

    def check_calls(self, n_solves: int) -> None:
        """Raise `OutOfBudget` unless there are this many calls left."""
        if self.n_solves + n_solves > self.max_solves - self.reserve:
            raise OutOfBudget

    def check_time(self) -> None:
        """Raise `TimeLimitReached` after the deadline."""
        if perf_counter() > self.deadline:
            raise TimeLimitReached("max_seconds are over")
