"""DYS-Net, a decision by Davis–Yin splitting, differentiated through its last step alone.

McKenzie, Heaton & Fung, "Differentiating Through Integer Linear Programs with Quadratic Regularization and Davis-Yin
Splitting", TMLR 2024.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss, count, positive
from decidewise.losses.parts.split_region import SplitRegion
from decidewise.losses.parts.target import SHARED, DecisionTarget, ValueAndGrad, row_dot
from decidewise.problems.contract import Problem
from decidewise.solvers import Polyhedron


@dataclass(frozen=True)
class SplitTarget(DecisionTarget):
    """Costs, optimal decisions and values, and the region in split form."""

    region: SplitRegion = field(metadata=SHARED)


@dataclass(frozen=True)
class Dys(Loss):
    """The squared distance `‖x(p) - w‖²` of the decision that Davis–Yin splitting finds to the optimal one `w`.

    From the same point for every row, `x = clip(z)`, `y = Π(2x - z - α(p + γx))`, `z ← z - x + y`, until `z` moves by
    at most `tol`; `clip` projects on the bounds and `Π` on the equations. The decision `x = clip(z)` approximates the
    minimiser of `p·x + γ/2 ‖x‖²` over the linear relaxation.

    Parameters
    ----------
    step : float
        The length `α` of a step, in units of decisions over costs.
    gamma : float
        The strength `γ` of the quadratic term.
    tol : float
        The change of `z` at which a row is finished.
    max_iter : int
        The largest number of steps; a row that needs more keeps its last point.

    Notes
    -----
    The gradient is `-α Π₀(1[z inside its bounds] ∘ 2(x - w))`, with `Π₀` the projection on the directions of the
    equations: the derivative of the last step alone ("Jacobian-free"), so a surrogate. It needs no solver, only two
    products of matrices per step, or sparse factors of the equations where the region is large. In the public code a
    row depends on its batch; here every row is on its own. It is for linear programs without a fast solver: where there
    is one, `SpoPlus` is cheaper and has an exact subgradient.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Dys()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> values, gradient = loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))
    >>> values.round(2)  # it chooses the second item, not the first
    array([2.])
    """

    step: float = positive(0.05)
    gamma: float = positive(5e-4)
    tol: float = positive(1e-2)
    max_iter: int = count(1000)

    target_type = SplitTarget
    gradient = "surrogate"
    solves = False
    requires = frozenset({"polyhedron"})

    def label(self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator) -> SplitTarget:
        """Solve every row, and decompose the equations of the region."""
        region = SplitRegion.of(cast("Polyhedron", problem.polyhedron))  # `check` refuses a problem without one
        return SplitTarget.of(problem, costs, region)

    def evaluate(self, prediction: FloatArray, target: SplitTarget, rng: np.random.Generator) -> ValueAndGrad:
        region, d = target.region, prediction.shape[1]
        points = self._split(prediction, region)
        distance = np.clip(points, region.lower, region.upper)[:, :d] - target.decisions
        inside = (region.lower < points) & (points < region.upper)
        slope = np.zeros_like(points)
        slope[:, :d] = np.where(inside[:, :d], 2 * distance, 0.0)
        return row_dot(distance, distance), -self.step * region.along(slope)[:, :d]

    def _split(self, prediction: FloatArray, region: SplitRegion) -> FloatArray:
        """Return the points `z` (n, D) at which the rows end; each ends by itself, whatever the others do."""
        costs = np.zeros((len(prediction), len(region.origin)))
        costs[:, : prediction.shape[1]] = prediction
        curved = np.where(np.arange(len(region.origin)) < prediction.shape[1], self.gamma, 0.0)  # not the slacks
        points = np.tile(region.origin, (len(prediction), 1))
        rows = np.arange(len(prediction))
        for _ in range(self.max_iter):
            z = points[rows]
            x = np.clip(z, region.lower, region.upper)
            moved = 2 * x - z - self.step * (costs[rows] + curved * x)
            change = region.origin + region.along(moved) - x
            points[rows] = z + change
            rows = rows[row_dot(change, change) > self.tol**2]
            if len(rows) == 0:
                break
        return points
