"""Rows of different size: a problem of which each row has only some of the items."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, as_array, as_matrix
from decidewise.problems.contract import Problem, as_problem, check_rows
from decidewise.problems.views import View
from decidewise.solvers import Polyhedron


class PresentItems(View):
    """Let each row have only some of the items: the decision of an item that is absent is zero.

    Today's jobs, customers or offers differ in number. Rows are as wide as the largest, or have one entry for each item
    that there is on any day; `present` says which of them a row has. Absent items have costs of zero, also in
    training, so that they add nothing to the size of a row; what is predicted for them is ignored. Everything else,
    also the rule for ties, is that of the problem of the present items alone.

    Parameters
    ----------
    problem : Problem
        `TopK`, which needs `k` present items, so pass `k` by row if there are fewer; `Knapsack`; `Levels`, where an
        absent item has no level at all, and other levels may be absent too; `Assignment`, where rows and columns are
        absent as a whole, and as many pairs are assigned as the smaller side has; `LinearProgram` and
        `QuadraticProgram`, whose bounds must allow zero.
    present : array-like of bool, of shape (n, n_costs)
        Whether each row has each item, at least one.

    Examples
    --------
    >>> from decidewise.problems import Knapsack, PresentItems, TopK
    >>> two = PresentItems(TopK(4, 2), [[True, True, True, True], [True, False, True, False]])
    >>> two.solve([[3.0, 5.0, 4.0, 1.0], [3.0, 5.0, 4.0, 1.0]])
    array([[0., 1., 1., 0.],
           [1., 0., 1., 0.]])
    >>> two.take([1]).solve([-3.0, 0.0, -4.0, 0.0])  # whatever the present items are worth
    array([1., 0., 1., 0.])
    >>> PresentItems(Knapsack([1.0, 2.0, 3.0], 3.0), [[True, True, False]]).solve([1.0, 1.0, 9.0])
    array([1., 1., 0.])
    """

    def __init__(self, problem: Problem, present: Any) -> None:
        present = _as_present(present, as_problem(problem))
        restricted = getattr(problem, "_with_present", None)
        if restricted is None:
            raise ValueError(
                f"{type(problem).__name__} does not know absent items; TopK, Knapsack, Levels, Assignment, "
                "LinearProgram and QuadraticProgram do. Other wrappers, such as KnownCosts, go around PresentItems."
            )
        super().__init__(restricted(present))
        self._set_present(present)

    def _set_present(self, present: BoolArray) -> None:
        self.present, self.n_rows = present, len(present)

    def _around(self, problem: Problem) -> Problem:
        twin = cast("PresentItems", super()._around(problem))
        twin._set_present(self.present)
        return twin

    def take(self, rows: Any) -> Problem:
        """Return the problem of some rows, with their present items."""
        twin = cast("PresentItems", super()._around(self.problem.take(rows)))
        twin._set_present(self.present[rows])
        return twin

    def _call(self, method: str, costs: FloatArray) -> FloatArray:
        check_rows(self, len(costs))
        n_items = self.present.shape[1]  # lifted costs have one more
        known = np.where(self.present, costs[:, :n_items], 0.0)
        return super()._call(method, np.column_stack([known, costs[:, n_items:]]))

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return the relaxed decisions, where the region of the problem inside has no absent items itself."""
        if self.is_integer and self.problem.n_rows is None:
            return Problem.minimize_relaxation(self, costs)  # which says that there is no polyhedron
        return self._call("minimize_relaxation", costs)

    def as_costs(self, values: Any, *, name: str = "costs", realised: bool = False) -> FloatArray:
        """Return costs, zero for absent items, of costs that have zero, NaN or, if predicted, anything there."""
        values = as_array(values, name=name)
        if values.shape[-1:] == self.present.shape[1:] and values.ndim in (2, 3):
            check_rows(self, len(values))
            present = self.present if values.ndim == 2 else self.present[:, np.newaxis]
            if realised and values.ndim == 2 and (given := ~present & (values != 0) & ~np.isnan(values)).any():
                row, item = np.argwhere(given)[0]
                raise ValueError(
                    f"{name} has {values[row, item]:g} for item {item} of row {row}, which is absent "
                    f"({int(given.sum())} such entries in all). Leave zero or NaN there, or say that it is present."
                )
            values = np.where(present, values, 0.0)
        costs = self.problem.as_costs(values, name=name, realised=realised)
        check_rows(self, len(costs))
        return np.where(self.present, costs, 0.0)

    @property
    def polyhedron(self) -> Polyhedron | None:
        """None, since the region differs by row."""
        return None

    @property
    def relaxation(self) -> Polyhedron | None:
        """None, since the region differs by row."""
        return None

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return None, since the region differs by row."""
        return None

    @property
    def in_variables(self) -> Problem:
        """The lifted view, since the region differs by row."""
        return self.lifted


def _as_present(present: Any, problem: Problem) -> BoolArray:
    marks = np.asarray(present)
    if marks.dtype != bool and not (marks.dtype.kind in "iuf" and np.isin(marks, (0, 1)).all()):
        raise ValueError("present must be True where a row has the item and False where not, or 1 and 0.")
    as_matrix(marks, name="present", n_columns=problem.n_costs, owner=type(problem).__name__)
    marks = marks.astype(bool)
    check_rows(problem, len(marks))
    empty = np.flatnonzero(~marks.any(axis=1))
    if len(empty):
        raise ValueError(
            f"row {empty[0]} has no item that is present ({len(empty)} such rows in all), so there is nothing to "
            "decide. Leave it out."
        )
    return marks
