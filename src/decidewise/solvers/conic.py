"""Optimal points of a conic program, for many rows of costs.

Clarabel solves them. It is set up once for a region and starts anew for every row, so that an answer depends on its own
row alone. It runs without presolve and without splitting semidefinite cones: after these it takes no new costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csc_array, triu

from decidewise.kit.batches import check_time, in_thread
from decidewise.kit.checks import BoolArray, FloatArray
from decidewise.kit.errors import SolverError
from decidewise.kit.scaling import unit_rows

#: A kind of cone: the name of Clarabel's class, and its arguments (a dimension, a size or an exponent).
Kind = tuple[Any, ...]

#: What Clarabel aims at and what is accepted if it gets no further, for feasibility and for the gap, relative to the
#: values that they compare, and how much of the longest step it takes; one attempt after another. Where a
#: second-order and an exponential cone meet, a quarter of the first attempts get stuck; shorter steps often do not.
_ATTEMPTS = ((1e-10, 1e-9, 0.99), (1e-10, 1e-9, 0.9), (1e-9, 1e-8, 0.7), (1e-8, 1e-6, 0.99), (1e-8, 1e-6, 0.9))
#: By how much, relative to its size, an answer may break a constraint.
_TOLERANCE = 1e-6
#: The bits of a cost that count: multiplying a row by a number changes the last ones of 53.
_BITS = 40
#: Up to this much work a step, a row takes milliseconds at most, so that interrupts can wait for its end.
_LITTLE_WORK = 2_000


@dataclass(frozen=True)
class ConicRegion:
    """The set `{w : b - A w in K}`, where `K` is a product of cones.

    Parameters
    ----------
    A : csc_array of shape (m, n)
    b : ndarray of shape (m,)
    cones : tuple of Kind
        In the order of the rows.
    """

    A: csc_array
    b: FloatArray
    cones: tuple[Kind, ...]

    @property
    def is_small(self) -> bool:
        """Whether a step of Clarabel takes less than about a tenth of a millisecond."""
        cubes = sum(kind[1] ** 3 for kind in self.cones if kind[0] == "PSDTriangleConeT")
        return bool(self.A.nnz + cubes <= _LITTLE_WORK)

    @property
    def blocks(self) -> Iterator[tuple[str, list[Any], slice]]:
        """The kind of each cone, its arguments, and its rows."""
        first = 0
        for kind, *arguments in self.cones:
            yield kind, arguments, slice(first, first := first + n_rows_of(kind, *arguments))

    @cached_property
    def _columns(self) -> tuple[Any, Any]:
        """`Aᵀ` and its absolute values, which are multiplied faster if they are dense and small."""
        columns = self.A.T.toarray() if self.is_small else self.A.T
        return columns, abs(columns)

    def holds(self, points: FloatArray) -> BoolArray:
        """Return which points (r, n) keep all constraints but for `_TOLERANCE`, relative to their sizes: (r,).

        That is the size of the two sides of a constraint, `b` and the slacks. Where `b` is zero, the largest `b` counts
        in its place; and a linear row is as large as its largest terms, too.
        """
        slacks, terms = self.b - points @ self._columns[0], np.abs(points) @ self._columns[1]
        largest = np.abs(self.b).max(initial=0.0) or 1.0  # a cone alone has no size, and its best point is its apex
        held = np.ones(len(points), dtype=bool)
        for kind, arguments, rows in self.blocks:
            s, b = slacks[:, rows], np.abs(self.b[rows])
            if kind in ("ZeroConeT", "NonnegativeConeT"):
                allowed = _TOLERANCE * np.maximum(np.where(b > 0, b, largest), terms[:, rows])
                held &= ((np.abs(s) if kind == "ZeroConeT" else -s) <= allowed).all(axis=1)
            else:
                sizes = np.maximum(b.max() or largest, np.abs(s).max(axis=1))
                held &= _is_near(kind, arguments, s.T, _TOLERANCE * sizes)
        return held


@dataclass(frozen=True)
class ConicSolutions:
    """Optimal points (r, n) for costs of unit length, with `s = b - A w` and the duals `z` (r, m): `q + Aᵀz = 0`."""

    units: FloatArray
    points: FloatArray
    slacks: FloatArray
    duals: FloatArray


@dataclass
class ConicSolver:
    """Optimal points of one region for rows of costs, from any number of threads.

    Rows are scaled to length 1 and rounded to 40 bits, so that `a * c` gives the same bits as `c` if `a` is a power of
    two, and but for some thousandth of all rows for any other `a > 0`. With a quadratic term, costs stay as they are.

    Parameters
    ----------
    region : ConicRegion
    time_limit : float, optional
        Seconds for one row.
    keep_going : bool
        Whether a row that fails becomes NaN. Otherwise it is a `SolverError`.
    quadratic : csc_array of shape (n, n), optional
        `Q`, symmetric and positive semidefinite: then `½ w'Qw` is part of the objective.
    """

    region: ConicRegion
    time_limit: float | None = None
    keep_going: bool = False
    quadratic: csc_array | None = None
    _idle: list[_Clarabel] = field(default_factory=list, repr=False, compare=False)
    # The solutions of the last batch: its derivative is often asked for next.
    _last: ConicSolutions | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": [], "_last": None}  # Clarabel stays in its process

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return an optimal point for each row of costs: (r, n) -> (r, n)."""
        self._last = solutions = self._solve(self._units(costs))
        return solutions.points.copy()

    def solutions(self, costs: FloatArray) -> ConicSolutions:
        """Return the optimal points of costs (r, n) with slacks and duals; of the batch solved last, from memory."""
        units, last = self._units(costs), self._last
        return last if last is not None and np.array_equal(last.units, units) else self._solve(units)

    def _units(self, costs: FloatArray) -> FloatArray:
        return _rounded(unit_rows(costs)) if self.quadratic is None else costs

    def _solve(self, units: FloatArray) -> ConicSolutions:
        points = np.full(units.shape, np.nan)
        slacks, duals = np.full((2, len(units), len(self.region.b)), np.nan)
        solutions = ConicSolutions(units, points, slacks, duals)
        check_time()
        clock = _Clock(np.inf if self.time_limit is None else self.time_limit)
        # Clarabel would print an interrupt and go on; another thread gets none.
        in_thread(lambda: self._minimize(solutions, clock), clock.stop)
        self._check_held(solutions)
        return solutions

    def _check_held(self, solutions: ConicSolutions) -> None:
        """Refuse points of Clarabel, which measures by the largest variables, that do not keep a constraint."""
        is_answer = ~np.isnan(solutions.points).any(axis=1)
        broken = np.flatnonzero(is_answer & ~self.region.holds(solutions.points))
        if len(broken) and not self.keep_going:
            raise SolverError(
                f"Clarabel's answer breaks a constraint by more than {_TOLERANCE:g} of its size. {_HARD}",
                row=int(broken[0]),
            )
        solutions.points[broken] = solutions.slacks[broken] = solutions.duals[broken] = np.nan

    def is_empty(self) -> bool:
        """Return whether no point lies in the region, as far as Clarabel can tell."""
        solver, clock = _Clarabel(self.region, *_ATTEMPTS[0]), _Clock(np.inf)
        solver.obey(clock)
        status, *_ = in_thread(lambda: solver.run(np.zeros(self.region.A.shape[1])), clock.stop)
        return status.endswith("PrimalInfeasible")

    def _minimize(self, solutions: ConicSolutions, clock: _Clock) -> None:
        """Solve all rows, in place."""
        first = None
        for row, unit in enumerate(solutions.units):
            if first is None:
                # Each thread takes a solver of its own. One that failed or was interrupted does not come back.
                first = self._idle.pop() if self._idle else _Clarabel(self.region, *_ATTEMPTS[0], self.quadratic)
                if self.time_limit is not None or not self.region.is_small:  # asking after each step takes a tenth
                    first.obey(clock)
            clock.start()
            status, *found = first.run(unit)
            if status not in _ANSWERS:
                first = None
            for attempt in _ATTEMPTS[1:]:
                if status not in _HARD_OUTCOMES:
                    break
                again = _Clarabel(self.region, *attempt, self.quadratic)
                again.obey(clock)
                status, *found = again.run(unit)
            if clock.stopped:
                break
            if status in _ANSWERS:
                solutions.points[row], solutions.slacks[row], solutions.duals[row] = found
                continue
            if not self.keep_going:
                advice = _ADVICE.get(status.removeprefix("Almost"), _HARD)
                raise SolverError(f"Clarabel ended with status {status!r}. {advice}", row=row)
        if first is not None and not clock.stopped:
            self._idle.append(first)


