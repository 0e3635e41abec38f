"""The base class of wrappers: problems that solve another problem, the one inside."""

from __future__ import annotations

from typing import Any

from decidewise.checks import FloatArray
from decidewise.polyhedra import Polyhedron
from decidewise.problems.base import Problem, as_problem


class Wrapper(Problem):
    """Delegates to the problem inside; subclasses write `minimize` and may override `minimize_relaxation`.

    Attributes
    ----------
    problem : Problem
        The problem inside.
    """

    _checks_costs = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super(Problem, cls).__init_subclass__(**keywords)  # no check of `minimize`: the problem inside has one

    def __init__(self, problem: Problem) -> None:
        super().__init__(sense=as_problem(problem).sense)
        self.problem = problem
        self.n_costs = problem.n_costs
        self.is_integer = problem.is_integer
        self.keeps_state = self.keeps_state or problem.keeps_state

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return the optimal vertices of the relaxation of the problem inside."""
        return self.problem.minimize_relaxation(costs)

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The polyhedron of the problem inside."""
        return self.problem.polyhedron

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return `polyhedron_at` of the problem inside."""
        return self.problem.polyhedron_at(costs, decisions)
