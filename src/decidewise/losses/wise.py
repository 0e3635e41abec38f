"""WISE, the weight integrated spherical error: least squares under the change of measure, without a solver.

`WISE(p, c) = ‖c‖ · ‖p - c/‖c‖‖²`, and 0 if `c = 0`. Its minimiser, `E[c | x] / E[‖c‖ | x]`, has the same optimal
decisions as `E[c | x]` over every feasible region (Wan & Liu, "A Solver-Free Training Method for
Predict-then-Optimize", 2026).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss, namespace_of
from decidewise.losses.parts.target import Target, ValueAndGrad, row_dot
from decidewise.measure import polar, transform
from decidewise.problems.contract import Problem


def wise(prediction: Any, costs: Any, *, eps: float = 0.0) -> Any:
    """Return the WISE loss of each row; for torch and jax arrays it is differentiable.

    Parameters
    ----------
    prediction, costs : arrays of shape (..., d)
        Both from NumPy, both from torch or both from jax.
    eps : float
        Norms below `eps` are raised to `eps`, as the paper's remark on near-zero costs allows. With 0 they are not: a
        row of zero costs has loss 0 and gradient 0.

    Returns
    -------
    values : array of shape (...)

    Examples
    --------
    >>> wise(np.array([[0.6, 0.8], [1.0, 1.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([0., 0.])
    """
    xp = namespace_of(prediction, costs)
    norm, direction = polar(costs, xp, eps=eps)
    residual = prediction - direction
    return norm[..., 0] * xp.sum(residual * residual, axis=-1)


@dataclass(frozen=True)
class WiseTarget(Target):
    """Costs with their norms `(n, 1)` and directions `(n, d)`."""

    norms: FloatArray
    directions: FloatArray

    @classmethod
    def of(cls, problem: Problem, costs: FloatArray) -> Self:
        """Split the costs into norms and directions."""
        weights, directions = transform(costs)
        return cls(problem, costs, weights[:, None], directions)


@dataclass(frozen=True)
class Wise(Loss):
    """The WISE loss `‖c‖ · ‖p - c/‖c‖‖²`; it needs no solver."""

    gradient = "exact"
    target_type = WiseTarget
    solves = False
    directions = True
    native = staticmethod(wise)

    def evaluate(self, prediction: FloatArray, target: WiseTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and gradient `2(‖c‖p - c)`."""
        residual = prediction - target.directions
        weighted = target.norms * residual
        return row_dot(residual, weighted), 2 * weighted