_ANSWERS = ("Solved", "AlmostSolved")
#: Of an attempt that may do better if it aims at less.
_HARD_OUTCOMES = ("InsufficientProgress", "NumericalError", "MaxIterations")
_HARD = "The problem may be badly scaled: bring rows and variables to similar sizes, or give the region an interior."
_ADVICE = {
    "PrimalInfeasible": "No decision keeps all constraints: look for the last one added, or a bound that is too tight.",
    "DualInfeasible": (
        "The region is unbounded, and the cost falls without end: bound the variables, or check the sense and the "
        "signs of the costs."
    ),
    "CallbackTerminated": "The time limit was reached: raise time_limit.",
}


class _Clock:
    """Tells Clarabel, after each of its steps, whether to stop."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end, self.stopped = seconds, np.inf, False

    def start(self) -> None:
        self.end = perf_counter() + self.seconds

    def stop(self) -> None:
        self.stopped = True

    def is_over(self) -> bool:
        return self.stopped or perf_counter() > self.end


class _Clarabel:
    """Clarabel with one region in it, to be solved for one cost vector after another; in one thread at a time.

    Of a region of points far below 1, Clarabel is given the multiple whose largest `b` is about 1, since it takes a gap
    of 1e-10 for none. Cones are cones: the points of the multiple are multiples of the points.
    """

    def __init__(
        self, region: ConicRegion, aim: float, accepted: float, step: float, quadratic: csc_array | None = None
    ) -> None:
        import clarabel  # noqa: PLC0415  (slow to import)

        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.presolve_enable = settings.chordal_decomposition_enable = False
        settings.max_step_fraction, settings.linesearch_backtrack_step = step, 0.95
        # More exact than its defaults, 1e-12 and ten rounds: with an aim of 1e-10 fewer rows get stuck, at no cost.
        settings.iterative_refinement_reltol = settings.iterative_refinement_abstol = 1e-15
        settings.iterative_refinement_max_iter = 50
        settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = aim
        settings.reduced_tol_feas = settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = accepted
        n, size = region.A.shape[1], np.abs(region.b).max(initial=0.0)
        self.size = min(1.0, 2.0 ** np.floor(np.log2(size))) if size > 0 else 1.0
        cones = [getattr(clarabel, name)(*arguments) for name, *arguments in region.cones]
        sides = region.b / self.size
        upper = csc_array((n, n)) if quadratic is None else csc_array(triu(self.size * quadratic, format="csc"))
        self.solver = clarabel.DefaultSolver(upper, np.zeros(n), region.A, sides, cones, settings)

    def obey(self, clock: _Clock) -> None:
        self.solver.set_termination_callback(lambda _: clock.is_over())

    def run(self, costs: FloatArray) -> tuple[str, FloatArray, FloatArray, FloatArray]:
        """Return the status, the point, its slacks and its duals for one row (n,)."""
        self.solver.update(q=costs)
        outcome = self.solver.solve()
        return (
            str(outcome.status),
            self.size * np.array(outcome.x),
            self.size * np.array(outcome.s),
            np.array(outcome.z),
        )


def n_rows_of(kind: str, *size: Any) -> int:
    """Return how many rows a cone has."""
    if kind == "PSDTriangleConeT":
        return int(size[0] * (size[0] + 1) // 2)
    if kind == "GenPowerConeT":
        return len(size[0]) + int(size[1])
    return 3 if kind in ("ExponentialConeT", "PowerConeT") else int(size[0])


def matrices(triangles: FloatArray) -> FloatArray:
    """Return symmetric matrices (..., k, k) of triangles (..., k (k + 1) / 2).

    A triangle is the upper one by columns, in which what counts twice is times √2.
    """
    size = int(np.sqrt(2 * triangles.shape[-1]))
    column, row = np.tril_indices(size)
    entries = triangles / np.where(row == column, 1.0, np.sqrt(2.0))
    symmetric = np.zeros((*triangles.shape[:-1], size, size))
    symmetric[..., row, column] = symmetric[..., column, row] = entries
    return symmetric


def triangles(symmetric: FloatArray) -> FloatArray:
    """Return what `matrices` takes."""
    column, row = np.tril_indices(symmetric.shape[-1])
    return np.asarray(symmetric[..., row, column] * np.where(row == column, 1.0, np.sqrt(2.0)))


def _is_near(kind: str, arguments: list[Any], s: FloatArray, allowed: FloatArray) -> BoolArray:
    """Return which slacks (m, r) lie in a cone, once they are moved into it by what is allowed (r,)."""
    if kind == "SecondOrderConeT":
        return np.asarray(np.linalg.norm(s[1:], axis=0) <= s[0] + allowed)
    if kind == "PSDTriangleConeT":
        bad = ~np.isfinite(s).all(axis=0)
        return np.asarray(~bad & (np.linalg.eigvalsh(matrices(np.where(bad, 0.0, s).T))[:, 0] >= -allowed))
    with np.errstate(invalid="ignore", divide="ignore"):  # of points outside
        if kind == "ExponentialConeT":
            x, y, z = s[0] - allowed, s[1] + allowed, s[2] + allowed
            return np.asarray((y > 0) & (z > 0) & (y * np.log(z / y) >= x))
        exponents = np.array(arguments[0] if kind == "GenPowerConeT" else (arguments[0], 1 - arguments[0]))
        k = len(exponents)
        product = np.prod((s[:k] + allowed) ** exponents[:, None], axis=0)
        return np.asarray((s[:k] + allowed >= 0).all(axis=0) & (np.linalg.norm(s[k:], axis=0) <= product + allowed))


def _rounded(rows: FloatArray) -> FloatArray:
    fractions, exponents = np.frexp(rows)
    return np.ldexp(np.rint(np.ldexp(fractions, _BITS)), exponents - _BITS)
