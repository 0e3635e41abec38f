"""NID, the negative identity in place of the solver's Jacobian.

Sahoo, Paulus, Vlastelica, Musil, Kuleshov & Martius, "Backpropagation through Combinatorial Algorithms: Identity with
Projection Works", ICLR 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import Loss
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad, row_dot


@dataclass(frozen=True)
class Nid(Loss):
    """The regret `c·z*(p) - c·w` with the gradient `-c`, as if the solver's Jacobian were minus the identity.

    Notes
    -----
    A descent step moves `p` in the direction of `c`, so that each item looks as expensive as it is.
    The surrogate does not depend on `p`, because the regret is linear in the decision; so it is never zero and `p`
    grows without bound. For that reason its authors project `p`. It takes one solve per row, only for the value.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Nid()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))
    (array([1.]), array([[-1., -2., -4.]]))
    """

    gradient = "surrogate"

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        return row_dot(target.costs, target.minimize(prediction)) - target.values, -target.costs
