"""SCE, the smoothed regret plus the regret of the optimal decision under the prediction.

Mandi, Mahmutoğulları, Berden & Guns, "Minimizing Surrogate Losses for Decision-Focused Learning using Differentiable
Optimization", 2025.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.parts.smoothed import Smoothed
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad, row_dot


@dataclass(frozen=True)
class Sce(Smoothed):
    """The loss `(p - c)·(w - z(p))` of the regularised decision `z(p) = argmin_z p·z + λ/2 ‖z‖²`, `z` in the hull.

    Parameters
    ----------
    lambd : float
        The strength `λ` of the regulariser, in units of costs over decisions.
    max_iter, tol
        As for `Rfwo`.

    Notes
    -----
    The value is the regret `c·z(p) - c·w` plus `p·w - p·z(p)`, the regret of the optimal decision `w` under the
    prediction. As `λ` goes to 0 neither is negative. The gradient is `(w - z(p)) + F(p - c)/λ`, where `F` projects on
    the directions of the face of `z(p)`. Where `z(p)` is a vertex `F` is zero, and with it the gradient of RFWO; that
    of SCE stays `w - z(p)`. A curved region has no such faces, so the loss needs a polytope.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Sce()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> values, gradient = loss.value_and_grad([[9.0, 2.0, 4.0]], target, np.random.default_rng(0))
    >>> values, gradient  # z(p) is the second item, a vertex
    (array([8.]), array([[ 1., -1.,  0.]]))
    """

    gradient = "exact"
    requires = frozenset({"polytope"})

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        smoothed = self.smoothed(prediction, target)
        error, gap = prediction - target.costs, target.decisions - smoothed.points
        return row_dot(error, gap), gap + smoothed.along_face(error / self.lambd)
