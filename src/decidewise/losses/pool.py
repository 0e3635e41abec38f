"""What the pool losses share: the distinct optimal decisions of the training costs, found once and ranked ever after.

Mulamba et al. and Mandi et al. let the pool grow during training by solving for some predictions; here it stays as
`prepare` made it, so that the solver never enters the training loop. A loss whose pool grows overrides `refresh`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from decidewise.checks import FloatArray
from decidewise.losses.base import SHARED, DecisionTarget, Loss
from decidewise.problems.base import Problem


@dataclass(frozen=True, eq=False)
class Pool:
    """Distinct feasible decisions `(m, d)`, shared by every batch."""

    decisions: FloatArray

    def __len__(self) -> int:
        return len(self.decisions)

    @cached_property
    def mean(self) -> FloatArray:
        """The average decision `(d,)`."""
        return self.decisions.mean(axis=0)

    def objectives(self, costs: FloatArray) -> FloatArray:
        """Return `costs[i]·v` for every row and every decision `v` of the pool: (b, d) -> (b, m)."""
        return costs @ self.decisions.T


@dataclass(frozen=True)
class PoolTarget(DecisionTarget):
    """Costs with their optimal decisions, and the pool of all distinct ones among them."""

    pool: Pool = field(metadata=SHARED)

    @classmethod
    def of(cls, problem: Problem, costs: FloatArray) -> Self:
        """Solve for the optimal decisions and collect the distinct ones."""
        solved = DecisionTarget.of(problem, costs)
        return cls(problem, costs, solved.decisions, solved.values, Pool(np.unique(solved.decisions, axis=0)))


class PoolLoss(Loss):
    """A loss that compares decisions of the pool; it needs the solver for the labels only."""

    target_type = PoolTarget
    solves = False
