"""Facets of the convex hull of a region, found by its solver alone, that separate given points from it.

For a point `v` outside the hull and a point `q` inside it, `α·(z - q) <= 1` with the largest `α·(v - q)` that holds for
all `z` of the region is the facet through which the way from `q` to `v` leaves the hull. A linear program over the
decisions known so far proposes `α`, and the solver finds a decision that breaks it, or proves it.

Buchheim, Liers & Oswald, "Local cuts revisited", Operations Research Letters 36, 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import SolverError

# The largest entry of a normal, relative to the size of the hull: in directions in which the hull is flat there is no
# other bound.
_STEEPEST = 1e4
_TOLERANCE = 1e-9
_MOST_ROUNDS = 1000


@dataclass
class TargetCuts:
    """The cuts of one region.

    Parameters
    ----------
    minimize : callable
        Returns optimal decisions for costs (n, d).
    decisions : ndarray of shape (m, d)
        Different ones of the region; those that are found later are added.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> cuts = TargetCuts(lambda costs: corners[(costs @ corners.T).argmin(axis=1)], corners)
    >>> normal, limit = cuts.separate(np.array([1.0, 0.5]))
    >>> normal.round(6), round(limit, 6)
    (array([1., 1.]), 1.0)
    """

    minimize: Callable[[FloatArray], FloatArray]
    decisions: FloatArray

    def separate(self, point: FloatArray) -> tuple[FloatArray, float]:
        """Return `α` (d,), of largest entry 1, and the largest `α·z` of the region, which is below that of the point.

        The limit is that of a decision of the solver, so that no decision is ever cut off.
        """
        for _ in range(_MOST_ROUNDS):
            inside = self.decisions.mean(axis=0)
            around = self.decisions - inside
            steepest = _STEEPEST / max(np.abs(around).max(), np.abs(point - inside).max())
            found = linprog(
                inside - point, A_ub=around, b_ub=np.ones(len(around)), bounds=(-steepest, steepest), method="highs"
            )
            if found.status != 0:
                break
            normal = found.x / np.abs(found.x).max()
            farthest = self.minimize(-normal[None])[0]
            known = (self.decisions @ normal).max()
            if farthest @ normal <= known + _TOLERANCE * (1 + abs(known)):
                return normal, float(max(farthest @ normal, known))
            self.decisions = np.vstack([self.decisions, farthest])
        raise SolverError("no cut of a fractional point was found. Choose Rfwo, which needs no cuts.", row=0)
