"""IntOpt, the regret of the point that a logarithmic barrier keeps inside the region.

Mandi & Guns, "Interior Point Solving for LP-based Prediction+Optimisation", NeurIPS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from decidewise.kit.checks import FloatArray, as_positive
from decidewise.losses.base import Loss
from decidewise.losses.parts.target import SHARED, DecisionTarget, ValueAndGrad, row_dot, solve_labels
from decidewise.problems.contract import Problem
from decidewise.solvers import Polyhedron
from decidewise.solvers.barrier import Barrier


@dataclass(frozen=True)
class BarrierTarget(DecisionTarget):
    """Costs with the optimal decisions and values of the linear relaxation, and the barrier of the region."""

    barrier: Barrier = field(metadata=SHARED)


@dataclass(frozen=True)
class IntOpt(Loss):
    """The regret `c·x(p) - c·w` of `x(p) = argmin p·x - μ Σ ln(slacks)`, `x` in the linear relaxation; `w` its optimum.

    Parameters
    ----------
    mu : float
        The weight `μ` of the barrier, in the units of the costs. Tuned values in the literature are 1e-6 to 10.

    Notes
    -----
    The gradient is `J c` with the Jacobian `J = -N H⁻¹ Nᵀ` of `x(p)` (see `solvers.barrier`). `x(p)` never reaches a
    vertex, so the gradient never vanishes, and as `μ` goes to 0 the value becomes the regret on the relaxation.
    Newton's method finds `x(p)` to machine precision, without the damping of the original code. That code
    differentiates the iterate of a homogeneous embedding, whose equations have no exact solution for `μ > 0`; here the
    equations are those of the barrier problem itself. A public collection repairs this with an elementwise product
    where an outer one is due, and makes the capacity of a knapsack an equation. The region must have a point with all
    inequalities slack.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = IntOpt(mu=0.5)
    >>> target = loss.prepare(TopK(2, 1, sense="min"), [[1.0, 2.0]])
    >>> values, gradient = loss.value_and_grad([[2.0, 1.0]], target, np.random.default_rng(0))
    >>> values.round(4), gradient.round(4)
    (array([0.618]), array([[ 0.1056, -0.1056]]))
    """

    mu: float = 0.1

    target_type = BarrierTarget
    gradient = "exact"
    solves = False
    requires = frozenset({"polyhedron"})

    def __post_init__(self) -> None:
        as_positive(self.mu, name="mu")

    def label(
        self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator
    ) -> BarrierTarget:
        """Solve the linear relaxation of every row, and find a point inside the region."""
        barrier = Barrier(cast("Polyhedron", problem.polyhedron))  # `check` refuses a problem without one
        barrier.interior  # noqa: B018  (raises now, not in training, if there is none)
        decisions = solve_labels(problem, costs, relaxed=True)
        return BarrierTarget(problem, costs, decisions, row_dot(costs, decisions), barrier)

    def evaluate(self, prediction: FloatArray, target: BarrierTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and gradient."""
        points, along = target.barrier.minimize(prediction, mu=self.mu, vectors=target.costs)
        return row_dot(target.costs, points) - target.values, along
