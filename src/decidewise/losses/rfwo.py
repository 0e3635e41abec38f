"""RFWO, the regret of a solver smoothed by a quadratic regulariser, differentiated through the projection.

Dalle, Baty, Bouvier & Parmentier, "Learning with Combinatorial Optimization Layers: a Probabilistic Approach", 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.parts.smoothed import Smoothed
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad, row_dot


@dataclass(frozen=True)
class Rfwo(Smoothed):
    """The regret `c·z(p) - c·w` of the regularised decision `z(p) = argmin_z p·z + λ/2 ‖z‖²`, `z` in the hull.

    Parameters
    ----------
    lambd : float
        The strength `λ` of the regulariser, in units of costs over decisions.
    max_iter : int
        The largest number of Frank–Wolfe steps, one solve per row each; a row that needs more raises a `SolverError`.
    tol : float
        An upper bound of half the squared error of `z(p)`.

    Notes
    -----
    `z(p)` is the projection of `-p/λ` on the hull. On a polytope it stays on its face for small changes of almost every
    `p`, so the gradient is `-P c / λ`, where `P` projects on the directions of that face. The gradient is zero where
    `z(p)` is a vertex, as it is for large `p`. The value is not convex. A curved region has no such faces, so the loss
    needs a polytope.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Rfwo()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> values, gradient = loss.value_and_grad([[2.0, 1.5, 4.0]], target, np.random.default_rng(0))
    >>> values.round(9), gradient.round(9)
    (array([0.75]), array([[ 0.5, -0.5,  0. ]]))
    """

    gradient = "exact"
    requires = frozenset({"polytope"})

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        smoothed = self.smoothed(prediction, target)
        values = row_dot(target.costs, smoothed.points) - target.values
        return values, smoothed.along_face(target.costs / -self.lambd)
