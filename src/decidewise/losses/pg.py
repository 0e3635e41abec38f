"""PG, the perturbation gradient losses: a finite difference of the optimal value in the direction of the costs.

Huang & Gupta, "Decision-Focused Learning with Directional Gradients", NeurIPS 2024, with its authors' code for the
convex and the adaptive variant.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss, choice, count, not_negative, positive
from decidewise.losses.parts.target import SHARED, DecisionTarget, Target, ValueAndGrad, row_dot, solve_labels
from decidewise.problems.contract import Problem

#: The two points of the difference, as multiples of `h` times the costs.
ENDS = {"backward": (-1.0, 0.0), "forward": (0.0, 1.0), "central": (-1.0, 1.0)}
# The search of the adaptive width: its first width, the factor, the most factors, and the relative tolerance.
_FIRST, _FACTOR, _MOST, _TOLERANCE = 0.01, 2.0, 40, 1e-4


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
        low, high = (prediction + end * self.h * target.costs for end in ENDS[self.mode])
        width = (ENDS[self.mode][1] - ENDS[self.mode][0]) * self.h
        below, above = target.minimize(low), target.minimize(high)
        return (row_dot(high, above) - row_dot(low, below)) / width, (above - below) / width


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
    backward PG, and equal to it at `p = p₀`. The subgradient is `(z₀ - z*(p - hc)) / h`. One solve per row and step.
    Before the first snapshot `z₀` is the optimal decision.

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
        behind = prediction - self.h * target.costs
        decisions = target.minimize(behind)
        values = row_dot(prediction, target.snapshot) - row_dot(behind, decisions)
        return values / self.h, (target.snapshot - decisions) / self.h

    def refresh(self, prediction: FloatArray, target: SnapshotTarget, rng: np.random.Generator) -> SnapshotTarget:
        """Take a snapshot: the decisions of the present predictions."""
        return replace(target, snapshot=target.minimize(prediction))


@dataclass(frozen=True)
class WidthTarget(DecisionTarget):
    """Costs with their optimal decisions and values, and the present width: 1 until the first search."""

    width: float = field(default=1.0, metadata=SHARED)


@dataclass(frozen=True)
class PgAdaptive(Loss):
    """The forward perturbation gradient `(V(p + λc) - V(p)) / λ`, with `V(t) = min_z t·z` and an adaptive width `λ`.

    `λ` is the smallest width, but at least `h`, at which the decisions of `p + λc` cost at most `slack` more than the
    optimal ones, on average over the training rows; until the first search it is 1.

    Parameters
    ----------
    h : float
        The smallest width.
    slack : float
        How much more than the optimum, relative to it, decisions may cost.
    refresh_every : int
        Epochs between searches. A search takes about 20 solves per row.

    Notes
    -----
    The search doubles the width from 0.01 and then bisects to a relative 1e-4. It looks at all rows, not at a batch, so
    that the value of a row does not depend on its batch. The gradient is the same difference of optimal decisions,
    exact where both are unique.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = PgAdaptive(h=0.1)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> target = loss.refreshed([[2.0, 1.5, 4.0]], target, np.random.default_rng(0))
    >>> round(target.width, 3)  # from there on the first item is the cheapest
    0.5
    """

    h: float = positive(0.1)
    slack: float = not_negative(0.1)
    refresh_every: int = count(5)

    target_type = WidthTarget
    gradient = "subgradient"

    def evaluate(self, prediction: FloatArray, target: WidthTarget, rng: np.random.Generator) -> ValueAndGrad:
        return Pg(target.width, "forward").evaluate(prediction, target, rng)

    def refresh(self, prediction: FloatArray, target: WidthTarget, rng: np.random.Generator) -> WidthTarget:
        """Search for the width that suits the present predictions."""
        aim = target.values.mean() + self.slack * np.abs(target.values).mean()

        def is_enough(width: float) -> bool:
            decisions = target.minimize(prediction + width * target.costs)
            return bool(row_dot(target.costs, decisions).mean() <= aim)

        low, high = 0.0, _FIRST
        for _ in range(_MOST):
            if is_enough(high):
                break
            low, high = high, _FACTOR * high
        while high - low > _TOLERANCE * high and high > self.h:
            middle = (low + high) / 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return replace(target, width=max(self.h, high))
