"""PG-DCA, the backward perturbation gradient with its concave part replaced by a tangent, which is convex.

Huang & Gupta, "Decision-Focused Learning with Directional Gradients", NeurIPS 2024, solved by differences of convex
functions as in its authors' code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss, count, positive
from decidewise.losses.parts.target import Target, ValueAndGrad, row_dot, solve_labels
from decidewise.problems.contract import Problem


@dataclass(frozen=True)
class SnapshotTarget(Target):
    """Costs, and the decisions `(n, d)` of the last snapshot of the predictions."""

    snapshot: FloatArray

    @classmethod
    def of(cls, problem: Problem, costs: FloatArray) -> Self:
        """Begin with the optimal decisions, those of a perfect prediction."""
        return cls(problem, costs, solve_labels(problem, costs))


@dataclass(frozen=True)
class PgDca(Loss):
    """The loss `(p·z₀ - V(p - hc)) / h`, with `V(t) = min_z t·z` and `z₀ = z*(p₀)` for a snapshot `p₀` of `p`.

    Parameters
    ----------
    h : float
        The width of the difference, in units of prediction per cost. Tune it.
    refresh_every : int
        Epochs between snapshots.

    Notes
    -----
    `V` is concave, so `p·z₀` is at least `V(p)` for every feasible `z₀`: the loss is convex in `p`, an upper bound of
    backward PG, and equal to it at `p = p₀`. The subgradient is `(z₀ - z*(p - hc)) / h`. One solve per row and step,
    since `z₀` is kept; the public code solves for it again. Before the first snapshot `z₀` is the optimal decision.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = PgDca(h=2.0)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> prediction = [[2.0, 1.0, 4.0]]
    >>> loss.value_and_grad(prediction, target, np.random.default_rng(0))
    (array([3.]), array([[ 0.5,  0. , -0.5]]))
    >>> target = loss.refreshed(prediction, target, np.random.default_rng(0))
    >>> loss.value_and_grad(prediction, target, np.random.default_rng(0))  # now that of Pg(h=2.0)
    (array([2.5]), array([[ 0. ,  0.5, -0.5]]))
    """

    h: float = positive(0.1)
    refresh_every: int = count(5)

    target_type = SnapshotTarget
    gradient = "subgradient"

    def evaluate(self, prediction: FloatArray, target: SnapshotTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and subgradient."""
        behind = prediction - self.h * target.costs
        decisions = target.minimize(behind)
        values = row_dot(prediction, target.snapshot) - row_dot(behind, decisions)
        return values / self.h, (target.snapshot - decisions) / self.h

    def refresh(self, prediction: FloatArray, target: SnapshotTarget, rng: np.random.Generator) -> SnapshotTarget:
        """Take a snapshot: the decisions of the present predictions."""
        return replace(target, snapshot=target.minimize(prediction))
