"""Why a program has its decision, by duals; or why it has none, by constraints that contradict each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import InfeasibleError
from decidewise.problems.mapped_problem import EMPTY
from decidewise.problems.mapped_problem.arguments import PlaceNames, SideNames
from decidewise.solvers.program import Highs, Program, contradiction

_MOST_NAMED = 6


class EmptyRegionError(ValueError):
    """A region has no point.

    Relax one of the constraints that it names: without any one of them there is a point.

    >>> from decidewise.problems import LinearProgram
    >>> LinearProgram([[1, 1], [-1, -2], [1, 3]], [4, -9, 20], names=["buy", "sell"])
    Traceback (most recent call last):
    decidewise.problems.linear_program.reasons.EmptyRegionError: the region is empty: no decision keeps all constraints
    and bounds. These contradict each other: the bounds of variable 'buy', constraint 0 of A_ub and constraint 1 of
    A_ub. Relax one of them.
    """

    def __init__(self, places: Sequence[int], names: PlaceNames) -> None:
        super().__init__(EMPTY if not places else f"{EMPTY.partition(' Look')[0]} {_contradiction(places, names)}")
        self.places, self.names = places, names

    def with_sides(self, sides: SideNames) -> Self:
        """Return the same error with other names of constraints."""
        return type(self)(self.places, replace(self.names, sides=sides))


def empty_region(program: Program, names: PlaceNames) -> EmptyRegionError:
    """Return the error for an empty region, with a few constraints that contradict each other."""
    return EmptyRegionError(contradiction(program), names)


def with_reason(error: InfeasibleError, program: Program, names: PlaceNames) -> InfeasibleError:
    """Return the error of a row whose region is `program`, with a few constraints that contradict each other."""
    places = contradiction(program)
    if places:
        reason = _contradiction(places, names)
    elif program.integrality is not None:
        reason = "Fractions could keep them: it is whole numbers that cannot."
    else:
        return error
    return InfeasibleError(f"{error.message} {reason}", row=error.row)


def _contradiction(places: Sequence[int], names: PlaceNames) -> str:
    parts = [f"the bounds of {names(place)}" if place < len(names.variables) else names(place) for place in places]
    if len(parts) > _MOST_NAMED:
        parts = [*parts[:_MOST_NAMED], f"{len(parts) - _MOST_NAMED} more"]
    if len(parts) == 1:
        return f"Nothing keeps {parts[0]}: relax them."
    return f"These contradict each other: {', '.join(parts[:-1])} and {parts[-1]}. Relax one of them."


def duals(
    programs: Sequence[Program], objectives: FloatArray, names: PlaceNames, sign: float
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return duals of constraints and reduced costs of variables by name, each (r,), of the objectives (r, n).

    Objectives are to be minimised; `sign` is -1 where the problem maximises. One program stands for all rows.
    """
    n = objectives.shape[1]
    highs = Highs(programs[0])
    found = np.full((len(objectives), n + programs[0].A.shape[0]), np.nan)
    for row, objective in enumerate(objectives):
        if len(programs) > 1:
            highs.set_bounds(programs[row])
        if highs.run(objective):
            solution = highs.solver.getSolution()
            found[row] = sign * np.array(solution.col_dual + solution.row_dual) + 0.0
    by_constraint: dict[str, FloatArray] = {}
    for row, values in enumerate(found[:, n:].T):
        name, turned = names.constraint(row)
        by_constraint[name] = (
            by_constraint.get(name, 0.0) + turned * values
        )  # one of the two sides of a constraint is 0
    return by_constraint, dict(zip(names.variables, found[:, :n].T, strict=True))
