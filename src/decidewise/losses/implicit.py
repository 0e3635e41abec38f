"""The regret on a curved region, differentiated through the optimality conditions of the decision itself.

Amos & Kolter, "OptNet: Differentiable Optimization as a Layer in Neural Networks", ICML 2017; Donti, Amos & Kolter,
"Task-based End-to-end Model Learning in Stochastic Optimization", NeurIPS 2017; Agrawal, Amos, Barratt, Boyd, Diamond &
Kolter, "Differentiable Convex Optimization Layers", NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad, row_dot


@dataclass(frozen=True)
class Implicit(Loss):
    """The regret `c·z*(p) - c·w` itself, with its gradient `J c`, where `J` is the Jacobian of `z*(p)`.

    With `N` a basis of the directions that keep all binding constraints, and `Q` the curvature of the Lagrangian,
    `J = -N (NᵀQN)⁻¹ Nᵀ`. On a ball of radius `r` this is `-(r/‖p‖)(I - uuᵀ)`, `u = p/‖p‖`.

    It needs a decision that changes smoothly: over a curved region, such as `Ball`, `Ellipsoid`, `Portfolio` and a
    `ConicProgram` with cones or quadratic constraints, or of a `QuadraticProgram`: see `Problem.derivative`.
    Of a linear program decisions jump from vertex to vertex, so that the gradient is zero wherever it exists; `Qptl`
    adds the curvature that is missing.

    Notes
    -----
    Layers of general solvers (qpth, cvxpylayers) compute the same derivative to the tolerance of their solver; here it
    is exact, of a `ConicProgram` to 1e-8. The value is not convex. At a kink of the region the gradient is that of one
    side.

    Examples
    --------
    >>> from decidewise.problems import Ball
    >>> loss = Implicit()
    >>> target = loss.prepare(Ball(2), [[1.0, 0.0]])
    >>> loss.value_and_grad([[0.0, 2.0]], target, np.random.default_rng(0))
    (array([1.]), array([[-0.5,  0. ]]))
    """

    gradient = "exact"
    requires = frozenset({"derivative"})

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        decisions = target.minimize(prediction)
        values = row_dot(target.costs, decisions) - target.values
        return values, target.problem.derivative(prediction, decisions, target.costs)
