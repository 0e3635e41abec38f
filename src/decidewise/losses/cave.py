"""CaVE, cone-aligned vector estimation: the angle between a prediction and the costs with the same optimal decision.

The decision `w` stays optimal for exactly those costs `p` whose `-p` lies in the normal cone at `w` (see `cones`). CaVE
is `1 - cos(-p, q)` with `q` a point of that cone near `-p`, held constant in the gradient. The projection itself is on
the boundary whenever `-p` is outside, which teaches no more than to reach the boundary; `CavePlus` and `CaveHybrid` aim
at a point further inside (Tang & Khalil, "CaVE: A Cone-Aligned Approach for Fast Predict-then-optimize with Binary
Linear Programs", 2024).

For a problem in integers the cone is that of the constraints of the relaxation (with the rows that `polyhedron_at`
adds) that bind at the integer optimum, which need not contain the true costs. With `relaxed=True` it is the cone at an
optimum of the relaxation, which does.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from decidewise.checks import FloatArray, as_flag, as_integer, as_number
from decidewise.losses.base import SHARED, DecisionTarget, Loss, row_dot, solve_labels
from decidewise.polyhedra.cones import IntArray, NormalCones
from decidewise.problems.base import Problem
from decidewise.scaling import unit_rows


@dataclass(frozen=True)
class ConeTarget(DecisionTarget):
    """Optimal decisions with the constraints that bind at each `(n, m)`, as `NormalCones.binding` writes them."""

    binding: IntArray
    cones: NormalCones = field(metadata=SHARED)


@dataclass(frozen=True)
class _ConeAligned(Loss):
    """What the three share: the cones, the cosine and its gradient."""

    relaxed: bool = field(default=False, kw_only=True)

    target_type = ConeTarget
    solves = False
    needs_polyhedron = True

    def __post_init__(self) -> None:
        as_flag(self.relaxed, name="relaxed")

    def label(self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator) -> ConeTarget:
        """Solve every row once and note which constraints bind."""
        if self.relaxed:
            decisions = solve_labels(problem.minimize_relaxation, costs)
            polyhedron = problem.polyhedron
        else:
            decisions = solve_labels(problem.minimize, costs)
            polyhedron = problem.polyhedron_at(costs, decisions)
        cones = NormalCones(polyhedron)
        return ConeTarget(problem, costs, decisions, row_dot(costs, decisions), cones.binding(decisions), cones)

    def evaluate(
        self, prediction: FloatArray, target: ConeTarget, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return `1 - cos(-p, q)` and its gradient for constant `q`; 1 and 0 where either vector is zero."""
        descent = unit_rows(-prediction)
        aim = unit_rows(self.aim(-prediction, target, rng))
        cosine = row_dot(descent, aim)
        length = np.linalg.norm(prediction, axis=1, keepdims=True)
        slope = (aim - cosine[:, None] * descent) / np.where(length > 0, length, np.inf)
        return 1 - cosine, slope

    @abstractmethod
    def aim(self, points: FloatArray, target: ConeTarget, rng: np.random.Generator) -> FloatArray:
        """Return the point `q` (b, d) of its cone that each point `-p` (b, d) is compared with."""


@dataclass(frozen=True)
class Cave(_ConeAligned):
    """CaVE with the exact projection of `-p` on the cone.

    The value is `1 - ‖q‖/‖p‖`, zero exactly where the prediction has the true optimal decision among its own. Holding
    `q` constant loses nothing: `‖q‖²/2` has the gradient `q`, so the gradient is that of the value wherever it has one
    (everywhere but at the edge of `q = 0`).

    Parameters
    ----------
    relaxed : bool
        For a problem in integers, take the optimum of its linear relaxation.
    """

    gradient = "subgradient"

    def aim(self, points: FloatArray, target: ConeTarget, rng: np.random.Generator) -> FloatArray:
        """Return the projection."""
        return target.cones.project(points, target.binding)


@dataclass(frozen=True)
class CavePlus(_ConeAligned):
    """CaVE+, with a projection that stops after a few interior-point steps, before it reaches the boundary.

    The steps have a scale of their own, so `q`, unlike the projection, depends on the length of `p`: the shorter `p`,
    the further inside.

    Parameters
    ----------
    max_iter : int
        The number of steps, meant to be small; the projection itself is `Cave`.
    relaxed : bool
        For a problem in integers, take the optimum of its linear relaxation.
    """

    max_iter: int = 3

    gradient = "surrogate"

    def __post_init__(self) -> None:
        super().__post_init__()
        as_integer(self.max_iter, name="max_iter")

    def aim(self, points: FloatArray, target: ConeTarget, rng: np.random.Generator) -> FloatArray:
        """Return the truncated projection."""
        return target.cones.approach(points, target.binding, self.max_iter)


@dataclass(frozen=True)
class CaveHybrid(_ConeAligned):
    """CaVE hybrid: CaVE+ on some rows, drawn anew each time, and a cheap mixture on the others.

    The mixture is `(1 - inner_ratio) (-p)/‖p‖ + inner_ratio · mean of the cone's unit normals`.

    Parameters
    ----------
    solve_ratio : float
        The probability, for each row, to project as CaVE+ does.
    inner_ratio : float
        The weight of the mean normal in the mixture.
    max_iter : int
        The number of interior-point steps.
    relaxed : bool
        For a problem in integers, take the optimum of its linear relaxation.
    """

    solve_ratio: float = 0.3
    inner_ratio: float = 0.2
    max_iter: int = 3

    gradient = "surrogate"
    random = True

    def __post_init__(self) -> None:
        super().__post_init__()
        as_integer(self.max_iter, name="max_iter")
        for name in ("solve_ratio", "inner_ratio"):
            as_number(getattr(self, name), name=name, at_least=0, at_most=1)

    def aim(self, points: FloatArray, target: ConeTarget, rng: np.random.Generator) -> FloatArray:
        """Return the truncated projection on the rows drawn and the mixture on the others."""
        mean = target.cones.mean_unit_normal(target.binding)
        aims = (1 - self.inner_ratio) * unit_rows(points) + self.inner_ratio * mean
        drawn = rng.random(len(points)) < self.solve_ratio
        aims[drawn] = target.cones.approach(points[drawn], target.binding[drawn], self.max_iter)
        return aims
