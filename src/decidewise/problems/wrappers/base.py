"""A problem around a problem: the same region, with something added to how it is solved."""

from __future__ import annotations

from typing import Any

from decidewise.checks import FloatArray, as_problem
from decidewise.polyhedra import Polyhedron
from decidewise.problems.base import Problem


class Wrapper(Problem):
    """Delegates everything to the problem inside; subclasses write `minimize`.

    Attributes
    ----------
    problem : Problem
        The problem inside.
    """

    #: Whether solving changes the object, so that a copy in another process would go its own way.
    keeps_state: bool = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super(Problem, cls).__init_subclass__(**keywords)  # past the check of `minimize`: the problem inside has one

    def __init__(self, problem: Problem) -> None:
        super().__init__(sense=as_problem(problem).sense)
        self.problem = problem
        self.n_costs = problem.n_costs
        self.is_integer = problem.is_integer
        self.B_S = problem.B_S

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The polyhedron of the problem inside."""
        return self.problem.polyhedron

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return that of the problem inside."""
        return self.problem.polyhedron_at(costs, decisions)
