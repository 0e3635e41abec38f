"""A problem with known costs, measured in another unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.checks import FloatArray, as_array
from decidewise.problems.base import Problem
from decidewise.problems.lifted import Lifted
from decidewise.problems.wrappers.base import Wrapper
from decidewise.problems.wrappers.in_variables import InVariables


class InUnit(Wrapper):
    """The same problem with all costs, predicted and known, divided by a unit.

    Parameters
    ----------
    problem : Problem
        A problem with `has_known`.
    unit : float
        Positive.
    """

    def __init__(self, problem: Problem, unit: float) -> None:
        super().__init__(problem)
        self.unit = unit

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the decisions of the problem inside for costs in its own unit."""
        return self.problem.minimize(costs * self.unit)

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return the relaxed decisions of the problem inside for costs in its own unit."""
        return self.problem.minimize_relaxation(costs * self.unit)

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Return the lifted decisions, with `b·w` in the unit."""
        units = np.append(np.full(self.n_costs, self.unit), 1.0)
        decisions = self.problem.minimize_lifted(costs * units)
        return decisions / np.append(np.ones(self.n_costs), self.unit)

    def solution(self, costs: Any) -> dict[str, Any]:
        """Return the whole solution of the problem inside for costs in its own unit."""
        return self.problem.solution(as_array(costs, name="costs") * self.unit)

    def _seen_in_variables(self, inside: InVariables) -> Problem:
        return inside.with_known(inside.known / self.unit)

    @property
    def lifted(self) -> Problem:
        """The lifted view in this unit."""
        return Lifted(self)
