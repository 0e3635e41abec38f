"""Mean squared error, the baseline that ignores decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss, namespace_of
from decidewise.losses.parts.target import Target, ValueAndGrad, row_dot


def mse(prediction: Any, costs: Any) -> Any:
    """Return `mean_j (p_j - c_j)²` of each row, on NumPy, torch or jax arrays: (..., d), (..., d) -> (...).

    Examples
    --------
    >>> mse(np.array([[1.0, 2.0]]), np.array([[1.0, 4.0]]))
    array([2.])
    """
    xp = namespace_of(prediction, costs)
    residual = prediction - costs
    return xp.mean(residual * residual, axis=-1)


@dataclass(frozen=True)
class Mse(Loss):
    """The mean squared error `mean_j (p_j - c_j)²`; it needs no solver."""

    target_type = Target
    gradient = "exact"
    solves = False
    native = staticmethod(mse)

    def evaluate(self, prediction: FloatArray, target: Target, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and gradient `2(p - c)/d`."""
        residual = prediction - target.costs
        return row_dot(residual, residual) / residual.shape[1], residual * (2 / residual.shape[1])
