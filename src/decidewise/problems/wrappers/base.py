"""The base class of wrappers: problems that solve another problem, the one inside."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from decidewise.checks import FloatArray
from decidewise.polyhedra import Polyhedron
from decidewise.problems.base import Problem, as_problem

if TYPE_CHECKING:
    from decidewise.problems.wrappers.in_variables import InVariables


class Wrapper(Problem):
    """Delegates to the problem inside; subclasses write `_call`, through which every batch goes.

    Attributes
    ----------
    problem : Problem
        The problem inside.
    """

    _checks_costs = False  # the problem inside does

    def __init__(self, problem: Problem) -> None:
        super().__init__(sense=as_problem(problem).sense)
        self.problem = problem
        self.n_costs, self.n_rows = problem.n_costs, problem.n_rows
        self.is_integer, self.has_known, self.is_lifted = problem.is_integer, problem.has_known, problem.is_lifted
        self.on_error, self.is_polytope = problem.on_error, problem.is_polytope
        self.has_derivative, self.in_time = problem.has_derivative, problem.in_time
        self.keeps_state = self.keeps_state or problem.keeps_state

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the decisions of the problem inside."""
        return self._call("minimize", costs)

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return the optimal vertices of the relaxation of the problem inside."""
        return self._call("minimize_relaxation", costs)

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Return the lifted decisions of the problem inside."""
        return self._call("minimize_lifted", costs)

    def _call(self, method: str, costs: FloatArray) -> FloatArray:
        """Return what a method of the problem inside, such as "minimize", returns for a batch of costs."""
        decisions: FloatArray = getattr(self.problem, method)(costs)
        return decisions

    def derivative(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the derivative of the problem inside."""
        return self.problem.derivative(costs, decisions, vectors)

    @property
    def no_derivative(self) -> str | None:
        """Why the problem inside has no derivative."""
        return self.problem.no_derivative

    def solution(self, costs: Any) -> dict[str, Any]:
        """Return the whole solution of the problem inside."""
        return self.problem.solution(costs)

    @property
    def lifted(self) -> Problem:
        """The same wrapper around the lifted view of the problem inside."""
        return self._around(self.problem.lifted) if self.has_known else self

    @property
    def in_variables(self) -> Problem:
        """The problem inside in its variables, with this wrapper around it; otherwise the lifted view."""
        from decidewise.problems.wrappers.in_variables import InVariables  # noqa: PLC0415  (it derives from this class)

        inside = self.problem.in_variables
        if not isinstance(inside, InVariables):
            return self.lifted
        return self._seen_in_variables(inside)

    def _seen_in_variables(self, inside: InVariables) -> Problem:
        return inside.with_inside(self._around(inside.problem))

    def in_unit(self, unit: float) -> Problem:
        """Return the same wrapper around the problem inside in another unit."""
        return self._around(self.problem.in_unit(unit)) if self.has_known else self

    def take(self, rows: Any) -> Problem:
        """Return the same wrapper around some rows of the problem inside."""
        return self if self.n_rows is None else self._around(self.problem.take(rows))

    def _around(self, problem: Problem) -> Problem:
        twin = copy(self)
        Wrapper.__init__(twin, problem)
        twin.sense = self.sense
        return twin

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The polyhedron of the problem inside."""
        return self.problem.polyhedron

    @property
    def relaxation(self) -> Polyhedron | None:
        """The relaxation of the problem inside."""
        return self.problem.relaxation

    @property
    def no_polyhedron(self) -> str | None:
        """Why the problem inside has no polyhedron."""
        return self.problem.no_polyhedron

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return `polyhedron_at` of the problem inside."""
        return self.problem.polyhedron_at(costs, decisions)
