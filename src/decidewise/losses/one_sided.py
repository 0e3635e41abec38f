"""One-sided squares: errors that can change the decision count, and those that cannot hardly do.

After an idea of Schutte, Berden, Guns, Postek & Yorke-Smith, "Scalable Decision-Focused Learning through Cost-Sensitive
Regression", arXiv 2605.18005, 2026, whose own formula is another one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import NotForProblemError
from decidewise.losses.base import Loss, not_negative
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad
from decidewise.problems.contract import Problem
from decidewise.problems.views import is_lifted

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class OneSided(Loss):
    """The loss `Σ_j w_j (p_j - c_j)₊² + (1 - w_j)(c_j - p_j)₊² + ρ (p_j - c_j)²` for decisions of zeros and ones.

    Predicting too much for what the optimal decision `w` takes, or too little for what it leaves out, can lead to
    another decision; the reverse cannot. The loss solves for the labels only.

    Parameters
    ----------
    rho : float
        The weight `ρ` of all errors, which keeps predictions near the costs.

    Notes
    -----
    If the first two terms are zero, so is the regret: for every decision `z`,
    `p·z - p·w >= c·z - c·w >= 0`. The value is convex and smooth. It is not Fisher consistent: where the optimal
    decision varies for the same `x`, the minimiser is not the mean.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = OneSided(rho=0.0)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[2.0, 1.5, 9.0]], target, np.random.default_rng(0))
    (array([1.25]), array([[ 2., -1.,  0.]]))
    """

    rho: float = not_negative(0.1)

    gradient = "exact"
    solves = False

    def check(self, problem: Problem) -> None:
        """Raise if decisions cannot be zeros and ones, as far as the bounds of the problem tell."""
        super().check(problem)
        polyhedron = problem.polyhedron
        if polyhedron is None or (polyhedron.lower < 0).any() or (polyhedron.upper > 1).any():
            self._refuse(type(problem).__name__)

    def label(
        self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator
    ) -> DecisionTarget:
        """Solve every row once; raise if a decision is not of zeros and ones."""
        target = DecisionTarget.of(problem, costs)
        decisions = target.decisions[:, :-1] if is_lifted(problem) else target.decisions
        if (np.minimum(np.abs(decisions), np.abs(1 - decisions)) > _TOLERANCE).any():
            self._refuse(type(problem).__name__)
        return target

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        error = prediction - target.costs
        above = np.maximum(error, 0)
        weighted = (target.decisions + self.rho) * above + (1 - target.decisions + self.rho) * (error - above)
        return np.einsum("ij,ij->i", weighted, error), 2 * weighted

    def _refuse(self, name: str) -> None:
        raise NotForProblemError(
            f"OneSided needs decisions of zeros and ones, and those of {name} may be others. Choose a loss that takes "
            "any decisions, such as SpoPlus or Pfy."
        )
