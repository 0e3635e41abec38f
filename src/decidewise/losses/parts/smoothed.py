"""Losses of the decision `z(p)` that a quadratic regulariser smooths: what they share.

`z(p) = argmin_z p·z + λ/2 ‖z‖²` over the convex hull of the region is the projection of `-p/λ`. On a polytope it stays
on one face for small changes of almost every `p`, so that its Jacobian is `-F/λ`, where `F` projects on the directions
of that face.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray, IndexArray, as_integer, as_positive
from decidewise.losses.base import Loss
from decidewise.losses.parts.frank_wolfe import Projection, project_on_hull
from decidewise.losses.parts.target import Target


@dataclass(frozen=True)
class Smoothed(Loss):
    """The parameters and the projection that these losses share.

    Parameters
    ----------
    lambd : float
        The strength `λ` of the regulariser, in units of costs over decisions.
    max_iter : int
        The largest number of Frank–Wolfe steps, one solve per row each; a row that needs more raises a `SolverError`.
    tol : float
        An upper bound of half the squared error of `z(p)`.
    """

    lambd: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-12

    def __post_init__(self) -> None:
        as_positive(self.lambd, name="lambd")
        as_integer(self.max_iter, name="max_iter")
        as_positive(self.tol, name="tol")

    def smoothed(self, costs: FloatArray, target: Target) -> Projection:
        """Return `z` of each row of costs (b, d), with the face that it lies on."""
        minimize = self.oracle(target)
        with np.errstate(over="ignore"):  # what overflows is refused where it is solved for
            targets = costs / -self.lambd
        return project_on_hull(minimize, targets, max_iter=self.max_iter, tol=self.tol)

    def oracle(self, target: Target) -> Callable[[FloatArray, IndexArray], FloatArray]:
        """Return what minimises costs (b, d) of some rows (b,) over the region whose hull is meant."""
        return target.minimize
