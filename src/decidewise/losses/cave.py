"""CaVE, cone-aligned vector estimation: the angle between a prediction and the cone of costs with the same decision.

The decision `w` is optimal for the costs `p` exactly if `-p` lies in the normal cone at `w` (see `parts.cones`).
CaVE is `1 - cos(-p, q)`, where `q` is a point of that cone near `-p`, held constant in the gradient. `Cave` takes the
projection for `q`; if `-p` is outside the cone, that lies on the boundary, so training only aims at the boundary.
`CavePlus` and `CaveHybrid` take a point further inside (Tang & Khalil, "CaVE: A Cone-Aligned Approach for Fast
Predict-then-optimize with Binary Linear Programs", 2024).

For an integer problem the cone is by default that at an optimum of the linear relaxation, which contains minus the true
costs. With `relaxed=False`, as in the paper, it is spanned by the normals of the constraints that bind at the integer
optimum: those of the relaxation and those that `polyhedron_at` adds. It need not contain minus the true costs.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from decidewise.kit.checks import FloatArray, as_number
from decidewise.kit.scaling import unit_rows
from decidewise.losses.base import Loss, choice, count, parameter
from decidewise.losses.parts.cones import NormalCones, SignArray
from decidewise.losses.parts.target import SHARED, DecisionTarget, ValueAndGrad, row_dot, solve_labels
from decidewise.problems.contract import Problem
from decidewise.problems.views import polyhedron_at

_SHARE = partial(as_number, at_least=0, at_most=1)


@dataclass(frozen=True)
class ConeTarget(DecisionTarget):
    """Optimal decisions, and the constraints that bind at each of them, as `NormalCones.binding` returns them."""

    binding: SignArray  # (n, m)
    cones: NormalCones = field(metadata=SHARED)


@dataclass(frozen=True)
class ConeLoss(Loss):
    """What losses of the normal cone share: its label, the cone at the optimal decision of each row."""

    relaxed: bool | Literal["auto"] = choice("auto", True, False, kw_only=True)

    target_type = ConeTarget
    solves = False
    requires = frozenset({"polyhedron"})

    def label(self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator) -> ConeTarget:
        """Solve every row once and find the constraints that bind there."""
        relaxed = problem.is_integer if self.relaxed == "auto" else self.relaxed
        if relaxed:
            decisions = solve_labels(problem, costs, relaxed=True)
            polyhedron = problem.polyhedron
        else:
            decisions = solve_labels(problem, costs)
            polyhedron = polyhedron_at(problem, costs, decisions)
        cones = NormalCones(polyhedron)
        return ConeTarget(problem, costs, decisions, row_dot(costs, decisions), cones.binding(decisions), cones)


@dataclass(frozen=True)
class _ConeAligned(ConeLoss):
    """The common part of the three losses: the cosine and its gradient."""

    def evaluate(self, prediction: FloatArray, target: ConeTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return `1 - cos(-p, q)` and its gradient for constant `q`; 1 and 0 where either vector is zero."""
        descent = unit_rows(-prediction)
        aim = unit_rows(self.aim(-prediction, target, rng))
        cosine = row_dot(descent, aim)
        length = np.linalg.norm(prediction, axis=1, keepdims=True)
        slope = (aim - cosine[:, None] * descent) / np.where(length > 0, length, np.inf)
        return 1 - cosine, slope

    @abstractmethod
    def aim(self, points: FloatArray, target: ConeTarget, rng: np.random.Generator) -> FloatArray:
        """Return the point `q` (b, d) of its cone for each point `-p` (b, d)."""


@dataclass(frozen=True)
class Cave(_ConeAligned):
    """CaVE with the exact projection of `-p` on the cone.

    The value is `1 - ‖q‖/‖p‖`, which is zero exactly if the true optimal decision is optimal for the prediction too.
    Although `q` is held constant, the gradient is that of the value, because `‖q‖²/2` has the gradient `q`. The value
    has a gradient everywhere except at the boundary of the region where `q = 0`.

    Parameters
    ----------
    relaxed : {"auto", True, False}
        Whether to take the cone at an optimum of the linear relaxation; "auto" does so if the problem is integer.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Cave()
    >>> target = loss.prepare(TopK(2, 1, sense="min"), [[1.0, 2.0], [1.0, 2.0]])
    >>> values, gradient = loss.value_and_grad([[3.0, 7.0], [1.0, 0.0]], target, np.random.default_rng(0))
    >>> values.round(3)  # the first prediction leads to the same decision as the costs
    array([0.   , 0.293])
    """

    gradient = "subgradient"

    def aim(self, points: FloatArray, target: ConeTarget, rng: np.random.Generator) -> FloatArray:
        return target.cones.project(points, target.binding)


@dataclass(frozen=True)
class CavePlus(_ConeAligned):
    """CaVE+: interior-point steps towards the projection, stopped before they reach the boundary of the cone.

    The steps are not invariant to scale: the shorter `p` is, the further inside the cone is `q`.

    Parameters
    ----------
    max_iter : int
        The number of steps. Keep it small; for the exact projection use `Cave`.
    relaxed : {"auto", True, False}
        Whether to take the cone at an optimum of the linear relaxation; "auto" does so if the problem is integer.
    """

    max_iter: int = count(3)

    gradient = "surrogate"

    def aim(self, points: FloatArray, target: ConeTarget, rng: np.random.Generator) -> FloatArray:
        return target.cones.approach(points, target.binding, self.max_iter)


@dataclass(frozen=True)
class CaveHybrid(_ConeAligned):
    """CaVE hybrid: CaVE+ on rows drawn at random in each evaluation, and a cheap mixture on the others.

    The mixture is `(1 - inner_ratio) (-p)/‖p‖ + inner_ratio · mean of the cone's unit normals`.

    Parameters
    ----------
    solve_ratio : float
        The probability that a row is projected as in CaVE+.
    inner_ratio : float
        The weight of the mean normal in the mixture.
    max_iter : int
        The number of interior-point steps.
    relaxed : {"auto", True, False}
        Whether to take the cone at an optimum of the linear relaxation; "auto" does so if the problem is integer.
    """

    solve_ratio: float = parameter(0.3, _SHARE)
    inner_ratio: float = parameter(0.2, _SHARE)
    max_iter: int = count(3)

    gradient = "surrogate"
    random = True

    def aim(self, points: FloatArray, target: ConeTarget, rng: np.random.Generator) -> FloatArray:
        """Return the truncated projection on the rows drawn and the mixture on the others."""
        mean = target.cones.mean_unit_normal(target.binding)
        aims = (1 - self.inner_ratio) * unit_rows(points) + self.inner_ratio * mean
        drawn = rng.random(len(points)) < self.solve_ratio
        aims[drawn] = target.cones.approach(points[drawn], target.binding[drawn], self.max_iter)
        return aims
