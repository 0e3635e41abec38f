"""Known costs for any problem, such as tolls on the edges of a shortest path."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from decidewise.kit.checks import FloatArray, as_array, as_matrix, as_vector, check_range
from decidewise.problems.contract import Problem, check_rows, sign_of
from decidewise.problems.views import InVariables, Lifted, View, in_unit, is_lifted, polyhedron_at
from decidewise.solvers import Polyhedron


class KnownCosts(View):
    """Add known costs to the predicted ones, entry by entry: the objective is `(c + known)·w`.

    The rule for ties is that of the problem inside, for the sum of the costs. Sums are rounded, so that decisions which
    cost the same in exact arithmetic may not be tied in float64.

    Parameters
    ----------
    problem : Problem
    known : array-like of shape (n_costs,) or (n, n_costs)
        The known costs, in the problem's own sense: one vector for all rows, or one row per sample. With one row per
        sample the problem has `n_rows = n`.

    Attributes
    ----------
    known : ndarray
        The known costs to be minimised: if the problem maximises, minus those given.

    Examples
    --------
    >>> from decidewise.problems import KnownCosts, TopK
    >>> cheapest = TopK(3, 1, sense="min")
    >>> KnownCosts(cheapest, [0.0, 3.0, 0.0]).solve([[2.0, 1.0, 4.0], [9.0, 1.0, 5.0]])
    array([[1., 0., 0.],
           [0., 1., 0.]])
    >>> by_row = KnownCosts(cheapest, [[0.0, 3.0, 0.0], [0.0, 9.0, 0.0]])
    >>> by_row.solve([[2.0, 1.0, 4.0], [9.0, 1.0, 5.0]])
    array([[1., 0., 0.],
           [0., 0., 1.]])
    >>> by_row.take([1]).solve([9.0, 1.0, 5.0])
    array([0., 0., 1.])
    """

    def __init__(self, problem: Problem, known: Any) -> None:
        super().__init__(problem)
        known = as_array(known, name="known")
        if known.ndim == 1:
            known = as_vector(known, name="known", length=self.n_costs)
        else:
            known = as_matrix(known, name="known", n_columns=self.n_costs, owner=type(problem).__name__)
            if self.n_rows not in (None, len(known)):
                raise ValueError(
                    f"known has {len(known)} rows, and {type(problem).__name__} differs by row and has {self.n_rows}; "
                    "row i of both must belong to the same sample."
                )
        self._set_known(-known if self.sense == "max" else known.copy())

    def _set_known(self, known: FloatArray) -> None:
        """Keep known costs to be minimised, (n_costs,) or (n, n_costs)."""
        self._known, self.has_known = known, True
        self.n_rows = self.problem.n_rows if known.ndim == 1 else len(known)

    @property
    def known(self) -> FloatArray:
        """The known costs as they were given, (n_costs,) or (n, n_costs)."""
        return -self._known if self.sense == "max" else self._known

    def _with(self, problem: Problem, known: FloatArray) -> Problem:
        twin = cast("KnownCosts", self._around(problem))
        twin._set_known(known)
        return twin

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Minimise the sum of the predicted and the known costs."""
        return self.problem.minimize(self._total(costs))

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Minimise the sum of the predicted and the known costs over the relaxation."""
        return self.problem.minimize_relaxation(self._total(costs))

    def solution(self, costs: Any) -> dict[str, Any]:
        """Return the whole solution of the problem inside for the sum of the costs."""
        costs = as_array(costs, name="costs")
        sign = sign_of(self)
        total = sign * self._total(sign * np.atleast_2d(costs))
        return self.problem.solution(total[0] if costs.ndim == 1 else total)

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Minimise the predicted costs plus the last one times the known costs."""
        return self.minimize_lifted_by("minimize", costs)

    def minimize_lifted_by(self, method: str, costs: FloatArray) -> FloatArray:
        """Return lifted decisions by a method of the problem inside, which may have known costs of its own."""
        known, inside = self.known_for(costs), self.problem.lifted
        total = self._total(costs[:, :-1], costs[:, -1:])
        if is_lifted(inside):
            total = np.column_stack([total, costs[:, -1]])
        decisions = getattr(inside, method)(total)
        values = (known * decisions[:, : self.n_costs]).sum(axis=1)
        if is_lifted(inside):
            values += decisions[:, -1]
        return np.column_stack([decisions[:, : self.n_costs], values])

    def _total(self, costs: FloatArray, factors: FloatArray | float = 1.0) -> FloatArray:
        """Return the costs plus the known ones times a factor for each row; raise if a sum is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = costs + factors * self.known_for(costs)
        check_range(total, "the sum of its predicted and known costs", "they")
        return total

    def known_for(self, costs: FloatArray) -> FloatArray:
        """Return the known costs, to be minimised, after a check of the number of rows."""
        check_rows(self, len(costs))
        return self._known

    @property
    def lifted(self) -> Problem:
        """The lifted view, which has a polyhedron if the problem inside has one."""
        return _LiftedSum(self)

    def _seen_in_variables(self, inside: InVariables) -> Problem:
        if self._known.ndim == 2:
            return self.lifted
        return InVariables(inside.problem, inside.matrix, inside.known + self._known @ inside.matrix)

    def in_unit(self, unit: float) -> Problem:
        """Return the same problem with known costs in another unit."""
        return self._with(in_unit(self.problem, unit), self._known / unit)

    def take(self, rows: Any) -> Problem:
        """Return the problem of some rows, with their known costs."""
        if self.n_rows is None:
            return self
        return self._with(self.problem.take(rows), self._known if self._known.ndim == 1 else self._known[rows])

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return `polyhedron_at` of the problem inside, for the sum of the costs."""
        return polyhedron_at(self.problem, self._total(costs), decisions)


class _LiftedSum(Lifted):
    """The lifted view of `KnownCosts`: the region of the problem inside, and one more variable, `known·w`."""

    problem: KnownCosts

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Minimise the predicted costs plus the last one times the known costs over the relaxation."""
        return self.problem.minimize_lifted_by("minimize_relaxation", costs)

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The polyhedron of the problem inside with one more variable; None if known costs differ by row."""
        return self._with_known_part(self.problem.polyhedron)

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return `polyhedron_at` of the problem inside with one more variable."""
        total = self.problem._total(costs[:, :-1], costs[:, -1:])
        return self._with_known_part(polyhedron_at(self.problem.problem, total, decisions[:, :-1]))

    def _with_known_part(self, polyhedron: Polyhedron | None) -> Polyhedron | None:
        known = self.problem._known
        if polyhedron is None or self.problem.problem.has_known or known.ndim == 2:
            return None
        A_ub, A_eq = (hstack([A, csr_array((A.shape[0], 1))]) for A in (polyhedron.A_ub, polyhedron.A_eq))
        definition = csr_array(np.append(known, -1.0)[np.newaxis])  # known·w - t = 0
        return Polyhedron(
            A_ub=csr_array(A_ub),
            b_ub=polyhedron.b_ub,
            A_eq=csr_array(vstack([A_eq, definition])),
            b_eq=np.append(polyhedron.b_eq, 0.0),
            lower=np.append(polyhedron.lower, -np.inf),
            upper=np.append(polyhedron.upper, np.inf),
        )
