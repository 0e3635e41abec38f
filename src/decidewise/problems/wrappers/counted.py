"""A counter of solver calls and of the time they take."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import SolveLimitReached
from decidewise.problems.contract import Problem
from decidewise.problems.views import View


class CountedProblem(View):
    """Count the rows solved by a problem, and the seconds that takes.

    With a cache, `CachedProblem(CountedProblem(problem), ...)` counts the rows solved, and
    `CountedProblem(CachedProblem(problem, ...))` counts all rows.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    n_solves : int
        The number of rows solved so far, including relaxations and batches that failed.
    seconds : float
        The time spent on solving them.
    limit : float
        The largest `n_solves`, infinite unless set. A batch that would exceed it is not solved: it raises
        `SolveLimitReached`. So does one after the deadline of a time limit, with `TimeLimitReached`.

    Examples
    --------
    >>> import numpy as np
    >>> from decidewise.problems import CountedProblem, TopK
    >>> problem = CountedProblem(TopK(4, 2))
    >>> decisions = problem.solve(np.eye(4))
    >>> problem.n_solves, problem.seconds > 0
    (4, True)
    """

    keeps_state = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.n_solves = 0
        self.seconds = 0.0
        self.limit = np.inf

    def check_limit(self, n_solves: int) -> None:
        """Raise `SolveLimitReached` unless this many rows can still be solved."""
        if self.n_solves + n_solves > self.limit:
            raise SolveLimitReached(f"{n_solves} rows more than {self.n_solves} exceed the limit of {self.limit:g}")

    def _call(self, method: str, costs: FloatArray) -> FloatArray:
        return self.counted(getattr(self.problem, method), costs)

    def counted(self, minimize: Callable[[FloatArray], FloatArray], costs: FloatArray) -> FloatArray:
        """Count the rows of a batch and solve them."""
        check_time()  # a user's problem need not look at the clock
        self.check_limit(len(costs))
        self.n_solves += len(costs)
        start = perf_counter()
        try:
            return minimize(costs)
        finally:
            self.seconds += perf_counter() - start

    def _around(self, problem: Problem) -> Problem:
        return _CountedPart(self, problem)


class _CountedPart(View):
    """Some rows of a counted problem, or its lifted view: what it solves counts there."""

    def __init__(self, owner: CountedProblem, problem: Problem) -> None:
        super().__init__(problem)
        self.owner, self.sense, self.keeps_state = owner, owner.sense, True

    def _call(self, method: str, costs: FloatArray) -> FloatArray:
        return self.owner.counted(getattr(self.problem, method), costs)
