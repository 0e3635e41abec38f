"""Adaptive PG: the forward perturbation gradient with a width that leads to good decisions, found as training goes on.

Huang & Gupta, "Decision-Focused Learning with Directional Gradients", NeurIPS 2024, with the search of its authors'
code.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss, count, not_negative, positive
from decidewise.losses.parts.target import SHARED, DecisionTarget, ValueAndGrad, row_dot, solve_labels
from decidewise.losses.pg import Pg
from decidewise.problems.contract import Problem

_FIRST, _FACTOR, _MOST, _TOLERANCE = 0.01, 2.0, 40, 1e-4


@dataclass(frozen=True)
class WidthTarget(DecisionTarget):
    """Costs with their optimal decisions and values, and the present width."""

    width: float = field(metadata=SHARED)


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
    that the value of a row does not depend on the batch it comes in; the public code takes the optimum of its first
    batch for that of all. The gradient is the same difference of optimal decisions, exact where both are unique.

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

    def label(self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator) -> WidthTarget:
        """Solve every row once; until the first search the prediction and the costs count the same."""
        decisions = solve_labels(problem, costs)
        return WidthTarget(problem, costs, decisions, row_dot(costs, decisions), 1.0)

    def evaluate(self, prediction: FloatArray, target: WidthTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and gradient."""
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
