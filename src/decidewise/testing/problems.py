"""The check of a problem."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray, all_finite, as_matrix
from decidewise.problems.contract import Problem, as_problem, sign_of
from decidewise.problems.views import is_lifted, lift
from decidewise.testing.requirements import (
    ROUNDING,
    described,
    pickled,
    require,
    require_no_error,
    require_refusal,
    require_rows,
    require_same,
    shown_row,
)

_SCALES = (1e-8, 3e-5, 1 / 3, 7.7, 12_345.6, 1e8)
# The values of decisions may be this much worse than the best, relative to their terms: the tolerance of most solvers.
_OPTIMALITY = 1e-6


def check_problem(problem: Problem, *, costs: Any = None, tolerance: float = 1e-9, seed: int = 0) -> None:
    """Check that a problem keeps the contract of `Problem`.

    It checks shapes and types; that decisions are finite; that the same costs have the same decision, alone or in a
    batch, at any scale and with ties; the sense; that decisions are integers if `is_integer`, lie in the polyhedron and
    are never worse than the decision for another row; that relaxations are optimal over the polyhedron; and pickling
    and copies. If the problem has known costs, all this is checked on its lifted view too, in which a scale applies to
    predicted and known costs alike; if it differs by row, that `take` gives the same decisions.

    The decisions of a problem with `keeps_state` may depend on earlier calls, so only its shapes, feasibility and
    pickling are checked.

    Parameters
    ----------
    problem : Problem
    costs : array-like of shape (n, n_costs), optional
        Costs that suit the problem; by default 20 rows of normal numbers and 20 of small integers, with many ties. A
        problem that differs by row needs as many rows as it has, and gets as many by default.
    tolerance : float
        Two decisions count as the same if they differ by at most this, relative to their largest entry; use 0 if
        decisions come from a finite set.
    seed : int
        The seed of the default costs.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> check_problem(TopK(5, 2), tolerance=0.0)
    """
    with require_no_error(problem, "is not a valid problem"):
        as_problem(problem)
    costs = _costs_for(problem, seed) if costs is None else as_matrix(costs, n_columns=problem.n_costs)
    if problem.n_rows is not None:
        _check_rows(problem, costs, tolerance)
    if problem.has_known:
        _check_lifted(problem, costs, tolerance)
        try:
            _check_plain(problem.lifted, lift(problem.lifted, costs), tolerance)
        except AssertionError as error:
            raise AssertionError(f"the lifted view of {type(problem).__name__}: {error}") from error
    else:
        _check_plain(problem, costs, tolerance)


def _check_plain(problem: Problem, costs: FloatArray, tolerance: float) -> None:
    """Check a problem without known costs."""
    decisions = _check_decisions(problem, costs)
    _check_region(problem, decisions)
    _check_relaxation(problem, costs)
    if not problem.keeps_state:
        _check_optimal(problem, costs, decisions)
        _check_deterministic(problem, costs, decisions, tolerance)
    _check_copies(problem, costs, decisions, tolerance)
    if not problem.keeps_state:
        _check_mirrored(problem, costs, decisions, tolerance)


def mirrored(problem: Problem) -> Problem:
    """Return a copy of the problem with the other sense."""
    twin = copy.copy(problem)
    twin.sense = "min" if problem.sense == "max" else "max"
    return twin


def _costs_for(problem: Problem, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(20, problem.n_costs))
    tied = rng.integers(-2, 3, size=(20, problem.n_costs)).astype(float)
    tied[0] = 0.0
    both = np.vstack([normal, tied])
    return both if problem.n_rows is None else np.resize(both, (problem.n_rows, problem.n_costs))


def _solve(problem: Problem, costs: FloatArray) -> FloatArray:
    with require_no_error(problem, "cannot be solved"):
        return problem.solve(costs)


def _check_decisions(problem: Problem, costs: FloatArray) -> FloatArray:
    name, given = type(problem).__name__, costs.copy()
    decisions = _solve(problem, given)
    first = _solve(problem.take([0]), given[0])
    for solved, shape in ((decisions, costs.shape), (first, costs.shape[1:])):
        require(
            isinstance(solved, np.ndarray) and solved.shape == shape and solved.dtype == np.float64,
            f"{name}.solve must return float64 decisions of the shape of the costs, {shape}; it returned "
            f"{described(solved)}.",
        )
    require(all_finite(decisions), f"{name}.solve returned numbers that are not finite. Raise a SolverError instead.")
    require(np.array_equal(given, costs), f"{name} writes to the costs that it is given. Copy them first.")
    for bad in (np.nan, np.inf):
        spoilt = costs.copy()
        spoilt[0, 0] = bad
        sentence = f"{name}.solve must refuse a cost of {bad} with a ValueError, as Problem.solve does"
        require_refusal(ValueError, problem.solve, spoilt, sentence=sentence)
    return decisions.copy()


def _check_region(problem: Problem, decisions: FloatArray, *, relaxed: bool = False) -> None:
    """Check that decisions are integers if the problem says so, and lie in its polyhedron if it has one."""
    name = type(problem).__name__
    if problem.is_integer and not relaxed:
        integers = decisions[:, :-1] if is_lifted(problem) else decisions  # the known part may be any number
        require_rows(
            np.abs(integers - integers.round()) <= ROUNDING,
            lambda row: f"{name} sets is_integer = True but returned {shown_row(decisions, row)}. Set False, or round.",
        )
    region = problem.polyhedron
    if region is None:
        return
    sizes = np.abs(decisions)
    constraints = {
        "A_ub w <= b_ub": decisions @ region.A_ub.T - region.b_ub <= ROUNDING * (1 + sizes @ abs(region.A_ub).T),
        "A_eq w = b_eq": np.abs(decisions @ region.A_eq.T - region.b_eq) <= ROUNDING * (1 + sizes @ abs(region.A_eq).T),
        "lower <= w": region.lower - decisions <= ROUNDING * (1 + sizes),
        "w <= upper": decisions - region.upper <= ROUNDING * (1 + sizes),
    }
    for constraint, kept in constraints.items():
        require_rows(kept, partial(_outside, name, constraint, decisions))


def _outside(name: str, constraint: str, decisions: FloatArray, row: int) -> str:
    decision = shown_row(decisions, row)
    return f"{name} returned {decision}, which violates {constraint} of its polyhedron. Correct one of them."


def _check_relaxation(problem: Problem, costs: FloatArray) -> None:
    if problem.is_integer and problem.polyhedron is None:
        return
    costs = sign_of(problem) * costs
    with require_no_error(problem, "cannot solve its relaxation"):
        relaxed = problem.minimize_relaxation(costs)
    _check_region(problem, relaxed, relaxed=True)
    if problem.polyhedron is None or problem.keeps_state:
        return
    from decidewise.solvers.highs import Solver  # noqa: PLC0415  (HiGHS is loaded only if needed)
    from decidewise.solvers.program import Program  # noqa: PLC0415

    values = (costs * relaxed).sum(axis=1)
    least = (costs * Solver(Program.of(problem.polyhedron)).minimize(costs)).sum(axis=1)
    require_rows(
        np.abs(values - least) <= _OPTIMALITY * (1 + np.abs(costs * relaxed).sum(axis=1)),
        lambda row: (
            f"the least cost over the polyhedron of {type(problem).__name__} is {least[row]:.6g}, but "
            f"{values[row]:.6g} by minimize_relaxation. If decisions are integers, set is_integer = True; otherwise "
            "correct the solver or the polyhedron. minimize_relaxation always minimises, whatever the sense."
        ),
    )


def _check_lifted(problem: Problem, costs: FloatArray, tolerance: float) -> None:
    """Check that `minimize` counts the known part once, as the lifted view does."""
    lifted, name = problem.lifted, type(problem).__name__
    require(
        (is_lifted(lifted), lifted.has_known, lifted.n_costs) == (True, False, problem.n_costs + 1),
        f"the lifted view of {name} must have is_lifted, no known costs and one cost more; it is {lifted!r}.",
    )
    if not problem.keeps_state:
        require_same(
            _solve(problem, costs),
            _solve(lifted, lift(lifted, costs))[:, :-1],
            tolerance,
            f"{name}.minimize(costs) must return the same as minimize_lifted for the costs and a column of ones, "
            "without the last column.",
        )


def _check_rows(problem: Problem, costs: FloatArray, tolerance: float) -> None:
    """Check that the problem of some rows decides them as the whole problem does, and knows its number of rows."""
    name = type(problem).__name__
    rows = np.random.default_rng(0).integers(len(costs), size=len(costs) + 1)
    for chosen in (rows, slice(1, None) if len(costs) > 1 else slice(None)):
        with require_no_error(problem, "cannot take some of its rows"):
            part = problem.take(chosen)
        require(
            part.n_rows == len(costs[chosen]),
            f"{len(costs[chosen])} rows of {name} have n_rows = {part.n_rows}. Set n_rows in what take returns.",
        )
        if not problem.keeps_state:
            sentence = f"{name} returns another decision for some rows, after take(rows), than for all rows together."
            require_same(_solve(part, costs[chosen]), _solve(problem, costs)[chosen], tolerance, sentence)
    sentence = f"{name} has {problem.n_rows} rows, and must refuse another number of rows of costs with a ValueError"
    require_refusal(ValueError, problem.solve, np.vstack([costs, costs[:1]]), sentence=sentence)


def _check_optimal(problem: Problem, costs: FloatArray, decisions: FloatArray) -> None:
    if problem.n_rows is not None:
        _check_optimal_by_row(problem, costs, decisions)
        return
    values = sign_of(problem) * costs @ decisions.T  # entry (i, j): the cost of decision j for row i
    own, best = np.diag(values), values.argmin(axis=1)
    excess = own - values.min(axis=1)
    require_rows(
        excess <= _OPTIMALITY * (1e-12 + np.abs(costs) @ np.abs(decisions).max(axis=0)),
        lambda row: (
            f"the decision that {type(problem).__name__} returns for row {best[row]} is better for this row than its "
            f"own, by {excess[row]:.2g}. minimize must return a decision of least cost, whatever the sense. Does it "
            "maximise, or stop before the optimum?"
        ),
    )


def _check_optimal_by_row(problem: Problem, costs: FloatArray, decisions: FloatArray) -> None:
    """Check that no row gets a better decision with the costs of another; decisions of other rows may be infeasible."""
    for shift in range(1, min(4, len(costs))):
        others = _solve(problem, np.roll(costs, shift, axis=0))
        excess = sign_of(problem) * (costs * (decisions - others)).sum(axis=1)
        require_rows(
            excess <= _OPTIMALITY * (1e-12 + (np.abs(costs) * np.maximum(abs(decisions), abs(others))).sum(axis=1)),
            partial(_better_with_other_costs, type(problem).__name__, excess),
        )


def _better_with_other_costs(name: str, excess: FloatArray, row: int) -> str:
    return (
        f"{name} returns a better decision for this row with other costs, by {excess[row]:.2g}. minimize must return a "
        "decision of least cost, whatever the sense. Does it maximise, or stop before the optimum?"
    )


def _check_deterministic(problem: Problem, costs: FloatArray, decisions: FloatArray, tolerance: float) -> None:
    name = type(problem).__name__
    for others in (costs, costs[::-1] + 1.0):
        returned = _solve(problem, others)
        if returned.flags.writeable:
            returned += 1.0  # the caller may write to it
        require_same(
            _solve(problem, costs),
            decisions,
            tolerance,
            f"{name} returns another decision when called again. Keep no state, or set keeps_state = True.",
        )
    require_same(
        np.array([_solve(problem.take([i]), row) for i, row in enumerate(costs)]),
        decisions,
        tolerance,
        f"{name} returns another decision for a row alone than in a batch. Break ties by a rule that depends only on "
        "the optimal decisions of the row, and restart the solver for each row.",
    )
    for scale in _SCALES:
        require_same(
            _solve(problem, scale * costs),
            decisions,
            tolerance,
            f"{name} returns another decision for {scale:.4g} times the costs. Make tolerances relative to the size of "
            "a row, or scale each row to the same size first.",
        )


def _check_mirrored(problem: Problem, costs: FloatArray, decisions: FloatArray, tolerance: float) -> None:
    require_same(
        _solve(mirrored(problem), -costs),
        decisions,
        tolerance,
        f"{type(problem).__name__} returns another decision if both the sense and the sign of the costs change. "
        "minimize must not use the sense: solve does.",
    )


def _check_copies(problem: Problem, costs: FloatArray, decisions: FloatArray, tolerance: float) -> None:
    name = type(problem).__name__
    ways: dict[str, Callable[[Problem], Problem]] = {"pickled": pickled, "copied": copy.deepcopy}
    for way, twin_of in ways.items():
        with require_no_error(problem, f"cannot be {way}. Define its class in a module, and hold plain data"):
            twin = twin_of(problem)
        require(
            (twin.n_costs, twin.sense) == (problem.n_costs, problem.sense),
            f"{name} has another n_costs or sense after it is {way}. Keep both in its attributes.",
        )
        if not problem.keeps_state:
            sentence = f"{name} returns another decision after it is {way}. Keep all it needs in its attributes."
            require_same(_solve(twin, costs), decisions, tolerance, sentence)
