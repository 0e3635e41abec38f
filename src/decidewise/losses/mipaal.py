"""MIPaaL, cutting planes that close the relaxation of an integer program, and then QPTL on what is left.

Ferber, Wilder, Dilkina & Tambe, "MIPaaL: Mixed Integer Program as a Layer", AAAI 2020.

The cuts are facets of the hull of the decisions, found by the problem's own solver alone. For a point `v` outside the
hull and a point `q` inside it, `α·(z - q) <= 1` with the largest `α·(v - q)` that holds for all `z` of the region is
the facet through which the way from `q` to `v` leaves the hull. A linear program over the decisions known so far
proposes `α`, and the solver finds a decision that breaks it, or proves it (Buchheim, Liers & Oswald, "Local cuts
revisited", Operations Research Letters 36, 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from decidewise.kit.checks import FloatArray, IndexArray
from decidewise.kit.errors import SolverError
from decidewise.kit.progress import tracked
from decidewise.losses.base import count
from decidewise.losses.parts.target import SHARED, DecisionTarget, RelaxedTarget, row_dot
from decidewise.losses.qptl import Qptl
from decidewise.problems.contract import Problem
from decidewise.problems.views import relaxation
from decidewise.solvers import Polyhedron
from decidewise.solvers.highs import Solver
from decidewise.solvers.program import Program

# A relaxation is closed where its value is that of the integers, relative to the sum of the sizes of its terms. HiGHS
# keeps constraints to 1e-7.
_GAP = 1e-6
# What breaks a cut by less than this, relative to its limit, keeps it.
_KEPT = 1e-12
# The largest entry of a normal, relative to the size of the hull: in directions in which the hull is flat there is no
# other bound.
_STEEPEST = 1e4
_TOLERANCE = 1e-9
_MOST_ROUNDS = 1000


@dataclass(frozen=True)
class CutTarget(RelaxedTarget):
    """Costs, optimal decisions and values, and the relaxation with its cuts, None if it needs none: what it solves."""

    region: Polyhedron | None = field(metadata=SHARED)
    n_cuts: int = field(metadata=SHARED)
    solver: Solver | None = field(metadata=SHARED)

    def minimize(self, costs: FloatArray, rows: IndexArray | None = None) -> FloatArray:
        """Return an optimal vertex of the relaxation with its cuts for each row of costs (b, d).

        A vertex of the relaxation that keeps all cuts is optimal with them; HiGHS solves the other rows.
        """
        vertices = super().minimize(costs, rows)
        if self.region is None or self.solver is None or self.n_cuts == 0:
            return vertices
        cuts, limits = self.region.A_ub[-self.n_cuts :], self.region.b_ub[-self.n_cuts :]
        is_cut = (vertices @ cuts.T > limits + _KEPT * (1 + np.abs(limits))).any(axis=1)
        if is_cut.any():
            vertices = vertices.copy()
            vertices[is_cut] = self.solver.minimize(costs[is_cut])
        return vertices


@dataclass(frozen=True)
class Mipaal(Qptl):
    """The regret `c·z(p) - c·w` of `z(p) = argmin_z p·z + λ/2 ‖z‖²` over the linear relaxation and cutting planes.

    Cuts are added until the relaxation has the optimal value of the integers for the true costs of every row, and
    again, every `refresh_every` epochs, for the present predictions. So `z(p)` lies between that of `Qptl`, without
    cuts, and that of `Rfwo`, on the hull of the decisions, which is the limit of all cuts.

    Parameters
    ----------
    lambd, max_iter, tol
        As for `Qptl`.
    max_cuts : int
        The largest number of cuts in all. If they do not close the relaxation, `prepare` raises an error.
    refresh_every : int
        Epochs between rounds of cuts for the present predictions.

    Notes
    -----
    Each cut is a facet of the hull that separates a fractional vertex, found by the problem's own solver (see
    `TargetCuts`); the cuts of the paper are those of a commercial solver, anew for every prediction. Each step of the
    smoothing is a linear program, solved by HiGHS: where the problem has a fast solver, `Rfwo` has the limit for less.
    On a region whose relaxation has integer vertices there is nothing to cut, and this is `Qptl`.

    Examples
    --------
    >>> from decidewise.problems import Knapsack
    >>> knapsack, costs = Knapsack([[2.0, 3.0]], [4.0]), [[2.0, 6.0]]
    >>> target = Mipaal().prepare(knapsack, costs)
    >>> target.n_cuts, target.decisions  # the items do not fit together: z₁ + z₂ <= 1
    (1, array([[0., 1.]]))
    """

    max_cuts: int = count(1000)
    refresh_every: int = count(5)

    target_type = CutTarget
    requires = frozenset({"relaxation"})

    def label(self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator) -> CutTarget:
        """Solve every row, and cut until the relaxation has the same value."""
        plain = DecisionTarget.of(problem, costs)
        is_cut = problem.is_integer or problem.polyhedron is None  # whole numbers, at least of some variables
        region = relaxation(problem) if is_cut else None
        solver = None if region is None else Solver(Program.of(region))
        target = CutTarget(problem, costs, plain.decisions, plain.values, region, 0, solver)
        return self._closed(target, costs, plain.values)

    def refresh(self, prediction: FloatArray, target: CutTarget, rng: np.random.Generator) -> CutTarget:
        """Cut until the relaxation has the value of the integers for the present predictions, too."""
        if target.region is None:
            return target
        return self._closed(target, prediction, row_dot(prediction, target.problem.minimize(prediction)))

    def _closed(self, target: CutTarget, costs: FloatArray, values: FloatArray) -> CutTarget:
        """Return the target with cuts that bring the value of the relaxation up to `values`, of costs (n, d)."""
        rows = np.arange(len(costs))
        facets = TargetCuts(target.problem.minimize, np.unique(target.decisions, axis=0))
        while target.region is not None:
            vertices = target.minimize(costs[rows])
            size = row_dot(np.abs(costs[rows]), np.abs(vertices))
            is_open = row_dot(costs[rows], vertices) < values[rows] - _GAP * (size + np.abs(values[rows]))
            rows, vertices = rows[is_open], np.unique(vertices[is_open], axis=0)
            if len(rows) == 0:
                break
            target = self._cut(target, vertices, facets, int(rows[0]))
        return target

    def _cut(self, target: CutTarget, vertices: FloatArray, facets: TargetCuts, row: int) -> CutTarget:
        """Return the target with cuts that separate all of some vertices (k, d) outside the hull."""
        normals: list[FloatArray] = []
        limits: list[float] = []
        for vertex in tracked(list(vertices), "Cutting the relaxation"):
            if any(vertex @ normal > limit + _GAP for normal, limit in zip(normals, limits, strict=True)):
                continue
            if target.n_cuts + len(limits) == self.max_cuts:
                raise ValueError(
                    f"max_cuts={self.max_cuts} cuts do not close the relaxation of {type(target.problem).__name__}: "
                    f"the optimum of row {row} is still fractional. Raise max_cuts, pass fewer rows, or choose Rfwo, "
                    "which projects on the hull itself, or Qptl, which needs no cuts."
                )
            normal, limit = facets.separate(vertex)
            normals.append(normal)
            limits.append(limit)
        region = cast("Polyhedron", target.region)
        region = replace(
            region,
            A_ub=csr_array(vstack([region.A_ub, csr_array(np.array(normals))], format="csr")),
            b_ub=np.concatenate([region.b_ub, limits]),
        )
        return replace(target, region=region, n_cuts=target.n_cuts + len(limits), solver=Solver(Program.of(region)))


@dataclass
class TargetCuts:
    """The cuts of one region.

    Parameters
    ----------
    minimize : callable
        Returns optimal decisions for costs (n, d).
    decisions : ndarray of shape (m, d)
        Different ones of the region; those that are found later are added.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> cuts = TargetCuts(lambda costs: corners[(costs @ corners.T).argmin(axis=1)], corners)
    >>> normal, limit = cuts.separate(np.array([1.0, 0.5]))
    >>> normal.round(6), round(limit, 6)
    (array([1., 1.]), 1.0)
    """

    minimize: Callable[[FloatArray], FloatArray]
    decisions: FloatArray

    def separate(self, point: FloatArray) -> tuple[FloatArray, float]:
        """Return `α` (d,), of largest entry 1, and the largest `α·z` of the region, which is below that of the point.

        The limit is that of a decision of the solver, so that no decision is ever cut off.
        """
        for _ in range(_MOST_ROUNDS):
            inside = self.decisions.mean(axis=0)
            around = self.decisions - inside
            steepest = _STEEPEST / max(np.abs(around).max(), np.abs(point - inside).max())
            found = linprog(
                inside - point, A_ub=around, b_ub=np.ones(len(around)), bounds=(-steepest, steepest), method="highs"
            )
            if found.status != 0:
                break
            normal = found.x / np.abs(found.x).max()
            farthest = self.minimize(-normal[None])[0]
            known = (self.decisions @ normal).max()
            if farthest @ normal <= known + _TOLERANCE * (1 + abs(known)):
                return normal, float(max(farthest @ normal, known))
            self.decisions = np.vstack([self.decisions, farthest])
        raise SolverError("no cut of a fractional point was found. Choose Rfwo, which needs no cuts.", row=0)
