"""A linear program with a known convex quadratic term, such as risk, wear that grows with power, or smoothness.

DAQP and Clarabel solve it (see `decidewise.solvers.quadratic`). The quadratic term is the same for all rows of costs;
right-hand sides, bounds and known costs may differ by row, as those of a linear program.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Unpack

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import eigsh, splu

from decidewise.kit.checks import BoolArray, FloatArray
from decidewise.kit.errors import at_rows
from decidewise.problems.contract import Problem, Sense
from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.mapped_problem import ProgramOptions
from decidewise.problems.mapped_problem.arguments import ROUNDING, as_symmetric, count_variables
from decidewise.solvers import Polyhedron
from decidewise.solvers.others import OtherSolver
from decidewise.solvers.quadratic import QuadraticSolver

#: What to say of whole numbers beside squares or cones.
WHOLE = (
    'some variables are in whole numbers, which neither DAQP nor Clarabel solves. Pass solver="scip" or "gurobi", or '
    "write it by linear pieces."
)
# Up to this size all eigenvalues of a dense matrix take less than a second.
_DENSE = 1_500


class QuadraticProgram(LinearProgram):
    """Minimise `costs·(M w) + known·w + ½ w'Qw + offset`, with `Q` known, over the region of a `LinearProgram`.

    A decision is `M w`: how much of each predicted cost is paid. What is known, the quadratic term included, is one
    more cost of the lifted problem, whose decisions are `(M w, known·w + ½ w'Qw + offset)`: losses, regrets and models
    see these, as they see known costs. A lifted cost of the known part scales it. At 0 the linear program of the
    predicted costs is left, and solved as such. Below 0 the objective would be concave, which is refused; no loss asks
    for that: `2 ĉ - c` of SPO+ has the known part once, and noise leaves it alone.

    DAQP solves programs of up to 200 variables, exactly but for rounding, and Clarabel larger ones, as a
    `ConicProgram`: the value to about 1e-10, the decision less exactly.

    Ties: none where the decision is unique; all optimal ones have the same `Q w`. Of several the decision is near the
    one of least length: DAQP follows the proximal method from zero, with a step so long that its first point is that
    one but for about 1e-2. In larger programs it lies inside the face of all optimal ones, on the way to its analytic
    centre.

    Tolerances: bounds hold exactly; a decision of DAQP breaks no constraint by more than 1e-9 of what is added up
    there, or of 1 if that is more, and one of Clarabel by no more than 1e-6. Every decision is proved to be optimal by
    its multipliers; one that is not is a `SolverError`.

    Parameters
    ----------
    quadratic : array-like or sparse, of shape (n, n)
        `Q`, symmetric, and positive semidefinite for "min". It belongs to the objective, as known costs do: for "max"
        it must be negative semidefinite, such as minus a risk.
    A_ub, b_ub, A_eq, b_eq, lower, upper
        As of `LinearProgram`. Mind that `lower` is zero by default.
    integrality, costs, known, offset, sense, names, time_limit, gap, on_limit, on_error
        As of `LinearProgram`.
    solver : {"scip", "gurobi"}, optional
        Who solves in the place of DAQP and Clarabel, to about 1e-5 of the value; needed for whole numbers.

    Attributes
    ----------
    n_costs, n_variables, n_rows, names, constraint_names, B_S
        As of `LinearProgram`.

    Examples
    --------
    A portfolio of the largest return less four times half its variance:

    >>> risk = np.array([[1.0, 0.2, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 2.0]])
    >>> portfolio = QuadraticProgram(-4 * risk, A_eq=[[1.0, 1.0, 1.0]], b_eq=[1.0], sense="max")
    >>> portfolio
    QuadraticProgram(n_costs=3, sense='max')
    >>> portfolio.solve([[1.0, 1.0, 1.0], [3.0, 0.0, 1.0]]).round(3)
    array([[0.385, 0.385, 0.231],
           [0.833, 0.   , 0.167]])

    The first hour may be used less on the second day:

    >>> shifts = QuadraticProgram(np.eye(3), A_eq=[[1.0, 1.0, 1.0]], b_eq=[3.0])
    >>> shifts.by_row(upper={"w0": [3.0, 0.5]}).solve([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    array([[2.  , 1.  , 0.  ],
           [0.5 , 1.75, 0.75]])
    """

    faces: Literal["flat", "curved", "unknown"] = "curved"

    def __init__(
        self,
        quadratic: Any,
        A_ub: Any = None,
        b_ub: Any = None,
        A_eq: Any = None,
        b_eq: Any = None,
        lower: Any = 0.0,
        upper: Any = np.inf,
        **options: Unpack[ProgramOptions],
    ) -> None:
        Q = as_symmetric(quadratic, name="quadratic", form="wᵀQw")
        size = Q.shape[0]
        if options.get("names") is None:
            options["names"] = [f"w{j}" for j in range(size)]
        n = count_variables(A_ub, A_eq, lower, upper, options.get("known"), options["names"])
        if n != size:
            raise ValueError(
                f"quadratic must have one row and one column for each of the {n} variables; got a shape of {Q.shape}."
            )
        super().__init__(A_ub, b_ub, A_eq, b_eq, lower, upper, **options)
        if self._whole is not None:
            self.faces = "unknown"
            if not isinstance(self._solver, OtherSolver):
                raise ValueError(f"the objective is quadratic, and {WHOLE}")
        self._may_be_recognised = False
        self._quadratic = csr_array(self._sign * Q)
        _check_convex(self._quadratic, self.sense)

    def _set_region(self, region: Polyhedron, known: FloatArray) -> None:
        super()._set_region(region, known)
        self.has_known = True
        self.__dict__.pop("_curved_solver", None)

    @cached_property
    def _curved_solver(self) -> Any:
        if isinstance(self._solver, OtherSolver):
            return replace(self._solver, quadratic=self._quadratic, _idle=[])
        return QuadraticSolver(
            self._program(), self._quadratic, self._solver.time_limit, keep_going=self._solver.keep_going
        )

    def _variables(self, costs: FloatArray, weight: Any) -> FloatArray:
        objective, _, is_flat = self._scaled(costs, weight)
        variables = np.empty(objective.shape)
        solvers: list[tuple[Any, Any]] = [(self._solver, is_flat), (self._curved_solver, ~is_flat)]
        for solver, chosen in solvers:
            rows = np.flatnonzero(chosen)
            if len(rows):
                with at_rows(rows):
                    variables[rows] = solver.minimize(objective[rows], self._bounds and self._bounds.take(rows))
        return variables

    def _scaled(self, costs: FloatArray, weight: Any) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return the costs of variables that leave `½ w'Qw` as it is, its weights (r,), and where it does not count."""
        objective, weights = self._objective(costs, weight), np.broadcast_to(np.ravel(weight), len(costs))
        if (weights < 0).any():
            row = int((weights < 0).argmax())
            raise ValueError(
                f"row {row}: the cost of the known part is {weights[row]:g}, and {type(self).__name__} has a quadratic "
                "term, which is convex only if it counts with a cost of at least 0. The cost of the known part is 1, "
                "or what a lifted model predicts for it: keep it positive."
            )
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            scaled = objective / weights[:, None]
        is_flat = ~np.isfinite(scaled).all(axis=1) | (self._quadratic.nnz == 0)  # also where float64 cannot tell
        return np.where(is_flat[:, None], objective, scaled), weights, is_flat

    def _known_part(self, variables: FloatArray) -> FloatArray:
        return super()._known_part(variables) + (variables * self._bent(variables)).sum(axis=1) / 2

    def _bent(self, variables: FloatArray) -> FloatArray:
        """Return `Q w`: (r, n_variables) -> the same."""
        return np.asarray((self._quadratic @ variables.T).T)

    def derivative(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `J v` of each row, from the equations of what binds."""
        return self._decisions(self._moved(costs, 1.0, vectors @ self._map)[0])

    def derivative_lifted(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `J v` of the lifted decisions; zero where the known part costs nothing, as of a linear program."""
        moved, slopes = self._moved(costs[:, :-1], costs[:, -1:], vectors[:, :-1] @ self._map, vectors[:, -1:])
        return np.column_stack([self._decisions(moved), (moved * slopes).sum(axis=1)])

    def _moved(
        self, costs: FloatArray, weight: Any, change: FloatArray, of_weight: Any = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return how variables move if their costs change, and the weight; and the gradients of the known part."""
        objective, weights, is_flat = self._scaled(costs, weight)
        rows, bounds = np.flatnonzero(~is_flat), self._bounds
        moved, slopes = np.zeros((2, *objective.shape))
        solutions = self._curved_solver.solutions(objective[rows], bounds and bounds.take(rows))
        slopes[rows] = np.broadcast_to(self._known, objective.shape)[rows] + self._bent(solutions.points)
        moved[rows] = self._curved_solver.derivative(solutions, (change + of_weight * slopes)[rows])
        moved[rows] /= weights[rows, None]
        return moved, slopes

    @property
    def _no_relaxation(self) -> str:
        return "it has a quadratic term, so that decisions need not be vertices"

    @property
    def in_variables(self) -> Problem:
        """The lifted view."""
        return self.lifted

    # That of a linear program forgets the quadratic term.
    minimize_relaxation = Problem.minimize_relaxation  # type: ignore[assignment]


def _check_convex(Q: csr_array, sense: Sense) -> None:
    """Raise unless the quadratic term of a minimisation is positive semidefinite."""
    used = np.flatnonzero(np.diff(Q.indptr))  # a row of zeros is a column of zeros
    if not len(used):
        return
    part, rounding = Q[used][:, used], ROUNDING * len(used) * abs(Q).max()
    if len(used) <= _DENSE:
        smallest = np.linalg.eigvalsh(part.toarray())[0]
    elif _has_positive_pivots(part + rounding * eye_array(len(used))):
        return
    else:
        start = np.random.default_rng(0).normal(size=len(used))
        smallest = eigsh(part, k=1, which="SA", tol=1e-4, v0=start, return_eigenvectors=False)[0]
    if smallest < -rounding:
        if sense == "max":
            raise ValueError(
                'quadratic must be negative semidefinite for sense="max", for the objective to be concave; its largest '
                f"eigenvalue is {-smallest:.3g}. Pass minus what is to be small, such as -risk."
            )
        raise ValueError(
            "quadratic must be positive semidefinite, for the objective to be convex; its smallest eigenvalue is "
            f"{smallest:.3g}."
        )


def _has_positive_pivots(matrix: csr_array) -> bool:
    """Return whether a large symmetric matrix is positive definite: a factorisation tells it sooner than eigenvalues.

    Those near zero, of which smooth schedules have many, take the Lanczos method for ever.
    """
    options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        return bool((splu(csc_array(matrix), **options).U.diagonal() > 0).all())
    except RuntimeError:  # a pivot is zero
        return False
