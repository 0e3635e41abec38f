"""The region of a linear program: constraints and bounds, some of them by row, and the polyhedron of its decisions."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.problems.contract import Problem
from decidewise.problems.mapped_problem import MappedProblem, taken
from decidewise.problems.mapped_problem.arguments import as_map, count_rows
from decidewise.problems.views import InVariables
from decidewise.solvers import Polyhedron
from decidewise.solvers.program import Program

#: What of a region may differ by row.
_SIDES = ("b_ub", "b_eq", "lower", "upper")


class PolyhedralProblem(MappedProblem):
    """A problem over `A_ub w <= b_ub`, `A_eq w = b_eq`, `lower <= w <= upper`, with whole numbers or without.

    A subclass calls `_set_region` and minimises. What is kept of the region, its bounds by row and its whole numbers is
    in `_region`, `_bounds` and `_whole`.
    """

    faces: Literal["flat", "curved", "unknown"] = "flat"

    def _set_region(self, region: Polyhedron, known: FloatArray) -> None:
        """Keep constraints, bounds and known costs, to be minimised; what differs by row has one more axis in front."""
        self._region, self._known = region, known
        self.has_known = bool(known.any() or self._offset)
        sides = {name: getattr(region, name) for name in _SIDES}
        self.n_rows = count_rows(**sides, known=known)
        by_row = count_rows(**sides)
        # Every row as bounds of columns and rows, which is what HiGHS is told.
        self._bounds = None
        if by_row is not None:
            wide = {name: np.broadcast_to(side, (by_row, side.shape[-1])) for name, side in sides.items()}
            self._bounds = Program.of(replace(region, **wide))
        size = np.maximum(np.abs(region.lower), np.abs(region.upper))
        self.B_S = float(np.linalg.norm(abs(self._map) @ (size.max(axis=0) if size.ndim == 2 else size)))

    def _program(self, *, relaxed: bool = False) -> Program:
        """Return the program, or one as wide as that of all rows, with its whole numbers unless `relaxed`."""
        program = Program.of(self._region) if self._bounds is None else self._bounds.widest
        return replace(program, integrality=None if relaxed else self._whole)

    def take(self, rows: Any) -> Self:
        """Return the problem of some rows, with their sides, bounds and known costs."""
        part = super().take(rows)
        if self._bounds is not None:
            part._region = replace(self._region, **{name: taken(getattr(self._region, name), rows) for name in _SIDES})
            part._bounds = self._bounds.take(rows)
        return part

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The region (or relaxation), where every variable has one predicted cost and nothing is known; else None."""
        return None if self.missing else self._region_of_decisions

    @property
    def relaxation(self) -> Polyhedron | None:
        """The constraints without whole numbers, under the same conditions."""
        return None if self._no_relaxation else self._region_of_decisions

    @property
    def in_variables(self) -> Problem:
        """The program in its variables, where there is no polyhedron of its decisions: for CaVE and LAVA."""
        if self.n_rows is not None or self.polyhedron is not None:
            return self.lifted
        twin = copy.copy(self)
        for name in ("_order", "_region_of_decisions", "_spread", "_is_plain"):
            twin.__dict__.pop(name, None)
        twin._map, twin.n_costs = as_map(None, self.names), self.n_variables
        twin._known, twin._offset, twin.has_known = np.zeros(self.n_variables), 0.0, False
        twin.is_integer = self._whole is not None and bool(self._whole.all())
        return InVariables(twin, self._map, self._known)

    @property
    def missing(self) -> dict[str, str]:
        """Why there is no polyhedron, where there is none."""
        why = self._no_relaxation
        if why is None and self._whole is not None and not self.is_integer:
            why = "only some of its variables are in whole numbers"
        return {} if why is None else {"polyhedron": why}

    @property
    def _no_relaxation(self) -> str | None:
        if self._bounds is not None:
            return "its right-hand sides or bounds differ by row"
        if self.has_known:
            return "it has known costs beside the predicted ones"
        if self._order is None:
            return "its decisions are expressions of variables, or leave some variables out"
        return None

    @cached_property
    def _order(self) -> IntArray | None:
        """The variable of each cost, where the map only puts all variables in order."""
        is_order = self._map.shape[0] == self.n_variables and np.all(self._map.data == 1)
        if is_order and np.array_equal(np.sort(self._map.indices), np.arange(self.n_variables)):
            return self._map.indices.astype(np.int64) if np.all(np.diff(self._map.indptr) == 1) else None
        return None

    @cached_property
    def _region_of_decisions(self) -> Polyhedron:
        region, order = self._region, self._order
        return Polyhedron(
            region.A_ub[:, order], region.b_ub, region.A_eq[:, order], region.b_eq, region.lower[order],
            region.upper[order],
        )  # fmt: skip
