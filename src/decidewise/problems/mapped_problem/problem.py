"""Problems over variables `w` of which predicted costs see a linear image `M w`, and known costs another part."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, Self, TypedDict

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.checks import FloatArray, as_array, as_matrix, as_number, check_range
from decidewise.problems.contract import Problem, Sense, as_n_costs, check_rows
from decidewise.problems.mapped_problem.arguments import Costs, as_integrality, as_known, as_map, as_names, count_rows

#: What to say of a region without any point.
EMPTY = (
    "the region is empty: no decision keeps all constraints and bounds. Look for the last constraint added, for a sign "
    "that is the wrong way round, or for a bound that is too tight."
)


class ProgramOptions(TypedDict, total=False):
    """The options of a program of any kind; see `LinearProgram`."""

    integrality: Any
    costs: Costs
    known: Any
    offset: float
    sense: Sense
    names: Sequence[str] | None
    time_limit: float | None
    gap: float
    on_limit: Literal["raise", "best"]
    on_error: Literal["raise", "nan"]
    solver: str | None


class MappedProblem(Problem):
    """Minimise `costs·(M w) + known·w + offset` over a region of `w`; a subclass minimises over the region.

    Parameters
    ----------
    n : int
        The number of variables.
    integrality, costs, known, offset, sense, names
        As in `LinearProgram`.
    **limits
        As of `Problem`.

    Attributes
    ----------
    n_variables : int
    names : list of str
    """

    def __init__(
        self,
        n: int,
        *,
        integrality: Any = None,
        costs: Costs = None,
        known: Any = None,
        offset: float = 0.0,
        sense: Sense = "min",
        names: Sequence[str] | None = None,
        **limits: Any,
    ) -> None:
        super().__init__(sense=sense, **limits)
        self.n_variables = n
        self.names = [f"w{j}" for j in range(n)] if names is None else as_names(names, n)
        self._map = as_map(costs, self.names)
        self._whole = whole = as_integrality(integrality, n)
        # Whole numbers in part, or in expressions with fractions, are no decisions in whole numbers.
        self.is_integer = whole is not None and bool(whole[self._map.indices].all() and np.all(self._map.data % 1 == 0))
        self.n_costs = as_n_costs(self._map.shape[0])
        self._sign = -1.0 if sense == "max" else 1.0  # `minimize` must not look at the sense
        self._known = self._sign * as_known(known, n)
        self.n_rows = count_rows(known=self._known)
        self._offset = self._sign * as_number(offset, name="offset")
        self.has_known = bool(self._known.any() or self._offset)

    def take(self, rows: Any) -> Self:
        """Return the problem of some rows, with their known costs."""
        if self.n_rows is None:
            return self
        part = copy.copy(self)
        part.n_rows = len(np.arange(self.n_rows)[rows])
        part._known = taken(self._known, rows)
        return part

    @abstractmethod
    def _minimize_variables(self, objective: FloatArray) -> FloatArray:
        """Return optimal variables for each row of costs of all variables: (r, n_variables) -> (r, n_variables)."""

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return `M w` of an optimal `w` for each row, the known costs counted once: (r, n_costs) -> (r, n_costs)."""
        return self._decisions(self._variables(costs, 1.0))

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Return the lifted decisions: (r, n_costs + 1) -> (r, n_costs + 1).

        The last of the costs weighs the known part; the last of the decisions is `known·w + offset`, of a minimisation.
        """
        variables = self._variables(costs[:, :-1], costs[:, -1:])
        return np.column_stack([self._decisions(variables), self._known_part(variables)])

    def _known_part(self, variables: FloatArray) -> FloatArray:
        """Return what the known part of a minimisation costs: (r, n_variables) -> (r,)."""
        known = (variables * self._known).sum(axis=1)  # a matrix product would round by the number of rows
        return np.asarray(known + self._offset)

    def solution(self, costs: Any) -> dict[str, Any]:
        """Return the values of all variables by name: arrays of shape (r,), or numbers for one row of costs."""
        costs = as_array(costs, name="costs")
        batch = as_matrix(np.atleast_2d(costs), n_columns=self.n_costs, owner=type(self).__name__)
        check_rows(self, len(batch))
        variables = self._variables(-batch if self.sense == "max" else batch, 1.0)
        return dict(zip(self.names, variables[0] if costs.ndim == 1 else variables.T, strict=True))

    def _objective(self, costs: FloatArray, weight: Any) -> FloatArray:
        """Return the costs of all variables: (r, n_costs) -> (r, n_variables)."""
        if self._is_plain and not self._known.any():
            return costs
        with np.errstate(over="ignore", invalid="ignore"):
            objective = np.ascontiguousarray((self._spread @ costs.T).T + weight * self._known)
        check_range(objective, "the cost of a variable", "its predicted and known costs")
        return objective

    def _variables(self, costs: FloatArray, weight: Any) -> FloatArray:
        return self._minimize_variables(self._objective(costs, weight))

    def _decisions(self, variables: FloatArray) -> FloatArray:
        return variables if self._is_plain else np.ascontiguousarray((self._map @ variables.T).T)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether every variable has one cost, in order."""
        n, each = self.n_variables, self._map
        return (
            each.shape == (n, n)
            and np.array_equal(each.indptr, np.arange(n + 1))
            and bool(np.array_equal(each.indices, np.arange(n)) and (each.data == 1).all())
        )

    @cached_property
    def _spread(self) -> csr_array:
        """The transposed map, from costs to variables: as the left factor, which takes less time than as the right."""
        return csr_array(self._map.T)


def taken(values: FloatArray, rows: Any) -> FloatArray:
    """Return some rows of what differs by row, (r, n), and anything else, (n,), as it is."""
    return values[rows] if values.ndim == 2 else values
