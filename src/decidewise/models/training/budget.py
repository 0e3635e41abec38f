"""The solver calls and the seconds that a fit may take."""

from __future__ import annotations

import numpy as np

from decidewise.problems.contract import Problem
from decidewise.problems.wrappers import CountedProblem


class Budget:
    """What a fit may take, what it has taken, and what it sets aside for the end.

    Parameters
    ----------
    problem : Problem
    max_solves : int, optional
    deadline : float
        As a time of `perf_counter`; infinite if there is none.

    Attributes
    ----------
    problem : CountedProblem
        The problem to train with: it counts, and its limit is what may be solved now.
    deadline : float
        When to stop for now.
    """

    def __init__(self, problem: Problem, max_solves: int | None, deadline: float) -> None:
        self.problem = CountedProblem(problem)
        self.problem.limit = self.max_solves = np.inf if max_solves is None else max_solves
        self.deadline = deadline

    @property
    def n_solves(self) -> int:
        """The solver calls so far."""
        return self.problem.n_solves

    def set_aside(self, n_solves: int, seconds: float = 0.0) -> None:
        """Keep solver calls and seconds for later; negative numbers release them."""
        self.problem.limit -= n_solves
        self.deadline -= seconds
