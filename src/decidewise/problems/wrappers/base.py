"""A problem around a problem: the same region, with something added to how it is solved."""

from __future__ import annotations

from typing import Any

from decidewise.checks import FloatArray
from decidewise.polyhedra import Polyhedron
from decidewise.problems.base import Problem, as_problem


class Wrapper(Problem):
    """Delegates everything to the problem inside; subclasses write `minimize`, and `minimize_relaxation` likewise.

    Attributes
    ----------
    problem : Problem
        The problem inside.
    """

    _checks_costs = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super(Problem, cls).__init_subclass__(**keywords)  # past the check of `minimize`: the problem inside has one

    def __init__(self, problem: Problem) -> None:
        super().__init__(sense=as_problem(problem).sense)
        self.problem = problem
        self.n_costs = problem.n_costs
        self.is_integer = problem.is_integer
        self.on_error = problem.on_error
        self.keeps_state = self.keeps_state or problem.keeps_state

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return what the problem inside does."""
        return self.problem.minimize_relaxation(costs)

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The polyhedron of the problem inside."""
        return self.problem.polyhedron

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return that of the problem inside."""
        return self.problem.polyhedron_at(costs, decisions)
