"""RFY, the Fenchel–Young loss of a solver smoothed by a quadratic regulariser.

Blondel, Martins & Niculae, "Learning with Fenchel–Young Losses", JMLR 21, 2020; computed by Frank–Wolfe steps on any
feasible region, as in Dalle, Baty, Bouvier & Parmentier, "Learning with Combinatorial Optimization Layers: a
Probabilistic Approach", 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.checks import FloatArray, as_integer, as_positive
from decidewise.losses.base import DecisionTarget, Loss, row_dot
from decidewise.losses.frank_wolfe import project_on_hull


@dataclass(frozen=True)
class Rfy(Loss):
    """The Fenchel–Young loss `[p·w + Ω(w)] - min_z [p·z + Ω(z)]` of `Ω(z) = λ/2 ‖z‖²`, `z` in the hull of the region.

    Parameters
    ----------
    lambd : float
        The strength `λ` of the regulariser, in units of costs over decisions.
    max_iter : int
        The largest number of Frank–Wolfe steps, one solve per row each; a row that needs more raises a `SolverError`.
    tol : float
        The largest error of the value, divided by `λ`.

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

    lambd: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-12

    gradient = "exact"

    def __post_init__(self) -> None:
        as_positive(self.lambd, name="lambd")
        as_integer(self.max_iter, name="max_iter")
        as_positive(self.tol, name="tol")

    def evaluate(
        self, prediction: FloatArray, target: DecisionTarget, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return values and gradient."""
        smoothed = project_on_hull(
            target.minimize, prediction / -self.lambd, max_iter=self.max_iter, tol=self.tol
        ).points
        gradient = target.decisions - smoothed
        return row_dot(prediction + self.lambd / 2 * (target.decisions + smoothed), gradient), gradient
