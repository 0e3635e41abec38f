"""RFY, the Fenchel–Young loss of a solver smoothed by a quadratic regulariser.

Blondel, Martins & Niculae, "Learning with Fenchel–Young Losses", JMLR 21, 2020; computed by Frank–Wolfe steps on any
feasible region, as in Dalle, Baty, Bouvier & Parmentier, "Learning with Combinatorial Optimization Layers: a
Probabilistic Approach", 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.parts.smoothed import Smoothed
from decidewise.losses.parts.target import DecisionTarget, ValueAndGrad, row_dot


@dataclass(frozen=True)
class Rfy(Smoothed):
    """The Fenchel–Young loss `[p·w + Ω(w)] - min_z [p·z + Ω(z)]` of `Ω(z) = λ/2 ‖z‖²`, `z` in the hull of the region.

    Parameters
    ----------
    lambd : float
        The strength `λ` of the regulariser, in units of costs over decisions.
    max_iter, tol
        As for `Rfwo`; `tol` bounds the error of the value, divided by `λ`.

    Notes
    -----
    The minimiser `z(p)` is the projection of `-p/λ` on the hull. The loss is convex and smooth in `p`, non-negative,
    and zero exactly where `z(p) = w`. Its gradient is `w - z(p)`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Rfy()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> values, gradient = loss.value_and_grad([[2.0, 1.5, 4.0]], target, np.random.default_rng(0))
    >>> values.round(9), gradient.round(9)
    (array([0.5625]), array([[ 0.75, -0.75,  0.  ]]))
    """

    gradient = "exact"

    def evaluate(self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator) -> ValueAndGrad:
        smoothed = self.smoothed(prediction, target).points
        gradient = target.decisions - smoothed
        return row_dot(prediction + self.lambd / 2 * (target.decisions + smoothed), gradient), gradient
