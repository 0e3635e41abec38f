"""PG, the perturbation gradient losses: a finite difference of the optimal value in the direction of the costs.

Huang & Gupta, "Decision-Focused Learning with Directional Gradients", NeurIPS 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss, choice, positive
from decidewise.losses.parts.target import Target, ValueAndGrad, row_dot

#: The two points of the difference, as multiples of `h` times the costs.
ENDS = {"backward": (-1.0, 0.0), "forward": (0.0, 1.0), "central": (-1.0, 1.0)}


@dataclass(frozen=True)
class Pg(Loss):
    """The perturbation gradient loss: with `V(t) = min_z t·z`, by default `(V(p) - V(p - hc)) / h`.

    Parameters
    ----------
    h : float
        The width of the difference, in units of prediction per cost. Tune it.
    mode : {"backward", "forward", "central"}
        `(V(p) - V(p - hc)) / h`, `(V(p + hc) - V(p)) / h` or `(V(p + hc) - V(p - hc)) / 2h`.

    Notes
    -----
    The derivative of `V` in the direction `c` is the cost `c·z*(p)` of the decision. Backward differences are upper
    bounds of it, forward differences lower bounds, and both tend to it as `h` goes to 0. The gradient is the same
    difference of optimal decisions: exact where both are unique, and zero where they are equal. The loss is not convex;
    its authors start training from SPO+. The value is a cost, not a regret, so its minimum is not 0. It needs no
    optimal decisions as labels, and two solves per row.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Pg(h=2.0)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))
    (array([2.5]), array([[ 0. ,  0.5, -0.5]]))
    """

    h: float = positive(0.1)
    mode: Literal["backward", "forward", "central"] = choice(*ENDS)

    target_type = Target
    gradient = "subgradient"

    def evaluate(self, prediction: FloatArray, target: Target, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and gradient."""
        low, high = (prediction + end * self.h * target.costs for end in ENDS[self.mode])
        width = (ENDS[self.mode][1] - ENDS[self.mode][0]) * self.h
        below, above = target.minimize(low), target.minimize(high)
        return (row_dot(high, above) - row_dot(low, below)) / width, (above - below) / width
