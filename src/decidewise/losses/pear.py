"""PEAR, the regularised cost of a regularised decision, with a gradient that also sees across the face it lies on.

Lee, Jin & Lee, "Decision-Focused Learning via Tangent-Space Projection of Prediction Error", arXiv 2605.01361, 2026.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import not_negative, positive
from decidewise.losses.parts.smoothed import Smoothed
from decidewise.losses.parts.target import Target, ValueAndGrad, row_dot
from decidewise.problems.contract import Problem

# Keeps the share of the normal part finite where there is none; as in the public code.
_SMALL = 1e-6


@dataclass(frozen=True)
class SmoothedTarget(Target):
    """Costs with their regularised decisions `z(c)` `(n, d)`."""

    best: FloatArray


@dataclass(frozen=True)
class Pear(Smoothed):
    """The regularised regret of `z(p) = argmin_z p·z + Ω(z)`: `[c·z + Ω(z)]` at `z(p)` minus the same at `z(c)`.

    Here `Ω(z) = λ/2 ‖z‖²`, and `z` is in the convex hull of the region.

    Parameters
    ----------
    lambd : float
        The strength `λ` of the regulariser, in units of costs over decisions.
    max_iter, tol
        As for `Rfwo`.
    injection : float
        The share `η` of the normal part that the gradient gets. With 0 it is the gradient of the value.

    Notes
    -----
    The gradient of the value is `u = F(p - c)/λ`, where `F` projects on the directions of the face of `z(p)`. It is
    zero where `z(p)` is a vertex, and so is the value's slope. With `n` the rest of `(p - c)/λ`, the loss returns
    `u + η n ‖u‖/(‖n‖ + 1e-6)`: the part across the face, scaled to the length of the part along it. The value is never
    negative, and 0 at `p = c`. It takes the projection of RFY in each step, and one more for the labels.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Pear(lambd=1.0, injection=0.0)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 1.5, 4.0]])
    >>> values, gradient = loss.value_and_grad([[2.0, 1.5, 4.0]], target, np.random.default_rng(0))
    >>> values.round(9), gradient.round(9)
    (array([0.25]), array([[ 0.5, -0.5,  0. ]]))
    """

    lambd: float = positive(0.1)
    injection: float = not_negative(0.1)

    gradient = "surrogate"
    target_type = SmoothedTarget
    requires = frozenset({"polytope"})

    def label(
        self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator
    ) -> SmoothedTarget:
        return SmoothedTarget(problem, costs, self.smoothed(costs, Target(problem, costs)).points)

    def evaluate(self, prediction: FloatArray, target: SmoothedTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and the gradient with the part across the face added."""
        smoothed = self.smoothed(prediction, target)
        # The difference of c·z + λ/2 ‖z‖² in one product, which rounds less.
        middle = target.costs + self.lambd / 2 * (smoothed.points + target.best)
        values = row_dot(middle, smoothed.points - target.best)
        error = (prediction - target.costs) / self.lambd
        along = smoothed.along_face(error)
        across = error - along
        lengths = [np.linalg.norm(part, axis=1, keepdims=True) for part in (along, across)]
        return values, along + self.injection * lengths[0] / (lengths[1] + _SMALL) * across
