"""Any linear program, with variables in whole numbers or without: predicted costs on some of it, known costs on others.

HiGHS solves it (see `decidewise.polyhedra.highs`). Only the costs change from row to row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from decidewise.checks import FloatArray, as_number, as_positive, as_vector
from decidewise.errors import SolverError
from decidewise.polyhedra import Polyhedron
from decidewise.polyhedra.highs import Solver
from decidewise.polyhedra.program import Program
from decidewise.problems.base import Sense
from decidewise.problems.mapped_problem import EMPTY, MappedProblem
from decidewise.problems.mapped_problem.arguments import (
    Costs,
    as_bound,
    as_bounds,
    as_constraints,
    as_indices,
    as_integrality,
    as_rows,
    as_two_sided,
    count_variables,
    is_map,
)


class LinearProgram(MappedProblem):
    """Minimise `costs·(M w) + known·w + offset` over `A_ub w <= b_ub`, `A_eq w = b_eq`, `lower <= w <= upper`.

    A decision is `M w`: how much of each predicted cost is paid. The variables `w` themselves, with their names, are in
    `solution`.

    Ties: of all optimal vertices the one with the least `r·w`, where `r` are fixed random numbers between 1 and 2.
    Differences below about 1e-9 of the length of the costs count as ties. Costs of 1e15 that forbid variables leave the
    choice among the others exact where some decision pays none of them. With variables in whole numbers HiGHS solves
    every row from the beginning, and ties go to the decision that it finds first; there, costs that forbid should stay
    below 1e6 times the others.

    Parameters
    ----------
    A_ub, b_ub, A_eq, b_eq : array-like or sparse, optional
        Of shapes (m, n), (m,), (k, n) and (k,).
    lower, upper : array-like of shape (n,) or float
        Infinite where there is no bound.
    integrality : array-like of shape (n,), optional
        1 (or True) for a variable in whole numbers, and 0 for any other.
    costs : optional
        What the predicted costs act on: the indices of variables, their names, a pattern of names such as `"price_*"`,
        or linear expressions of variables. These are a map `M` of shape (n_costs, n), dense or sparse, or factors of
        patterns: `{"sell_*": 1, "buy_*": -1}` has one cost for each text that the star stands for, here of what is sold
        less what is bought. By default every variable has a predicted cost.
    known : array-like of shape (n,), optional
        Costs of variables that are not predicted; they add to those that are.
    offset : float
        A constant that is part of the objective. It changes no decision, but what a regret is compared with.
    sense : {"min", "max"}
        Of the whole objective, known costs included.
    names : sequence of str, optional
        The names of the variables, all different.
    time_limit : float, optional
        Seconds for one row.
    gap : float, optional
        With variables in whole numbers: how far, relative to its value, a decision may be from the optimum. By default
        it is optimal.
    on_error : {"raise", "nan"}
        Whether a row that cannot be solved is a `SolverError`, or a decision of NaN beside the decisions of all others.

    Attributes
    ----------
    n_costs : int
        One per variable, or per entry of `costs`.
    n_variables : int
    names : list of str
        `w0`, `w1` and so on where none were given.
    B_S : float
        An upper bound on the norm of a decision, from the bounds alone; infinite where one of them is.

    Examples
    --------
    >>> LinearProgram([[1.0, 2.0]], [4.0], upper=[3.0, 3.0], sense="max").solve([[1.0, 1.0], [1.0, 3.0]])
    array([[3. , 0.5],
           [0. , 2. ]])

    A battery buys and sells at three prices; what it sells less what it buys is `M w`.

    >>> charge, sell, level = np.eye(3), np.eye(3), np.eye(3) - np.eye(3, k=-1)
    >>> battery = LinearProgram(
    ...     A_eq=np.hstack([-0.9 * charge, sell, level]), b_eq=np.zeros(3), lower=0, upper=[1] * 6 + [2] * 3,
    ...     costs=np.hstack([-charge, sell, 0 * level]), sense="max",
    ... )
    >>> battery
    LinearProgram(n_costs=3, sense='max')
    >>> battery.solve([[10.0, 50.0, 20.0], [30.0, 20.0, 25.0]])
    array([[-1. ,  0.9,  0. ],
           [ 0. , -1. ,  0.9]])
    >>> battery.solution([10.0, 50.0, 20.0])["w6"]  # the level after the first period
    np.float64(0.9)
    """

    def __init__(
        self,
        A_ub: Any = None,
        b_ub: Any = None,
        A_eq: Any = None,
        b_eq: Any = None,
        lower: Any = 0.0,
        upper: Any = np.inf,
        *,
        integrality: Any = None,
        costs: Costs = None,
        known: Any = None,
        offset: float = 0.0,
        sense: Sense = "min",
        names: Sequence[str] | None = None,
        time_limit: float | None = None,
        gap: float | None = None,
        on_error: Literal["raise", "nan"] = "raise",
    ) -> None:
        n = count_variables(A_ub, A_eq, lower, upper, known, names)
        super().__init__(n, costs=costs, known=known, offset=offset, sense=sense, names=names, on_error=on_error)
        region = Polyhedron(
            *as_rows(A_ub, b_ub, n, "ub"), *as_rows(A_eq, b_eq, n, "eq"),
            *as_bounds(lower, upper, n, self.names),
        )  # fmt: skip
        whole = as_integrality(integrality, n)
        # Whole numbers in part, or in expressions with fractions, are no decisions in whole numbers.
        self.is_integer = whole is not None and bool(whole[self._map.indices].all() and np.all(self._map.data % 1 == 0))
        self._region = region
        self.B_S = float(np.linalg.norm(abs(self._map) @ np.maximum(np.abs(region.lower), np.abs(region.upper))))
        self._solver = Solver(
            Program.of(region, whole),
            time_limit=None if time_limit is None else as_positive(time_limit, name="time_limit"),
            gap=0.0 if gap is None else as_number(gap, name="gap", at_least=0),
            keep_going=self.on_error == "nan",
        )
        self._check_not_empty()

    @classmethod
    def from_milp(
        cls,
        c: Any,
        *,
        integrality: Any = None,
        bounds: Any = None,
        constraints: Any = None,
        costs: Costs = None,
        **options: Any,
    ) -> Self:
        """Take the arguments of `scipy.optimize.milp`.

        Parameters
        ----------
        c : array-like of shape (n,)
            The objective. Where a variable has a predicted cost this one is left out; the others are known costs.
            Beside a map `costs` all of them are known.
        integrality, bounds, constraints
            As for SciPy: `bounds` is a `scipy.optimize.Bounds`, by default zero and infinity; `constraints` are
            `LinearConstraint`s, or tuples `(A, lb, ub)`, one or several.
        costs
            As for `LinearProgram`, like all other options.

        Examples
        --------
        >>> from scipy.optimize import Bounds, LinearConstraint
        >>> pick = LinearProgram.from_milp(
        ...     [0, 0, 0], integrality=[1, 1, 1], bounds=Bounds(0, 1), constraints=LinearConstraint([[2, 3, 4]], ub=5),
        ...     sense="max",
        ... )
        >>> pick.solve([3.0, 4.0, 5.0])
        array([1., 1., 0.])
        """
        c = as_vector(c, name="c")
        n = len(c)
        parts = [as_two_sided(*constraint, n) for constraint in as_constraints(constraints)]
        A = csr_array(vstack([csr_array((0, n)), *(part[0] for part in parts)], format="csr"))
        lb, ub = (np.concatenate([np.empty(0), *(part[k] for part in parts)]) for k in (1, 2))
        equal = lb == ub
        from_below, from_above = ~equal & np.isfinite(lb), ~equal & np.isfinite(ub)
        known = c.copy()
        if not is_map(costs):
            names = options.get("names")
            known[as_indices(costs, [f"w{j}" for j in range(n)] if names is None else list(names))] = 0.0
        return cls(
            A_ub=vstack([A[from_above], -A[from_below]], format="csr"),
            b_ub=np.concatenate([ub[from_above], -lb[from_below]]),
            A_eq=A[equal],
            b_eq=lb[equal],
            lower=0.0 if bounds is None else as_bound(bounds, 0, n),
            upper=np.inf if bounds is None else as_bound(bounds, 1, n),
            integrality=integrality,
            costs=costs,
            known=known,
            **options,
        )

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return `M w` of an optimal vertex of the linear relaxation for each row: (r, n_costs) -> (r, n_costs)."""
        return self._decisions(self._relaxation.minimize(self._objective(costs, 1.0)))

    def _minimize_variables(self, objective: FloatArray) -> FloatArray:
        return self._solver.minimize(objective)

    def _solve_by(self, solver: type[Solver]) -> None:
        """Let another solver take over, for readers of models that come with one."""
        self._solver = solver(
            **{key: getattr(self._solver, key) for key in ("program", "time_limit", "gap", "keep_going")}
        )

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The region (or relaxation), where every variable has one predicted cost and nothing is known; else None."""
        return None if self.no_polyhedron else self._region_of_decisions

    @property
    def no_polyhedron(self) -> str | None:
        """Why there is no polyhedron, or None where there is one."""
        if self.has_known:
            return "it has known costs beside the predicted ones"
        if self._order is None:
            return "its decisions are expressions of variables, or leave some variables out"
        if self._solver.program.integrality is not None and not self.is_integer:
            return "only some of its variables are in whole numbers"
        return None

    @cached_property
    def _order(self) -> npt.NDArray[np.int64] | None:
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

    @cached_property
    def _relaxation(self) -> Solver:
        if self._solver.program.integrality is None:
            return self._solver
        return Solver(Program.of(self._region), self._solver.time_limit, keep_going=self._solver.keep_going)

    def _check_not_empty(self) -> None:
        """Raise unless the linear relaxation has a point: whether it has whole numbers too, a solve tells."""
        relaxed = Solver(Program.of(self._region))
        try:
            relaxed.minimize(np.zeros((1, self.n_variables)))
        except SolverError as error:
            if "Infeasible" in str(error):
                raise ValueError(EMPTY) from error
            # A solver that stumbles without costs may not stumble with them, and says so where it does.
