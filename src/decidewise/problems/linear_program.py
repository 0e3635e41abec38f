"""Any linear program, with variables in whole numbers or without: predicted costs on some of it, known costs on others.

HiGHS solves it (see `decidewise.polyhedra.highs`). Only the costs change from row to row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, eye_array, issparse, vstack

from decidewise.checks import FloatArray, all_finite, as_array, as_choice, as_matrix, as_number, as_positive, as_vector
from decidewise.errors import SolverError
from decidewise.polyhedra import Polyhedron
from decidewise.polyhedra.highs import Solver
from decidewise.polyhedra.program import Program
from decidewise.problems.base import Problem, Sense, as_n_costs

#: Which variables carry predicted costs: indices, names, one pattern of names, or a map.
Costs = Any


class LinearProgram(Problem):
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
        or a map `M` of shape (n_costs, n), dense or sparse, whose rows are linear expressions of the variables. By
        default every variable has a predicted cost.
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
    n_variables : int
    names : list of str
        `w0`, `w1` and so on where none were given.
    B_S : float
        An upper bound on the norm of a decision, from the bounds alone; infinite where one of them is.

    Examples
    --------
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
        super().__init__(sense=sense)
        n = _n_variables(A_ub, A_eq, lower, upper, known, names)
        self.n_variables = n
        self.names = [f"w{j}" for j in range(n)] if names is None else as_names(names, n)
        region = Polyhedron(
            *_as_rows(A_ub, b_ub, n, "ub"), *_as_rows(A_eq, b_eq, n, "eq"),
            *_as_bounds(lower, upper, n, self.names),
        )  # fmt: skip
        whole = _as_integrality(integrality, n)
        self._map = _as_map(costs, self.names)
        self.n_costs = as_n_costs(self._map.shape[0])
        sign = -1.0 if sense == "max" else 1.0  # `minimize` must not look at the sense
        self._known = np.zeros(n) if known is None else sign * as_vector(known, name="known", length=n)
        self._offset = sign * as_number(offset, name="offset")
        self.has_known = bool(self._known.any() or self._offset)
        # Whole numbers in part, or in expressions with fractions, are no decisions in whole numbers.
        self.is_integer = whole is not None and bool(whole[self._map.indices].all() and np.all(self._map.data % 1 == 0))
        self.on_error = as_choice(on_error, name="on_error", choices=("raise", "nan"))
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
        parts = [_as_two_sided(*constraint, n) for constraint in _constraints(constraints)]
        A = csr_array(vstack([csr_array((0, n)), *(part[0] for part in parts)], format="csr"))
        lb, ub = (np.concatenate([np.empty(0), *(part[k] for part in parts)]) for k in (1, 2))
        equal = lb == ub
        from_below, from_above = ~equal & np.isfinite(lb), ~equal & np.isfinite(ub)
        names = options.get("names")
        is_map = _is_map(costs)
        chosen = [] if is_map else _as_indices(costs, [f"w{j}" for j in range(n)] if names is None else list(names))
        known = c.copy()
        known[chosen] = 0.0
        return cls(
            A_ub=vstack([A[from_above], -A[from_below]], format="csr"),
            b_ub=np.concatenate([ub[from_above], -lb[from_below]]),
            A_eq=A[equal],
            b_eq=lb[equal],
            lower=0.0 if bounds is None else _bound(bounds, 0, n),
            upper=np.inf if bounds is None else _bound(bounds, 1, n),
            integrality=integrality,
            costs=costs,
            known=known,
            **options,
        )

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return `M w` of an optimal `w` for each row, the known costs counted once: (r, n_costs) -> (r, n_costs)."""
        return self._decisions(self._variables(costs, 1.0))

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Return the lifted decisions: (r, n_costs + 1) -> (r, n_costs + 1).

        The last of the costs weighs the known part; the last of the decisions is `known·w + offset`, of a minimisation.
        """
        variables = self._variables(costs[:, :-1], costs[:, -1:])
        return np.column_stack([self._decisions(variables), variables @ self._known + self._offset])

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return `M w` of an optimal vertex of the linear relaxation for each row: (r, n_costs) -> (r, n_costs)."""
        return self._decisions(self._relaxation.minimize(self._objective(costs, 1.0)))

    def solution(self, costs: Any) -> dict[str, Any]:
        """Return the values of all variables by name: arrays of shape (r,), or numbers for one row of costs."""
        costs = as_array(costs, name="costs")
        batch = as_matrix(np.atleast_2d(costs), n_columns=self.n_costs, owner=type(self).__name__)
        variables = self._variables(-batch if self.sense == "max" else batch, 1.0)
        return dict(zip(self.names, variables[0] if costs.ndim == 1 else variables.T, strict=True))

    def solve_by(self, solver: type[Solver]) -> None:
        """Let another solver take over, for readers of models that come with one."""
        self._solver = solver(**{key: getattr(self._solver, key) for key in ("program", "time_limit", "gap", "keep_going")})

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The region (or its relaxation), where every variable has one predicted cost and nothing is known; else None."""
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

    def _objective(self, costs: FloatArray, weight: Any) -> FloatArray:
        """Return the costs of all variables: (r, n_costs) -> (r, n_variables)."""
        return np.ascontiguousarray(costs @ self._map + weight * self._known)

    def _variables(self, costs: FloatArray, weight: Any) -> FloatArray:
        return self._solver.minimize(self._objective(costs, weight))

    def _decisions(self, variables: FloatArray) -> FloatArray:
        return np.ascontiguousarray(variables @ self._map.T)

    def _check_not_empty(self) -> None:
        """Raise unless the linear relaxation has a point: whether it has whole numbers too, a solve tells."""
        relaxed = Solver(Program.of(self._region))
        try:
            relaxed.minimize(np.zeros((1, self.n_variables)))
        except SolverError as error:
            if "Infeasible" in str(error):
                raise ValueError(
                    "the region is empty: no decision keeps all constraints and bounds. Look for the last constraint "
                    "added, for a sign that is the wrong way round, or for a bound that is too tight."
                ) from error
            # A solver that stumbles without costs may not stumble with them, and says so where it does.


def as_names(names: Iterable[str], n: int) -> list[str]:
    """Return the names of `n` variables, all of them different."""
    names = list(names)
    if len(names) != n or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be {n} strings, one for each variable; got {len(names)} names.")
    if len(set(names)) < n:
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"names must be different; {twice!r} is there more than once.")
    return names


def _n_variables(A_ub: Any, A_eq: Any, lower: Any, upper: Any, known: Any, names: Any) -> int:
    """Return the number of variables, from the first argument that tells it."""
    for matrix in (A_ub, A_eq):
        if matrix is not None and len(np.shape(matrix)) == 2:
            return int(np.shape(matrix)[1])
    for vector in (lower, upper, known, names):
        if vector is not None and np.ndim(vector) == 1:
            return len(vector)
    raise ValueError(
        "a linear program needs to know how many variables it has: pass A_ub or A_eq with one column for each, or "
        "bounds with one entry for each."
    )


def _as_rows(A: Any, b: Any, n: int, kind: str) -> tuple[csr_array, FloatArray]:
    """Return constraints as sparse rows (m, n) and their sides (m,)."""
    if A is None and b is None:
        return csr_array((0, n)), np.empty(0)
    if A is None or b is None:
        raise ValueError(f"A_{kind} and b_{kind} belong together; got only {'b' if A is None else 'A'}_{kind}.")
    A = _as_sparse(A, name=f"A_{kind}")
    if A.shape[1] != n:
        raise ValueError(f"A_{kind} must have one column for each of the {n} variables; got A_{kind}.shape={A.shape}.")
    b = as_array(b, name=f"b_{kind}")
    if b.shape != (A.shape[0],):
        raise ValueError(f"b_{kind} must have one entry for each of the {A.shape[0]} rows of A_{kind}; got {b.shape}.")
    if kind == "ub" and np.isposinf(b).any():  # rows without a bound, as some tools write them
        A, b = csr_array(A[np.isfinite(b) | (b < 0)]), b[np.isfinite(b) | (b < 0)]
    return A, as_vector(b, name=f"b_{kind}")


def _as_sparse(A: Any, *, name: str) -> csr_array:
    """Return a finite sparse matrix."""
    matrix = csr_array(A, dtype=float) if issparse(A) else csr_array(np.atleast_2d(as_array(A, name=name)))
    if not all_finite(matrix.data):
        entry = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise ValueError(
            f"{name} must be finite; row {row}, column {matrix.indices[entry]} has {matrix.data[entry]}."
        )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _as_bounds(lower: Any, upper: Any, n: int, names: list[str]) -> tuple[FloatArray, FloatArray]:
    bounds = []
    for name, bound in (("lower", lower), ("upper", upper)):
        values = as_array(bound, name=name)
        if values.ndim > 1 or (values.ndim == 1 and len(values) != n):
            raise ValueError(f"{name} must be a number or a vector of length {n}; got {name}.shape={values.shape}.")
        if np.isnan(values).any():
            raise ValueError(f"{name} has NaN. Write infinity, with its sign, where a variable has no bound.")
        bounds.append(np.ascontiguousarray(np.broadcast_to(values, n)))
    crossed = np.flatnonzero((bounds[0] > bounds[1]) | np.isposinf(bounds[0]) | np.isneginf(bounds[1]))
    if len(crossed):
        j = crossed[0]
        raise ValueError(
            f"the region is empty: variable {names[j]!r} has lower={bounds[0][j]:g} and upper={bounds[1][j]:g}."
        )
    return bounds[0], bounds[1]


def _as_integrality(integrality: Any, n: int) -> npt.NDArray[np.bool_] | None:
    """Return which variables are in whole numbers, or None if none is."""
    if integrality is None:
        return None
    kinds = as_array(integrality, name="integrality")
    if kinds.ndim == 0:
        kinds = np.full(n, float(kinds))
    if kinds.shape != (n,):
        raise ValueError(f"integrality must have one entry for each of the {n} variables; got shape {kinds.shape}.")
    if not np.isin(kinds, (0, 1)).all():
        raise ValueError(
            "integrality must be 0 or 1 for each variable; SciPy's 2 and 3, for semi-continuous ones, are not "
            "supported. Write such a variable with a binary one that switches it on."
        )
    return kinds == 1 if kinds.any() else None


def _is_map(costs: Costs) -> bool:
    return issparse(costs) or (not isinstance(costs, str) and costs is not None and len(np.shape(costs)) == 2)


def _as_map(costs: Costs, names: list[str]) -> csr_array:
    """Return the map (n_costs, n) from variables to what predicted costs act on."""
    n = len(names)
    if _is_map(costs):
        matrix = _as_sparse(costs, name="costs, as a map,")
        if matrix.shape[1] != n or matrix.shape[0] == 0:
            raise ValueError(
                f"a map of costs must have one row for each predicted cost and one column for each of the {n} "
                f"variables; got shape {matrix.shape}."
            )
        return matrix
    return csr_array(eye_array(n, format="csr")[_as_indices(costs, names)])


def _as_indices(costs: Costs, names: list[str]) -> npt.NDArray[np.int64]:
    """Return the variables that indices, names or a pattern name, each of them once."""
    if costs is None:
        return np.arange(len(names))
    if isinstance(costs, str):
        chosen = [j for j, name in enumerate(names) if fnmatchcase(name, costs)]
        if not chosen:
            raise ValueError(f"no variable matches costs={costs!r}{_nearest(costs, names)}")
        return np.array(chosen)
    given = list(costs)
    place = {name: j for j, name in enumerate(names)}
    for item in given:
        if isinstance(item, str) and item not in place:
            raise ValueError(f"there is no variable {item!r}{_nearest(item, names)}")
        if not isinstance(item, str | int | np.integer) or isinstance(item, bool):
            raise ValueError(
                "costs must be indices or names of variables, a pattern of names, or a map with one row for each "
                f"cost; got an entry {item!r}."
            )
        if not isinstance(item, str) and not 0 <= item < len(names):
            raise ValueError(f"costs has the index {item}, and there are {len(names)} variables, from 0 on.")
    chosen = [place[item] if isinstance(item, str) else int(item) for item in given]
    if not chosen:
        raise ValueError("costs is empty: at least one variable must have a predicted cost.")
    if len(set(chosen)) < len(chosen):
        twice = next(names[j] for k, j in enumerate(chosen) if j in chosen[:k])
        raise ValueError(f"costs names the variable {twice!r} more than once.")
    return np.array(chosen)


def _nearest(name: str, names: list[str]) -> str:
    """Say which names come near to one that is not among them."""
    near = get_close_matches(name.strip("*?"), names, n=3, cutoff=0.5) or names[:3]
    return f"; the nearest of {len(names)} names are {', '.join(map(repr, near))}."


def _constraints(constraints: Any) -> list[tuple[Any, Any, Any]]:
    """Return SciPy's constraints, one or several, as tuples `(A, lb, ub)`."""
    if constraints is None:
        return []
    if hasattr(constraints, "A"):
        constraints = [constraints]
    elif isinstance(constraints, tuple) and len(np.shape(constraints[0])) == 2 and not hasattr(constraints[0], "A"):
        constraints = [constraints]
    filled = (-np.inf, np.inf)
    return [
        (part.A, part.lb, part.ub) if hasattr(part, "lb") else (*part, *filled[len(part) - 1 :])[:3]
        for part in constraints
    ]


def _as_two_sided(A: Any, lb: Any, ub: Any, n: int) -> tuple[csr_array, FloatArray, FloatArray]:
    A = _as_sparse(A, name="A of a constraint")
    if A.shape[1] != n:
        raise ValueError(f"a constraint must have one column for each of the {n} variables; got A.shape={A.shape}.")
    sides = []
    for name, side in (("lb", lb), ("ub", ub)):
        values = as_array(side, name=f"{name} of a constraint")
        if values.ndim > 1 or (values.ndim == 1 and len(values) != A.shape[0]) or np.isnan(values).any():
            raise ValueError(
                f"{name} of a constraint must have one entry for each of its {A.shape[0]} rows, infinite where there "
                f"is no bound; got {name}.shape={values.shape}."
            )
        sides.append(np.broadcast_to(values, A.shape[0]))
    return A, sides[0], sides[1]


def _bound(bounds: Any, which: int, n: int) -> FloatArray:
    """Return the lower or the upper bounds of a `scipy.optimize.Bounds`, or of a pair of them."""
    bound = (bounds.lb, bounds.ub)[which] if hasattr(bounds, "lb") else tuple(bounds)[which]
    return np.broadcast_to(as_array(bound, name="bounds"), n)
