"""SPO+, a convex upper bound of the regret.

Elmachtoub & Grigas, "Smart 'Predict, then Optimize'", Management Science 68(1), 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad, row_dot


@dataclass(frozen=True)
class SpoPlus(Loss):
    """The SPO+ loss `2p·w - c·w - min_z (2p - c)·z`, with `w` the optimal decision of the costs `c`.

    Notes
    -----
    The value is convex in `p`, an upper bound of the regret `c·z*(p) - c·w`, and 0 at `p = c`. The subgradient
    `2(w - z*(2p - c))` is the gradient where `2p - c` has only one optimal decision. It takes one solve per row.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = SpoPlus()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))
    (array([3.]), array([[ 2., -2.,  0.]]))
    """

    gradient = "subgradient"

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        twice = 2 * prediction
        shifted_costs = twice - target.costs
        shifted = target.minimize(shifted_costs)
        values = row_dot(twice, target.decisions) - target.values - row_dot(shifted_costs, shifted)
        gradient = target.decisions - shifted
        gradient *= 2
        return values, gradient
