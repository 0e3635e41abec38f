"""The common part of the pool losses: the pool of distinct optimal decisions of the training costs.

Mulamba et al. and Mandi et al. let the pool grow during training by solving for some predictions. Here `prepare` makes
the pool and training does not change it, so training needs no solver. A loss whose pool grows overrides `refresh`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss
from decidewise.losses.parts.target import SHARED, DecisionTarget
from decidewise.problems.contract import Problem


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
    """Costs with their optimal decisions, and the pool of the distinct ones."""

    pool: Pool = field(metadata=SHARED)

    @classmethod
    def of(cls, problem: Problem, costs: FloatArray, *more: Any) -> Self:
        """Solve for the optimal decisions and collect the distinct ones."""
        solved = DecisionTarget.of(problem, costs)
        return cls(problem, costs, solved.decisions, solved.values, Pool(np.unique(solved.decisions, axis=0)), *more)


class PoolLoss(Loss):
    """A loss that compares decisions of a pool; it needs the solver only for the labels."""

    target_type = PoolTarget
    solves = False
    requires = frozenset({"common region"})
