"""Any conic program: predicted costs on some of its variables, known costs on others, over a region with cones.

Clarabel solves it (see `decidewise.solvers.conic`). Only the costs change from row to row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, vstack

from decidewise.kit.checks import FloatArray
from decidewise.kit.scaling import norms
from decidewise.problems.conic_program.cones import Cone, ConeRows, as_cone
from decidewise.problems.mapped_problem import EMPTY, MappedProblem, ProgramOptions
from decidewise.problems.mapped_problem.arguments import as_bounds, as_rows, count_variables
from decidewise.problems.quadratic_program import WHOLE
from decidewise.solvers.conic import ConicRegion, ConicSolver
from decidewise.solvers.conic_derivative import CURVED, conic_derivative
from decidewise.solvers.others import OtherSolver, solver_class
from decidewise.solvers.program import Program

# Larger matrices are not searched for a line in the region.
_MOST_ENTRIES = 10**6


class ConicProgram(MappedProblem):
    """Minimise `costs·(M w) + known·w + offset` over cones, `A_ub w <= b_ub`, `A_eq w = b_eq`, `lower <= w <= upper`.

    A decision is `M w`: how much of each predicted cost is paid. The variables `w` themselves, with their names, are in
    `solution`.

    *Accuracy.* Bounds hold exactly; constraints and values to about 1e-10, relative to their sizes, or to 1e-8 where
    the solver gets no further (1e-6 at the worst; beyond that a row is a `SolverError`). Where second-order and
    exponential cones meet, a row in two hundred has its value to 1e-7. Along a curved boundary a decision is less exact
    than its value: to 1e-5 to 1e-4, since a step so small changes no value by 1e-9. Scaled costs `a * c` have the
    decision of `c` to the last bit if `a` is a power of two, and otherwise to this accuracy.

    *Ties.* A strictly convex region has none. Otherwise the decision lies inside the face of all optimal ones, on the
    way to its analytic centre, and not at a vertex; for costs of zero, inside the region.

    Parameters
    ----------
    A_ub, b_ub, A_eq, b_eq : array-like or sparse, optional
        Of shapes (m, n), (m,), (k, n) and (k,).
    lower, upper : array-like of shape (n,) or float
        Infinite where there is no bound. Mind that `lower` is zero by default, as for `LinearProgram`.
    cones : sequence of `SecondOrder`, `Semidefinite`, `Exponential` and `Quadratic`
        Further constraints on all variables. Instead of an object, a table with its arguments and a `kind` will do, as
        in a file: "second_order", "semidefinite", "exponential" or "quadratic".
    integrality, costs, known, offset, sense, names, time_limit, gap, on_limit, on_error
        As in `LinearProgram`; known costs are the same for all rows of costs.
    solver : {"scip", "gurobi"}, optional
        Who solves in the place of Clarabel, to about 1e-5 of the value, linear, quadratic and second-order constraints;
        needed for whole numbers.

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
    Invest in three assets for the largest return, with a variance of at most 0.5 and a known fee on the third.

    >>> from decidewise.problems import ConicProgram, Quadratic
    >>> portfolio = ConicProgram(
    ...     A_ub=[[1.0, 1.0, 1.0]], b_ub=[1.0], cones=[Quadratic(np.eye(3), r=0.5)], known=[0.0, 0.0, -0.1], sense="max"
    ... )
    >>> portfolio
    ConicProgram(n_costs=3, sense='max')
    >>> portfolio.solve([[1.0, 1.0, 0.0], [0.1, 0.0, 1.0]]).round(3)
    array([[0.5  , 0.5  , 0.   ],
           [0.078, 0.   , 0.703]])

    The matrix of trace 1 that `costs` value least is that of the smallest eigenvalue.

    >>> from decidewise.problems import Semidefinite
    >>> state = ConicProgram(
    ...     A_eq=[[1.0, 0.0, 1.0]], b_eq=[1.0], lower=-np.inf, names=["x00", "x01", "x11"],
    ...     cones=[Semidefinite.of_variables([[0, 1], [1, 2]], n=3)],
    ... )
    >>> state.solution([0.0, 2.0, 0.0])["x01"].round(6)  # <C, X> with C = [[0, 1], [1, 0]]
    np.float64(-0.5)

    The largest value on a disc of radius 2 around (1, 0), with the constraint as a table:

    >>> disc = ConicProgram(
    ...     lower=[-1.0, -2.0], upper=[3.0, 2.0], sense="max",
    ...     cones=[{"kind": "second_order", "A": [[1.0, 0.0], [0.0, 1.0]], "b": [-1.0, 0.0], "d": 2.0}],
    ... )
    >>> disc.solve([0.0, 1.0]).round(4)
    array([1., 2.])
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
        cones: Sequence[Cone | Mapping[str, Any]] = (),
        **options: Unpack[ProgramOptions],
    ) -> None:
        parts = _as_cones(cones)
        known, names, solver = options.get("known"), options.get("names"), options.pop("solver", None)
        n = parts[0].A.shape[1] if parts else count_variables(A_ub, A_eq, lower, upper, known, names)
        for k, part in enumerate(parts):
            if part.A.shape[1] != n:
                raise ValueError(
                    f"cones must have one column for each variable; cones[0] has {n}, and cones[{k}] has "
                    f"{part.A.shape[1]}."
                )
        super().__init__(n, **options)
        self._bounds = as_bounds(lower, upper, n, self.names)
        region = _joined(as_rows(A_ub, b_ub, n, "ub"), as_rows(A_eq, b_eq, n, "eq"), *self._bounds, parts)
        self.B_S = float(np.linalg.norm(abs(self._map) @ np.abs(self._bounds).max(axis=0)))
        self._solver = ConicSolver(region, time_limit=self.time_limit, keep_going=self.on_error == "nan")
        self._other = self._other_solver(solver)
        self.faces = "unknown" if "derivative" in self.missing else "curved"
        self._check_no_line()
        if self._solver.is_empty():
            raise ValueError(EMPTY)

    def _other_solver(self, name: str | None) -> OtherSolver | None:
        """Return the solver in the place of Clarabel, which the region is given with its whole numbers."""
        n, whole, other = self.n_variables, self._whole, solver_class(name)
        if other is None:
            if whole is not None:
                raise ValueError(f"the region has cones, and {WHOLE}")
            return None
        free = Program(csc_array((0, n)), np.empty(0), np.empty(0), *self._bounds, integrality=whole)
        return other(
            free, time_limit=self.time_limit, gap=self.gap, keep_best=self.on_limit == "best",
            keep_going=self.on_error == "nan", cones=self._solver.region,
        )  # fmt: skip

    def _minimize_variables(self, objective: FloatArray) -> FloatArray:
        return np.clip((self._other or self._solver).minimize(objective), *self._bounds)

    def derivative(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `J v` of each row, of regions with a cone or a quadratic constraint.

        It is exact to about 1e-8, more so than the decisions: see `decidewise.solvers.conic_derivative`. After
        `minimize` of the same costs it solves nothing anew.
        """
        return self._decisions(self._moved(self._objective(costs, 1.0), vectors @ self._map))

    def derivative_lifted(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `J v` of the lifted decisions."""
        objective = self._objective(costs[:, :-1], costs[:, -1:])
        moved = self._moved(objective, vectors[:, :-1] @ self._map + vectors[:, -1:] * self._known)
        return np.column_stack([self._decisions(moved), (moved * self._known).sum(axis=1)])

    def _moved(self, objective: FloatArray, change: FloatArray) -> FloatArray:
        """Return how the variables move if the costs of all variables change: (r, n_variables) -> the same."""
        lengths = norms(objective)[:, None]
        moved = conic_derivative(self._solver.region, self._solver.solutions(objective), change)
        return moved / np.where(lengths > 0, lengths, 1.0)

    @property
    def missing(self) -> dict[str, str]:
        """Why there is no polyhedron, and why decisions have no derivative in the costs, if so."""
        kinds, missing = {kind for kind, *_ in self._solver.region.cones}, {"polyhedron": "its region has cones"}
        if self._other is not None:
            missing["derivative"] = f"{self._other.name} solves it, which tells none"
        elif kinds & {"PowerConeT", "GenPowerConeT"}:
            missing["derivative"] = "that of a power cone is not written"
        elif not kinds & {*CURVED}:
            missing["derivative"] = "all its constraints are linear, so that decisions jump between vertices"
        return missing

    def _check_no_line(self) -> None:
        """Raise if the region contains whole lines that predicted costs see: almost any costs fall without end there.

        A region that is unbounded to one side may be meant, for costs that never point there.
        """
        A = self._solver.region.A
        if np.prod(A.shape) > _MOST_ENTRIES:
            return
        rows = A.toarray()
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
        if len(rows) > rows.shape[1]:
            rows = np.linalg.qr(rows, mode="r")  # with the same lines
        _, values, axes = np.linalg.svd(rows)
        lines = axes[int((values > len(axes) * np.finfo(float).eps * values.max(initial=0.0)).sum()) :]
        seen = np.abs(lines @ self._map.T).max(axis=1, initial=0.0) > 1e-9
        if seen.any():
            j = int(np.abs(lines[seen][0]).argmax())
            raise ValueError(
                f"the region is unbounded: it contains a line along which {self.names[j]!r} has any value, so that "
                "almost any costs fall without end. Bound the variables, or check that the constraints hold them all."
            )


def _as_cones(cones: Any) -> list[ConeRows]:
    """Return the rows of each cone; one cone need not be in a list."""
    return [as_cone(cone).rows() for cone in ([cones] if isinstance(cones, Cone | Mapping) else cones)]


def _joined(
    inequalities: tuple[csr_array, FloatArray],
    equalities: tuple[csr_array, FloatArray],
    lower: FloatArray,
    upper: FloatArray,
    parts: list[ConeRows],
) -> ConicRegion:
    """Return all constraints as one; a variable whose bounds are equal is an equation, since cones need an interior."""
    unit = csr_array(eye_array(len(lower)))
    fixed = lower == upper
    below, above = np.isfinite(lower) & ~fixed, np.isfinite(upper) & ~fixed
    zero = [equalities, (unit[fixed], lower[fixed])]
    nonnegative = [inequalities, (unit[above], upper[above]), (-unit[below], -lower[below])]
    blocks = [*zero, *nonnegative, *((part.A, part.b) for part in parts)]
    kinds = [("ZeroConeT", sum(len(b) for _, b in zero)), ("NonnegativeConeT", sum(len(b) for _, b in nonnegative))]
    return ConicRegion(
        A=csc_array(vstack([A for A, _ in blocks], format="csc")),
        b=np.concatenate([b for _, b in blocks]),
        cones=(*(kind for kind in kinds if kind[1]), *(kind for part in parts for kind in part.cones)),
    )
