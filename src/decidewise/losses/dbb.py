"""DBB, differentiation of a black-box solver by interpolation.

Vlastelica Pogančić, Paulus, Musil, Martius & Rolínek, "Differentiation of Blackbox Combinatorial Solvers", ICLR 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss, positive
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad, row_dot


@dataclass(frozen=True)
class Dbb(Loss):
    """The regret `c·z*(p) - c·w` with the interpolated gradient `(z*(p + λc) - z*(p)) / λ`.

    Parameters
    ----------
    lambd : float
        The interpolation step `λ`. A small step is faithful to the regret; a large one changes more decisions.

    Notes
    -----
    The regret is constant almost everywhere, so its own gradient is useless. The surrogate is the gradient of
    `(V(p + λc) - V(p)) / λ` with `V(t) = min_z t·z`, which is a lower bound of `c·z*(p)`, tends to it as `λ` goes to 0,
    and is not convex. It takes two solves per row.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Dbb()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))
    (array([1.]), array([[ 0.1, -0.1,  0. ]]))
    """

    lambd: float = positive(10.0)

    gradient = "surrogate"

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        decisions = target.minimize(prediction)
        shifted = target.minimize(prediction + self.lambd * target.costs)
        return row_dot(target.costs, decisions) - target.values, (shifted - decisions) / self.lambd
