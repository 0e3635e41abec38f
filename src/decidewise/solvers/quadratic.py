"""Optimal points of a convex quadratic program, for many rows of costs.

DAQP, an active set in C, solves what is small: it is set up once, and starts anew for every row, so that an answer
depends on its own row alone. Clarabel solves what is large, and rows in which DAQP fails. Every answer is checked with
its multipliers: it keeps all constraints, and no other point can be better by more than rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, vstack

from decidewise.kit.batches import check_time
from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.errors import SolverError, at_rows
from decidewise.solvers.conic import ConicRegion, ConicSolver
from decidewise.solvers.program import FEASIBLE, Program

#: Up to so many variables DAQP, whose matrices are dense, is faster than Clarabel; and so many constraints each.
_MOST_VARIABLES, _MOST_ROWS_EACH = 200, 5
#: Below this ratio of its eigenvalues a matrix is singular to DAQP.
_SINGULAR = 1e-9
#: The sum of squared parts along constraints, of length 1, below which a direction keeps them all.
_DEPENDENT = 1e-10
#: How many entries of matrices of all rows are held at once.
_MOST_ENTRIES = 2**21
#: What an answer may lack, relative to what is added up: of DAQP, which is exact but for rounding, and of Clarabel.
_EXACT, _NEAR = 1e-9, 1e-6
#: What part of the objective at the largest bound counts as small.
_SMALL = 1e-3
#: The damping of the proximal method, relative to `Q`; by how much of the costs a step may change them at its end, and
#: after how many steps it gives up.
_DAMPING, _STILL, _MOST_STEPS = 1e-5, 1e-15, 100


class QuadraticSolutions(NamedTuple):
    """Optimal points (r, n), and the multipliers of variables, then of rows (r, n + m): `Qw + c + z + Aᵀy = 0`.

    A multiplier is positive at an upper bound and negative at a lower one; `binding` says which bounds determine the
    point.
    """

    points: FloatArray
    prices: FloatArray
    binding: BoolArray

    @classmethod
    def empty(cls, n_rows: int, shape: tuple[int, int]) -> QuadraticSolutions:
        """Return room for so many rows, of a program of `m` rows and `n` variables, `shape`."""
        m, n = shape
        prices = np.full((n_rows, n + m), np.nan)
        return cls(np.full((n_rows, n), np.nan), prices, np.zeros(prices.shape, dtype=bool))

    def take(self, rows: BoolArray) -> QuadraticSolutions:
        """Return some rows."""
        return QuadraticSolutions(self.points[rows], self.prices[rows], self.binding[rows])

    def put(self, rows: IntArray, solutions: QuadraticSolutions) -> None:
        """Replace some rows."""
        for own, new in zip(self, solutions, strict=True):
            own[rows] = new


@dataclass
class QuadraticSolver:
    """Minimise `c·w + ½ w'Qw` over a program without whole numbers, for rows of costs, from any number of threads.

    Parameters
    ----------
    program : Program
        With the widest bounds of all rows, if they differ by row.
    quadratic : csr_array of shape (n, n)
        `Q`, symmetric and positive semidefinite.
    time_limit : float, optional
        Seconds for one row.
    keep_going : bool
        Whether a row that fails becomes NaN. Otherwise it is a `SolverError`.
    """

    program: Program
    quadratic: csr_array
    time_limit: float | None = None
    keep_going: bool = False
    _idle: list[_ActiveSet] = field(default_factory=list, repr=False, compare=False)
    # The last batch with its solutions: its derivative is often asked for next.
    _last: tuple[FloatArray, QuadraticSolutions] | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": [], "_last": None}  # DAQP stays in its process

    def minimize(self, costs: FloatArray, bounds: Program | None = None) -> FloatArray:
        """Return an optimal point for each row of costs, (r, n) -> (r, n), within the bounds of the row if given."""
        solutions = self._solve(costs, bounds)
        self._last = costs.copy(), solutions
        return solutions.points.copy()

    def solutions(self, costs: FloatArray, bounds: Program | None = None) -> QuadraticSolutions:
        """Return the optimal points of costs (r, n) with multipliers; of the batch solved last, from memory."""
        last = self._last
        same = last is not None and bounds is None and np.array_equal(last[0], costs)
        return last[1] if last is not None and same else self._solve(costs, bounds)

    def derivative(self, solutions: QuadraticSolutions, vectors: FloatArray) -> FloatArray:
        """Return `J v` of each row, with `J` the Jacobian of the point in the costs: (r, n) -> (r, n).

        With `P` the projection on the directions that keep what binds, `J = -(P Q P)⁺`, the pseudoinverse: along
        directions without curvature points do not move, but jump elsewhere.
        """
        n = vectors.shape[1]
        G, Q, moved = self._constraints, self.quadratic.toarray(), np.empty_like(vectors)
        G = G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), np.finfo(float).tiny)
        for part in np.array_split(np.arange(len(vectors)), 1 + vectors.size * n // _MOST_ENTRIES):
            binding = solutions.binding[part].astype(float)
            eigenvalues, axes = np.linalg.eigh((G.T * binding[:, None]) @ G)
            axes *= (eigenvalues < _DEPENDENT)[:, None]
            P = axes @ axes.transpose(0, 2, 1)
            curvature = P @ Q @ P
            inverse = np.linalg.pinv((curvature + curvature.transpose(0, 2, 1)) / 2, _SINGULAR, hermitian=True)
            moved[part] = -(inverse @ vectors[part][..., None])[..., 0]
        return moved

    def _solve(self, costs: FloatArray, bounds: Program | None) -> QuadraticSolutions:
        solutions = QuadraticSolutions.empty(len(costs), self.program.A.shape)
        rows = np.arange(len(costs))
        if self._curved is not None:
            # Each thread takes a worker of its own. One that was interrupted does not come back.
            worker = (
                self._idle.pop() if self._idle else _ActiveSet(self.program, self._curved, self._unit, self.time_limit)
            )
            found = worker.solve(costs, bounds)
            self._idle.append(worker)
            proved = self._proved(found, costs, bounds, _EXACT)
            solutions.put(rows[proved], found.take(proved))
            rows = rows[~proved]
        if len(rows):
            within = bounds and bounds.take(rows)
            with at_rows(rows):
                found = self._by_clarabel(costs[rows], within)
            failed = ~self._proved(found, costs[rows], within, _NEAR)
            unexplained = np.flatnonzero(failed & ~np.isnan(found.points).any(axis=1))
            if len(unexplained) and not self.keep_going:
                raise SolverError(
                    "neither DAQP nor Clarabel finds a decision that is proved to be optimal. The problem may be badly "
                    "scaled: bring rows, variables and costs to similar sizes.",
                    row=int(rows[unexplained[0]]),
                )
            found.points[failed] = np.nan
            solutions.put(rows, found)
        return solutions

    def _proved(
        self, solutions: QuadraticSolutions, costs: FloatArray, bounds: Program | None, tolerance: float
    ) -> BoolArray:
        """Return which points are feasible and, by their multipliers, optimal: (r,).

        The gradient of the Lagrangian must vanish, and each multiplier belong to a bound that binds. What the products
        of multipliers and distances add up to is how much better another point could be.
        """
        program, n = bounds or self.program, costs.shape[1]
        points, prices = solutions.points, solutions.prices
        values = program.values(points)
        parts = [costs, (self.quadratic @ points.T).T, prices[:, :n], prices[:, n:] @ program.A]
        left, size = np.abs(sum(parts)), sum(map(np.abs, parts))
        with np.errstate(invalid="ignore"):
            lost = np.where(prices > 0, prices * (program.all_upper - values), prices * (program.all_lower - values))
        lost[prices == 0] = 0.0
        stakes = np.abs(points * parts[0]) + np.abs(points * parts[1])
        total = stakes.sum(axis=1) + np.abs(prices * values).sum(axis=1)
        # Near costs of zero everything is small, and what a point at a bound would cost tells the size.
        slope = _SMALL * float(abs(self.quadratic).max()) * self._unit
        is_level = left.max(axis=1) <= tolerance * (size.max(axis=1) + slope)
        is_tight = np.abs(lost).sum(axis=1) <= tolerance * (total + slope * self._unit)
        return np.asarray(is_level & is_tight & ~program.violated(values, max(FEASIBLE, tolerance)).any(axis=1))

    @cached_property
    def _unit(self) -> float:
        """About the largest bound, or 1: a power of two, by which nothing is rounded."""
        bounds = np.abs(np.concatenate([self.program.lower, self.program.upper]))
        largest = bounds.max(initial=0.0, where=np.isfinite(bounds))
        return float(2.0 ** np.round(np.log2(largest))) if largest > 0 else 1.0

    @cached_property
    def _constraints(self) -> FloatArray:
        """The rows of variables, then of constraints: (n + m, n)."""
        return np.vstack([np.eye(self.program.A.shape[1]), self.program.A.toarray()])

    @cached_property
    def _curved(self) -> _Curved | None:
        """The objective for DAQP, or None if the program is large."""
        m, n = self.program.A.shape
        if n > _MOST_VARIABLES or m > _MOST_ROWS_EACH * n:
            return None
        equal = np.asarray(self.program.all_lower == self.program.all_upper)  # in all rows of costs
        matrix, weighted = self.quadratic.toarray(), self._constraints[equal]
        size = np.diag(matrix).max()
        if equal.any():
            square = weighted.T @ weighted
            factor = size / np.diag(square).max()
            matrix += factor * square
            weighted = factor * weighted
        eigenvalues = np.linalg.eigvalsh(matrix)
        damping = 0.0 if eigenvalues[0] > _SINGULAR * eigenvalues[-1] else float(_DAMPING * size)
        return _Curved(matrix + damping * np.eye(n), damping, equal, weighted)

    def _by_clarabel(self, costs: FloatArray, bounds: Program | None) -> QuadraticSolutions:
        if bounds is None:
            return self._cones.solve(costs)
        solutions = QuadraticSolutions.empty(len(costs), self.program.A.shape)
        for row in range(len(costs)):
            cones = _Cones(bounds.take(row), self.quadratic, self.time_limit, self.keep_going)
            with at_rows([row]):
                solutions.put(np.array([row]), cones.solve(costs[row : row + 1]))
        return solutions

    @cached_property
    def _cones(self) -> _Cones:
        return _Cones(self.program, self.quadratic, self.time_limit, self.keep_going)


@dataclass(frozen=True)
class _Curved:
    """A positive definite matrix with the optima of `Q`.

    A multiple of `EᵀE` adds to the objective over the equations `E w = e` what is linear, and no more. It makes up for
    directions in which `Q` is flat, such as those of variables that others determine. If some are left, a multiple of
    the squared distance from the last point is added, again and again until the points stay (the proximal method).

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        `Q + WᵀE + damping I`.
    damping : float
    equal : ndarray of shape (n + m,)
        The equations among the bounds of variables and rows.
    weighted : ndarray of shape (k, n)
        `W`, a multiple of `E`.
    """

    matrix: FloatArray
    damping: float
    equal: BoolArray
    weighted: FloatArray


class _ActiveSet:
    """DAQP with one program in it; in one thread at a time.

    Its tolerances are absolute, so it is given variables in units of the largest bound, and a matrix of size 1.
    """

    def __init__(self, program: Program, curved: _Curved, unit: float, time_limit: float | None) -> None:
        import daqp  # noqa: PLC0415  (no other problem needs it)

        self.program, self.curved, self.unit = program, curved, unit
        self.size = 2.0 ** np.round(np.log2(np.diag(curved.matrix).max()))
        self.damping = curved.damping / self.size
        self.kinds = np.where(curved.equal, 5, 0).astype(np.intc)  # 5 is an equation
        self.model = daqp.Model()
        self.model.settings = {"primal_tol": 1e-11, "time_limit": time_limit or 0.0}  # 0 is none
        upper, lower = self._sides(program)
        n = program.A.shape[1]
        self.model.setup(curved.matrix / self.size, np.zeros(n), program.A.toarray(), upper, lower, self.kinds)

    def solve(self, costs: FloatArray, bounds: Program | None) -> QuadraticSolutions:
        """Solve all rows; where DAQP fails, a row has NaN."""
        solutions = QuadraticSolutions.empty(len(costs), self.program.A.shape)
        program = bounds or self.program
        upper, lower = self._sides(program)
        shift = program.all_lower[..., self.curved.equal] @ self.curved.weighted
        linear = (costs - shift) / (self.size * self.unit)
        for row, f in enumerate(linear):
            check_time()
            # The kinds are those of the start, so that the search begins without anything of the last row.
            if bounds is None:
                self.model.update(f=f, sense=self.kinds)
            else:
                self.model.update(f=f, bupper=upper[row], blower=lower[row], sense=self.kinds)
            point, _, flag, details = self.model.solve()
            if self.damping and flag == 1:
                point, flag, details = self._settle(f, point, details)
            if flag == 1:
                solutions.points[row], solutions.prices[row] = point, details["lam"]
        solutions.points[:] = np.clip(self.unit * solutions.points, program.lower, program.upper)
        solutions.prices[:] *= self.size * self.unit
        solutions.binding[:] = (solutions.prices != 0) | self.curved.equal
        return solutions

    def _settle(self, f: FloatArray, point: FloatArray, details: Any) -> tuple[FloatArray, int, Any]:
        """Return the point where the points of the proximal method stay, what DAQP says of it, and its multipliers."""
        flag, last, still = 1, np.zeros_like(point), _STILL * (1.0 + np.abs(f).max())
        for _ in range(_MOST_STEPS):
            if flag != 1 or self.damping * np.abs(point - last).max() <= still:
                return point, flag, details
            last = np.array(point)
            self.model.update(f=f - self.damping * last)
            point, _, flag, details = self.model.solve()
        return point, 0, details

    def _sides(self, program: Program) -> tuple[FloatArray, FloatArray]:
        """Return upper and lower bounds in units; 1e30 is infinite for DAQP."""
        sides = (np.clip(side / self.unit, -1e30, 1e30) for side in (program.all_upper, program.all_lower))
        upper, lower = (np.ascontiguousarray(side) for side in sides)
        return upper, lower


class _Cones:
    """The same program for Clarabel."""

    def __init__(self, program: Program, quadratic: csr_array, time_limit: float | None, keep_going: bool) -> None:
        self.program = program
        A = csr_array(vstack([eye_array(program.A.shape[1]), program.A], format="csr"))
        lower, upper = program.all_lower, program.all_upper
        equal = lower == upper
        above, below = np.isfinite(upper) & ~equal, np.isfinite(lower) & ~equal
        self.places = [np.flatnonzero(kind) for kind in (equal, above, below)]
        sizes = [("ZeroConeT", int(equal.sum())), ("NonnegativeConeT", int(above.sum() + below.sum()))]
        region = ConicRegion(
            A=csc_array(vstack([A[equal], A[above], -A[below]], format="csc")),
            b=np.concatenate([upper[equal], upper[above], -lower[below]]),
            cones=tuple(kind for kind in sizes if kind[1]),
        )
        self.size = float(abs(quadratic).max())
        self.solver = ConicSolver(region, time_limit, keep_going, quadratic=csc_array(quadratic / self.size))

    def solve(self, costs: FloatArray) -> QuadraticSolutions:
        """Return optimal points, to the tolerance of Clarabel."""
        found = self.solver.solutions(costs / self.size)
        solutions = QuadraticSolutions.empty(len(costs), self.program.A.shape)
        solutions.points[:] = np.clip(found.points, self.program.lower, self.program.upper)
        prices = self.size * found.duals
        solutions.prices[:] = 0.0
        first = 0
        for places, sign in zip(self.places, (1, 1, -1), strict=True):
            rows = slice(first, first := first + len(places))
            solutions.prices[:, places] += sign * prices[:, rows]
            is_free = (rows.start >= len(self.places[0])) & ~(found.duals[:, rows] > found.slacks[:, rows])
            solutions.binding[:, places] |= ~is_free
        return solutions
