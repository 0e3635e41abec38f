"""Any linear program, with variables in whole numbers or without: predicted costs on some of it, known costs on others.

HiGHS solves it (see `decidewise.solvers.highs`). From row to row the costs change and, if given by row, right-hand
sides, bounds and known costs.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_array, vstack

from decidewise.kit.checks import BoolArray, FloatArray, as_array, as_vector
from decidewise.kit.errors import InfeasibleError, SolverError
from decidewise.kit.gaps import noted_gaps
from decidewise.problems.contract import Sense, check_rows
from decidewise.problems.linear_program.reasons import EmptyRegionError, duals, empty_region, with_reason
from decidewise.problems.linear_program.recognised import Recognised, recognise
from decidewise.problems.linear_program.region import PolyhedralProblem
from decidewise.problems.linear_program.writing import write_program
from decidewise.problems.mapped_problem.arguments import (
    Costs,
    PlaceNames,
    SideNames,
    as_bounds,
    as_columns,
    as_constraint,
    as_indices,
    as_integrality,
    as_known,
    as_rows,
    count_variables,
    is_map,
)
from decidewise.solvers import Polyhedron
from decidewise.solvers.highs import Solver
from decidewise.solvers.others import solver_class
from decidewise.solvers.program import Program


class LinearProgram(PolyhedralProblem):
    """Minimise `costs·(M w) + known·w + offset` over `A_ub w <= b_ub`, `A_eq w = b_eq`, `lower <= w <= upper`.

    A decision is `M w`: how much of each predicted cost is paid. The variables `w` themselves, with their names, are in
    `solution`.

    Ties: of all optimal vertices the one with the least `r·w`, where `r` are fixed random numbers between 1 and 2.
    In a program of up to 400 constraints (1,000 where costs are more than seven decades apart, which takes longer)
    costs are tied if they differ by less than 1e-12 of what is added up, so that an answer depends on its row alone. In
    larger ones they are tied within about 1e-9 of the length of the row, and the last digits, up to 1e-9, may depend on
    the rows before.
    Costs of 1e15 that forbid variables leave the choice among the others exact where some decision pays none of them.
    In whole numbers this vertex of the relaxation is the decision if it is whole. If not, HiGHS solves the row from the
    beginning, and ties go to the decision that it finds first; there, costs that forbid should stay below 1e6 times the
    others where every decision pays some of them.

    Tolerances: a decision breaks no constraint by more than 1e-9 of what is added up there, or of 1 if that is more.
    Where no decision does so, but one by 1e-7, it is taken with a `FeasibilityWarning` that names the constraint. In
    whole numbers a decision may cost more than the best by 1e-7 of what is added up and of the length of its row of
    costs: where one cost is 1e12 times the others and has to be paid, the others do not count.

    Parameters
    ----------
    A_ub, b_ub, A_eq, b_eq : array-like or sparse, optional
        Of shapes (m, n), (m,), (k, n) and (k,). The sides `b_ub` and `b_eq` may have one row per sample.
    lower, upper : array-like of shape (n,) or float
        Infinite where there is no bound. They may have one row per sample; a variable is fixed in the rows in which
        both bounds are the same.
    integrality : array-like of shape (n,), optional
        1 (or True) for a variable in whole numbers, and 0 for any other.
    costs : optional
        What the predicted costs act on: the indices of variables, their names, a pattern of names such as `"price_*"`,
        or linear expressions of variables. These are a map `M` of shape (n_costs, n), dense or sparse, or factors of
        patterns: `{"sell_*": 1, "buy_*": -1}` has one cost for each text that the star stands for, here of what is sold
        less what is bought. By default every variable has a predicted cost.
    known : array-like of shape (n,), optional
        Costs of variables that are not predicted; they add to those that are. They may have one row per sample.
    offset : float
        A constant that is part of the objective. It changes no decision, but what a regret is compared with.
    sense : {"min", "max"}
        Of the whole objective, known costs included.
    names : sequence of str, optional
        The names of the variables, all different.
    time_limit, gap, on_limit, on_error
        As of `Problem`; `gap` and `on_limit` are for variables in whole numbers.
    solver : {"highs", "gurobi", "scip", "cp-sat"}, optional
        Who solves; by default the kernel of `recognised`, or else HiGHS. The others are extras of their names, start
        anew for every row, and return the decision that they find first; Gurobi needs a licence, and CP-SAT whole
        numbers alone, with bounds, in constraints of whole numbers.

    Attributes
    ----------
    n_costs : int
        One per variable, or per entry of `costs`.
    n_variables : int
    n_rows : int or None
        The number of rows, if sides, bounds or known costs have one row per sample. Whether the region of a row is
        empty is then told by `solve`, as a `SolverError` of the row. See `by_row`.
    names : list of str
        `w0`, `w1` and so on where none were given.
    constraint_names : list of str
        Of constraints from a file or a modelling tool, which `by_row` understands.
    recognised : {"top_k", "assignment", "matching", "shortest_path", "levels", "knapsack"} or None
        The built-in problem that the program is, whatever the order and scale of its constraints. Its kernel solves the
        rows, with its own rule for ties, and HiGHS checks the first three. Rows that are hard for it go to HiGHS.
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
        gap: float = 0.0,
        on_limit: Literal["raise", "best"] = "raise",
        on_error: Literal["raise", "nan"] = "raise",
        solver: str | None = None,
    ) -> None:
        n = count_variables(A_ub, A_eq, lower, upper, known, names)
        super().__init__(
            n, integrality=integrality, costs=costs, known=known, offset=offset, sense=sense, names=names,
            time_limit=time_limit, gap=gap, on_limit=on_limit, on_error=on_error,
        )  # fmt: skip
        self._set_region(
            Polyhedron(
                *as_rows(A_ub, b_ub, n, "ub", by_row=True),
                *as_rows(A_eq, b_eq, n, "eq", by_row=True),
                *as_bounds(lower, upper, n, self.names, by_row=True),
            ),
            self._known,
        )
        self._solver = (solver_class(solver, ("highs",)) or Solver)(
            self._program(),
            time_limit=self.time_limit,
            gap=self.gap,
            keep_best=on_limit == "best",
            keep_going=self.on_error == "nan",
            by_row=self._bounds is not None,
        )
        self._may_be_recognised = solver is None
        self._name_sides(SideNames())
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
        constraint_names: Sequence[str] | None = None,
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
        constraint_names : sequence of str, optional
            One for each row of the constraints, for `by_row`; ignored if two are the same.

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
        rows = as_constraint(constraints, n)
        A, lb, ub = csr_array(rows.A), rows.lb, rows.ub
        lower, upper = (0.0, np.inf) if bounds is None else (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
        equal = lb == ub
        from_below, from_above = ~equal & np.isfinite(lb), ~equal & np.isfinite(ub)
        if (whole := as_integrality(integrality, n)) is not None:
            options["integrality"] = whole
        known = c.copy()
        if not is_map(costs):
            names = options.get("names")
            known[as_indices(costs, [f"w{j}" for j in range(n)] if names is None else list(names))] = 0.0
        sides = SideNames()
        if constraint_names is not None and len(set(constraint_names)) == len(constraint_names) == len(lb):
            kinds = (from_above, from_below, equal)
            sides = SideNames(*([constraint_names[int(row)] for row in np.flatnonzero(kind)] for kind in kinds))
        try:
            problem = cls(
                A_ub=vstack([A[from_above], -A[from_below]], format="csr"),
                b_ub=np.concatenate([ub[from_above], -lb[from_below]]),
                A_eq=A[equal],
                b_eq=lb[equal],
                lower=np.broadcast_to(as_array(lower, name="bounds"), n),
                upper=np.broadcast_to(as_array(upper, name="bounds"), n),
                costs=costs,
                known=known,
                **options,
            )
        except EmptyRegionError as error:
            raise error.with_sides(sides) from error
        problem._name_sides(sides)
        return problem

    @property
    def constraint_names(self) -> list[str]:
        """The names of constraints, where a file or a modelling tool gave them names."""
        return list(self._side_names)

    def by_row(
        self,
        *,
        b_ub: Any = None,
        b_eq: Any = None,
        lower: Any = None,
        upper: Any = None,
        known: Any = None,
        sides: Any = None,
    ) -> Self:
        """Return the same program with some of its numbers given by row: one row per sample.

        Parameters
        ----------
        b_ub, b_eq : array-like of shapes (n_rows, m) and (n_rows, k), optional
        lower, upper, known : array-like of shape (n_rows, n_variables), or dict, optional
            A dictionary, or a frame, has the names of some variables, each with an array of shape (n_rows,) or one
            number for all rows; all other variables keep what they have.
        sides : dict, optional
            The right-hand sides of constraints by their names, as `lower` by those of variables, for a program that was
            read from a file or a modelling tool; see `constraint_names`.

        Examples
        --------
        >>> shop = LinearProgram([[2.0, 3.0]], [6.0], upper=2, names=["bread", "cake"], sense="max")
        >>> by_day = shop.by_row(upper={"cake": [2.0, 0.0, 1.0]})
        >>> by_day.n_rows
        3
        >>> by_day.solve([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
        array([[0. , 2. ],
               [2. , 0. ],
               [1.5, 1. ]])
        >>> by_day.take([1]).solve([1.0, 2.0])
        array([2., 0.])
        """
        region, n = self._region, self.n_variables
        b_ub, b_eq = self._side_names.apply(
            sides,
            region.b_ub if b_ub is None else as_array(b_ub, name="b_ub"),
            region.b_eq if b_eq is None else as_array(b_eq, name="b_eq"),
        )
        lower = as_columns(lower, region.lower, self.names, name="lower")
        upper = as_columns(upper, region.upper, self.names, name="upper")
        known = as_columns(known, self._sign * self._known, self.names, name="known")
        twin = copy.copy(self)
        twin._set_region(
            Polyhedron(
                *as_rows(region.A_ub, b_ub, n, "ub", by_row=True), *as_rows(region.A_eq, b_eq, n, "eq", by_row=True),
                *as_bounds(lower, upper, n, self.names, by_row=True),
            ),
            self._sign * as_known(known, n),
        )  # fmt: skip
        twin._solver = replace(self._solver, program=twin._program(), by_row=twin._bounds is not None, _idle=[])
        for name in ("_relaxation", "_region_of_decisions", "_recognised"):
            twin.__dict__.pop(name, None)
        return twin

    def _with_present(self, present: BoolArray) -> Self:
        """Return the program in which the variables of absent costs, (n, n_costs), are zero."""
        if not self._is_pick:
            raise ValueError(
                "items can be absent from a program whose costs are those of single variables; here some are of "
                "expressions. Fix the variables of a row at zero by upper: problem.by_row(upper={...})."
            )
        absent = np.zeros((len(present), self.n_variables), dtype=bool)
        absent[:, self._map.indices] = ~present
        lower, upper = (np.broadcast_to(side, absent.shape) for side in (self._region.lower, self._region.upper))
        beyond = np.argwhere(absent & ((lower > 0) | (upper < 0)))
        if len(beyond):
            row, place = beyond[0]
            raise ValueError(
                f"{self.names[place]} is absent in row {row}, and its bounds, {lower[row, place]:g} and "
                f"{upper[row, place]:g}, do not allow zero."
            )
        return self.by_row(lower=np.where(absent, 0.0, lower), upper=np.where(absent, 0.0, upper))

    def write(self, path: str | os.PathLike[str], costs: Any) -> None:
        """Write the program with the costs of one row to an `.mps` or `.lp` file, for another solver or a colleague.

        Known costs, the constant and the sense are in it. Of names, what files do not allow becomes `_`. Where the
        program differs by row, write that of one: `problem.take([i])`.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "row.lp"
        >>> LinearProgram([[2.0, 3.0]], [6.0], upper=2, names=["bread", "cake"], sense="max").write(path, [1.0, 2.0])
        >>> "2 bread +3 cake <= +6" in " ".join(path.read_text().split())
        True
        """
        row = as_vector(costs, name="costs", length=self.n_costs)
        check_rows(self, 1)
        quadratic = getattr(self, "_quadratic", None)
        write_program(
            path, self._region, self._sign * self._objective(self._sign * row[np.newaxis], 1.0)[0], whole=self._whole,
            quadratic=None if quadratic is None else self._sign * quadratic, offset=self._sign * self._offset,
            sense=self.sense, names=self.names, sides=self._side_names,
        )  # fmt: skip

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return `M w` of an optimal vertex of the linear relaxation for each row: (r, n_costs) -> (r, n_costs)."""
        return self._decisions(self._relaxation.minimize(self._objective(costs, 1.0), self._bounds))

    @property
    def recognised(self) -> str | None:
        """The built-in problem whose kernel solves the program in the place of HiGHS, or None."""
        return self._recognised.name if self._recognised else None

    @cached_property
    def _recognised(self) -> Recognised | None:
        return recognise(self._solver.program) if self._may_be_recognised and self._bounds is None else None

    def __repr__(self) -> str:
        text = super().__repr__()
        return f"{text[:-1]}, recognised={self.recognised!r})" if self.recognised else text

    def _minimize_variables(self, objective: FloatArray) -> FloatArray:
        try:
            if self._recognised:
                return self._recognised.minimize(objective, self._solver)
            return self._solver.minimize(objective, self._bounds)
        except InfeasibleError as error:
            raise with_reason(error, self._program_of(error.row), self._place_names) from error

    @cached_property
    def _relaxation(self) -> Solver:
        if self._solver.program.integrality is None:
            return self._solver
        return Solver(
            self._program(relaxed=True),
            self._solver.time_limit,
            keep_going=self._solver.keep_going,
            by_row=self._bounds is not None,
        )

    @property
    def _cost_names(self) -> list[str]:
        is_plain = self._is_pick and (self._map.data == 1).all()
        return [self.names[j] for j in self._map.indices] if is_plain else super()._cost_names

    @property
    def _is_pick(self) -> bool:
        """Whether each cost is that of one variable."""
        return self._map.nnz == self.n_costs and bool((np.diff(self._map.indptr) == 1).all())

    def _duals(self, costs: FloatArray) -> tuple[dict[str, FloatArray], dict[str, FloatArray], str]:
        if self._whole is not None:
            return {}, {}, "A program in whole numbers has no duals."
        programs = [self._program_of(row) for row in range(len(costs) if self._bounds else 1)]
        return *duals(programs, self._objective(self._sign * costs, 1.0), self._place_names, self._sign), ""

    def _program_of(self, row: int) -> Program:
        return self._program() if self._bounds is None else replace(self._bounds.take(row), integrality=self._whole)

    def _check_not_empty(self) -> None:
        """Raise unless the linear relaxation has a point: whether it has whole numbers too, a solve tells."""
        if self._bounds is not None:  # so many regions would take as long as solving: there a solve tells it too
            return
        relaxed = Solver(self._program(relaxed=True))
        try:
            with noted_gaps():  # it says nothing of any row
                relaxed.minimize(np.zeros((1, self.n_variables)))
        except InfeasibleError as error:
            raise empty_region(relaxed.program, self._place_names) from error
        except SolverError:
            pass  # a solver that stumbles without costs may not stumble with them, and says so where it does

    def _name_sides(self, names: SideNames) -> None:
        self._side_names = names
        self._solver.row_name = self._place_names

    @property
    def _place_names(self) -> PlaceNames:
        return PlaceNames(self.names, np.flatnonzero(np.diff(self._region.A_ub.indptr) != 1), self._side_names)
