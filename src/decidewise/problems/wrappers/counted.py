"""Count what a solver is asked for, and how long it takes."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from decidewise.checks import FloatArray
from decidewise.problems.base import Problem
from decidewise.problems.wrappers.base import Wrapper


class CountedProblem(Wrapper):
    """Solve as `problem` does, and count.

    Wrap the solver itself, inside a cache, to count what is solved; wrap the cache to count what is asked for.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    n_solves : int
        The rows solved since the beginning, those of relaxations and of batches that failed included.
    seconds : float
        The time spent on them.

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

    def count(self, n_solves: int) -> None:
        """Add solver calls that are about to be made."""
        self.n_solves += n_solves

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Pass the batch on, and count its rows."""
        return self._counted(self.problem.minimize, costs)

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Pass the batch on, and count its rows: a relaxation is a solver call too."""
        return self._counted(self.problem.minimize_relaxation, costs)

    def _counted(self, minimize: Callable[[FloatArray], FloatArray], costs: FloatArray) -> FloatArray:
        self.count(len(costs))
        start = perf_counter()
        try:
            return minimize(costs)
        finally:
            self.seconds += perf_counter() - start
