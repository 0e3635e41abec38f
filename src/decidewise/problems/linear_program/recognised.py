"""Programs that are a problem with a kernel of its own, which solves a row many times faster than HiGHS.

A matcher looks at the constraints as they are, whatever the order and the scale of their rows, and returns the problem
and the variables that stand for its costs, or None. Near misses stay with HiGHS: so do programs for which the kernel
gains nothing (flows, bounds other than 0 and 1, knapsacks in more than ten dimensions).

Rows of a knapsack or of levels that take long go to HiGHS after a number of steps, which depends on the row alone. The
first rows are solved by HiGHS too: if it ever finds better, it solves the program from then on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack
from scipy.sparse.csgraph import connected_components

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.errors import OptimalityWarning, SolverError
from decidewise.kit.gaps import noted_gaps, some_rows
from decidewise.problems.contract import Problem
from decidewise.solvers.highs import Solver
from decidewise.solvers.program import Program

#: How many rows HiGHS checks, and for how many seconds each.
_CHECKED, _SECONDS = 3, 0.3
#: How much more than HiGHS's a value may be, as a part of what is added up.
_WORSE = 1e-7
#: After these steps of a search, less than a tenth of a second, HiGHS takes the row.
_STEPS = 2_500_000
#: With more capacities or groups the kernels gain little.
_MOST_CAPACITIES, _MOST_GROUPS = 10, 32
#: A matching is solved as a full matrix, which pays if one pair in so many is possible.
_DENSE = 4
_NEAR = 1e-9


@dataclass
class Recognised:
    """A problem that a program is, part by part, and where its costs are among the variables.

    Parameters
    ----------
    name : str
    parts : list of (Problem, ndarray of int)
        A problem to be minimised, and the variable of each of its costs; `n` where there is none and the cost is zero.
    is_flipped : bool
        Whether a decision of the problem says which variables are 0.
    """

    name: str
    parts: list[tuple[Problem, IntArray]]
    is_flipped: bool = False
    _unchecked: int = field(default=_CHECKED, repr=False)
    _is_wrong: bool = field(default=False, repr=False)

    def minimize(self, costs: FloatArray, solver: Solver) -> FloatArray:
        """Return an optimal point for each row of costs, (r, n) -> (r, n); the solver takes rows that are hard."""
        points, left = (costs, []) if self._is_wrong else self._points(costs)
        if self._is_wrong or (self._unchecked and not self._passes(costs, points, solver)):
            return solver.minimize(costs)
        if left:
            with some_rows(left, len(costs)):
                points[left] = solver.minimize(costs[left])
        return points

    def _points(self, costs: FloatArray) -> tuple[FloatArray, list[int]]:
        """Return the points of the kernels, and the rows that one gives up."""
        costs = -costs if self.is_flipped else costs
        r, n = costs.shape
        points, left = None, list[int]()
        if self._is_in_order:
            points = _minimized(self.parts[0][0], costs, left)
        else:
            padded, all_points = np.column_stack([costs, np.zeros(r)]), np.zeros((r, n + 1))
            for problem, place in self.parts:
                all_points[:, place] = _minimized(problem, np.ascontiguousarray(padded[:, place]), left)
            points = np.ascontiguousarray(all_points[:, :n])
        return 1.0 - points if self.is_flipped else points, left

    @cached_property
    def _is_in_order(self) -> bool:
        problem, place = self.parts[0]
        return len(self.parts) == 1 and np.array_equal(place, np.arange(problem.n_costs))

    def _passes(self, costs: FloatArray, points: FloatArray, solver: Solver) -> bool:
        """Return whether HiGHS finds nothing better for the first of the rows, as far as they are solved."""
        rows = slice(min(self._unchecked, len(costs)))
        costs, points = costs[rows], points[rows]
        self._unchecked -= len(costs)
        seconds = min(_SECONDS, solver.time_limit or np.inf)
        referee = replace(solver, time_limit=seconds, keep_best=True, keep_going=True, _idle=[])
        with noted_gaps(), np.errstate(invalid="ignore"):
            terms = costs * points
            better = (costs * referee.minimize(costs)).sum(axis=1)
            is_worse = terms.sum(axis=1) > better + _WORSE * (np.abs(terms).sum(axis=1) + np.abs(better))
        solved = np.isfinite(points).all(axis=1)
        is_broken = solver.program.violated(solver.program.values(points[solved])).any()
        self._is_wrong = bool(is_worse.any() or is_broken)
        if self._is_wrong:
            warnings.warn(
                f"a program was taken for a problem of the kind {self.name!r}, and HiGHS finds a better decision. It "
                'solves the program from now on; solver="highs" does so from the start. Please report the program.',
                OptimalityWarning,
                stacklevel=2,
            )
        return not self._is_wrong


def _minimized(problem: Problem, costs: FloatArray, left: list[int], start: int = 0) -> FloatArray:
    """Return the decisions of a problem, and add the rows that it gives up, counted from `start`, to those left."""
    try:
        return problem.minimize(costs)
    except SolverError as error:
        row = error.row
    left.append(start + row)
    none = np.full((1, costs.shape[1]), np.nan)
    head = _minimized(problem, costs[:row], left, start) if row else none[:0]
    rest = _minimized(problem, costs[row + 1 :], left, start + row + 1) if row + 1 < len(costs) else none[:0]
    return np.vstack([head, none, rest])


@dataclass
class _Rows:
    """The constraints of a program, each by itself."""

    A: csr_array
    is_equal: BoolArray
    right: FloatArray
    upper: FloatArray
    is_whole: bool

    @classmethod
    def of(cls, program: Program) -> _Rows | None:
        """Return the constraints `A w <= right` or `A w = right`, if all variables may be 0 or 1."""
        above = np.isfinite(program.row_upper)
        if not above.all() or (program.lower != 0).any() or (program.upper < 1).any():
            return None
        is_equal = program.row_lower == program.row_upper
        if (np.isfinite(program.row_lower) & ~is_equal).any():
            return None
        A = csr_array(program.A)
        A.eliminate_zeros()
        if (np.diff(A.indptr) == 0).any():
            return None
        is_whole = program.integrality is not None and bool(program.integrality.all())
        return cls(A, is_equal, program.row_upper, program.upper, is_whole)

    @cached_property
    def factors(self) -> FloatArray:
        """The common size of the factors of each row, and NaN where they differ: (m,)."""
        sizes, starts = np.abs(self.A.data), self.A.indptr[:-1]
        least, most = np.minimum.reduceat(sizes, starts), np.maximum.reduceat(sizes, starts)
        return np.where(least == most, most, np.nan)

    @cached_property
    def signs(self) -> csr_array:
        """The signs of all factors."""
        return csr_array((np.sign(self.A.data), self.A.indices, self.A.indptr), shape=self.A.shape)

    @cached_property
    def counts(self) -> IntArray:
        """How many of its variables a row takes, `x + y + z = k` or `<= k` at any scale; 0 for any other row: (m,)."""
        sign = np.add.reduceat(self.signs.data, self.A.indptr[:-1]) / np.diff(self.A.indptr)  # 1 or -1 if all alike
        with np.errstate(invalid="ignore"):
            total = sign * self.right / self.factors
            whole = np.rint(total)
            is_count = (np.abs(total - whole) <= _NEAR * whole) & ((sign == 1) | (self.is_equal & (sign == -1)))
        return np.where(is_count, whole, 0).astype(np.int64)

    def columns(self, row: int) -> IntArray:
        """Return the variables of a row."""
        return self.A.indices[self.A.indptr[row] : self.A.indptr[row + 1]].astype(np.int64)

    def times_in(self, rows: IntArray) -> IntArray:
        """Return in how many of some rows each variable is: (n,)."""
        return np.bincount(self.A[rows].indices, minlength=self.A.shape[1])


def recognise(program: Program) -> Recognised | None:
    """Return the problem that a program is, if its kernel is faster than HiGHS.

    >>> from decidewise.problems import LinearProgram
    >>> LinearProgram([[2.0, 2.0, 2.0]], [4.0], upper=1, integrality=1)
    LinearProgram(n_costs=3, sense='min', recognised='top_k')
    """
    rows = _Rows.of(program)
    if rows is None:
        return None
    return next((found for matcher in _MATCHERS if (found := matcher(rows)) is not None), None)


def _top_k(rows: _Rows) -> Recognised | None:
    """Match a choice of so many, or at most so many, of each group of variables, no variable in two groups."""
    from decidewise.problems.topk import TopK  # noqa: PLC0415  (it would import this file)

    m, n = rows.A.shape
    counts = rows.counts
    if m > _MOST_GROUPS or (counts < 1).any() or rows.A.nnz != n or (rows.times_in(np.arange(m)) != 1).any():
        return None
    parts: list[tuple[Problem, IntArray]] = []
    for row, k in enumerate(counts.tolist()):
        place = rows.columns(row)
        if k > len(place) or (k > 1 and (rows.upper[place] != 1).any()):
            return None
        # Where fewer will do, the first choice is none of them, up to k times.
        place = place if rows.is_equal[row] else np.concatenate([np.full(k, n), place])
        parts.append((TopK(len(place), k, sense="min"), place))
    return Recognised("top_k", parts)


def _matching(rows: _Rows) -> Recognised | None:
    """Match pairs of all nodes of the smaller of two sides with some of the other: of all pairs, an assignment."""
    from decidewise.problems.assignment import Assignment  # noqa: PLC0415
    from decidewise.problems.matching import Matching  # noqa: PLC0415

    m, n = rows.A.shape
    columns = rows.A.tocsc()
    side = _orientation(abs(rows.signs))
    if side is None or (rows.counts != 1).any() or (np.diff(columns.indptr) != 2).any():
        return None
    all_paired = [part for part in (side > 0, side < 0) if rows.is_equal[part].all() and 2 * part.sum() <= m]
    if not all_paired:
        return None
    is_small, k = all_paired[0], int(all_paired[0].sum())
    if (2 * k < m and rows.is_equal[~is_small].any()) or n * _DENSE < k * (m - k):
        return None
    ends = columns.indices.reshape(n, 2)
    ends = np.where(is_small[ends[:, :1]], ends, ends[:, ::-1])
    edges = (np.where(is_small, np.cumsum(is_small), np.cumsum(~is_small)) - 1)[ends]
    place = np.lexsort(edges.T[::-1])
    if n == k * (m - k) == k * k and len(np.unique(edges, axis=0)) == n:
        return Recognised("assignment", [(Assignment(k), place)])
    try:
        problem = Matching(k, m - k, edges=edges[place], complete=True, sense="min")
    except ValueError:  # a pair is there twice, or no matching is complete
        return None
    return Recognised("matching", [(problem, place)])


def _path(rows: _Rows) -> Recognised | None:
    """Match one unit of flow through a graph without cycles; the constraint of one node may be left out."""
    from decidewise.problems.shortest_path import ShortestPath  # noqa: PLC0415

    m, n = rows.A.shape
    entries = np.diff(rows.A.tocsc().indptr)
    turned = _orientation(rows.signs)
    if turned is None or not rows.is_equal.all() or np.isnan(rows.factors).any() or not {*entries} <= {1, 2}:
        return None
    leaves = csr_array(rows.signs * turned[:, np.newaxis])
    supply = turned * rows.right / rows.factors
    # The node that was left out has the other end of edges with one, and the rest of the supply.
    leaves = csr_array(vstack([leaves, csr_array(-leaves.sum(axis=0)[np.newaxis])])).tocsc()
    leaves.eliminate_zeros()
    supply = np.append(supply, -supply.sum())
    source, target = (np.flatnonzero(np.abs(supply - sign) <= _NEAR) for sign in (1, -1))
    if (len(source), len(target), (np.abs(supply) > _NEAR).sum()) != (1, 1, 2):
        return None
    tails, heads = leaves.indices[leaves.data > 0], leaves.indices[leaves.data < 0]
    graph = csr_array((np.ones(n), (tails, heads)), shape=(m + 1, m + 1))
    if connected_components(graph, connection="strong")[0] <= m:  # a cycle
        return None
    try:
        problem = ShortestPath.from_edges(tails, heads, int(source[0]), int(target[0]))
    except ValueError:  # no path
        return None
    return Recognised("shortest_path", [(problem, np.arange(n))])


def _levels(rows: _Rows) -> Recognised | None:
    """Match one of each group of variables, or at most one, no variable in two groups; and one budget, or a total."""
    from decidewise.problems.levels import Levels  # noqa: PLC0415

    n = rows.A.shape[1]
    is_group = rows.counts == 1
    groups, others = np.flatnonzero(is_group), np.flatnonzero(~is_group)
    times = rows.times_in(groups)
    alone = np.flatnonzero(times == 0)
    if not len(groups) or len(others) > 1 or times.max() > 1 or (rows.upper[alone] != 1).any():
        return None
    if len(others) and not rows.is_whole:
        return None
    uses = np.append(rows.A[others].toarray().sum(axis=0), 0.0)
    # A group that may have none has a level without a variable; so does a variable of no group.
    items = [np.append(rows.columns(row), [] if rows.is_equal[row] else n).astype(np.int64) for row in groups.tolist()]
    items += [np.array([n, j]) for j in alone.tolist()]
    items = [item[np.argsort(uses[item], kind="stable")] for item in items]
    is_total = len(others) and rows.is_equal[others[0]]
    levels = [uses[item] if is_total else np.arange(len(item)) for item in items]
    place = np.concatenate(items)
    limits: dict[str, Any] = {}
    if is_total:
        limits["total"] = float(rows.right[others[0]])
    elif len(others):
        limits |= {"consumption": uses[place], "budget": float(rows.right[others[0]])}
    try:
        problem = Levels(levels, **limits)
    except ValueError:  # two levels use as much of the total, or no levels keep the budget
        return None
    problem._most_steps = _STEPS
    return Recognised("levels", [(problem, place)])


def _knapsack(rows: _Rows) -> Recognised | None:
    """Match variables of 0 or 1 under capacities; or above needs, where what is left out is a knapsack."""
    from decidewise.problems.knapsack import Knapsack  # noqa: PLC0415

    m, n = rows.A.shape
    if not rows.is_whole or rows.is_equal.any() or (rows.upper != 1).any() or not 0 < m <= _MOST_CAPACITIES:
        return None
    signs = {*rows.signs.data}
    if len(signs) > 1:
        return None
    is_flipped = signs == {-1.0}
    weights = np.abs(rows.A.toarray())
    capacities = rows.right + (weights.sum(axis=1) if is_flipped else 0.0)
    if (capacities < 0).any():  # empty, which HiGHS says
        return None
    problem = Knapsack(weights, capacities, sense="min")
    problem._most_steps = _STEPS
    return Recognised("knapsack", [(problem, np.arange(n))], is_flipped)


_MATCHERS: tuple[Callable[[_Rows], Recognised | None], ...] = (_top_k, _matching, _path, _levels, _knapsack)


def _orientation(signs: csr_array) -> FloatArray | None:
    """Return a sign for each row by which the two entries of each column become 1 and -1, or None: (m,)."""
    m, columns = signs.shape[0], csc_array(signs)
    first = columns.indptr[:-1][np.diff(columns.indptr) == 2]
    a, b = columns.indices[first], columns.indices[first + 1]
    alike = columns.data[first] == columns.data[first + 1]
    # Row i as it is, and turned, is i and m + i: what belongs together is linked.
    ends = np.concatenate([np.where(alike, m + b, b), np.where(alike, b, m + b)])
    links = csr_array((np.ones(2 * len(a)), (np.concatenate([a, m + a]), ends)), shape=(2 * m, 2 * m))
    label = connected_components(links, directed=False)[1]
    return None if (label[:m] == label[m:]).any() else np.where(label[:m] < label[m:], 1.0, -1.0)
