"""CILP, the distance of a prediction to the costs for which the optimal decision is optimal by a margin.

Mishra, Raj & Vaswani, "From Inverse Optimization to Feasibility to ERM", ICML 2024.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import not_negative
from decidewise.losses.cave import ConeLoss, ConeTarget
from decidewise.losses.parts.target import ValueAndGrad, row_dot


@dataclass(frozen=True)
class Cilp(ConeLoss):
    """Half the squared distance `½‖p - q‖²` to the nearest `q` for which `w` is optimal by a margin.

    `w` is optimal for `q` exactly if `-q` is in the normal cone `K` at `w`. The set here is `-(s + K)`, where `s` is
    `margin` times the sum of the normals of the constraints that bind at `w`: strictly inside, where `w` is the only
    optimum.

    Parameters
    ----------
    margin : float
        How far inside the cone predictions should be, as a multiple of the sum of the normals as the constraints have
        them. With 0 the boundary is enough, and so is a prediction of zero.
    relaxed : {"auto", True, False}
        Whether to take the cone at an optimum of the linear relaxation; "auto" does so if the problem is integer.

    Notes
    -----
    With `Π` the projection on `K`, `q = -(s + Π(-p - s))` and the gradient is `p - q`: the value is convex and smooth.
    The normals are those of the constraints as they are written, as in the authors' code (`revgrad`), so that another
    scale of a row is another margin.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Cilp()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> values, gradient = loss.value_and_grad([[1.0, 1.0, 9.0]], target, np.random.default_rng(0))
    >>> values.round(9), gradient.round(9)  # the first item has to cost less than the second by 2
    (array([1.]), array([[ 1., -1.,  0.]]))
    """

    margin: float = not_negative(1.0)

    gradient = "exact"

    def evaluate(self, prediction: FloatArray, target: ConeTarget, rng: np.random.Generator) -> ValueAndGrad:
        one_sided = np.where(target.binding == 2, 0, target.binding)  # an equality holds on both sides
        inside = self.margin * np.asarray(one_sided @ target.cones.normals)
        nearest = -(inside + target.cones.project(-prediction - inside, target.binding))
        residual = prediction - nearest
        return row_dot(residual, residual) / 2, residual
