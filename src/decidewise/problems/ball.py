"""The ball, the simplest strongly convex set: for costs `c` its only minimiser is `-radius c / ‖c‖`.

Ties: none, except for zero costs, where the centre is returned.
"""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray, as_integer, as_number
from decidewise.kit.scaling import norms, unit_rows
from decidewise.problems.contract import Problem, Sense, as_n_costs


class Ball(Problem):
    """Choose a point of norm at most `radius`: `w = -radius c / ‖c‖`.

    It is the level set `g(w) <= r` of `g(w) = ‖w‖²`, which is `mu`-strongly convex and `L`-smooth.

    Parameters
    ----------
    dimension : int
    radius : float
    sense : {"min", "max"}

    Attributes
    ----------
    n_costs : int
        `dimension`.
    mu, L, r, g_min : float
        The constants of the level set: 2, 2, `radius²` and 0.
    B_S : float
        The radius.

    Examples
    --------
    >>> from decidewise.problems import Ball
    >>> Ball(2, radius=10.0).solve([[3.0, -4.0], [0.0, 0.0]])
    array([[-6.,  8.],
           [ 0.,  0.]])
    """

    faces = "curved"
    mu: float = 2.0
    L: float = 2.0
    g_min: float = 0.0

    def __init__(self, dimension: int, radius: float = 1.0, *, sense: Sense = "min") -> None:
        super().__init__(sense=sense)
        self.dimension = self.n_costs = as_n_costs(as_integer(dimension, name="dimension"))
        self.radius = as_radius(radius)
        self.r = self.radius**2
        self.B_S = self.radius

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the point in the direction `-c`, and the centre for zero costs."""
        return -self.radius * unit_rows(costs) + 0.0  # turns -0.0 into 0.0

    def derivative(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `-(radius/‖c‖) (v - u u·v)` with `u = c/‖c‖`, and zero for zero costs."""
        units, sizes = unit_rows(costs), norms(costs)
        along = np.einsum("ij,ij->i", units, vectors)
        factor = np.divide(-self.radius, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        return factor[:, None] * (vectors - along[:, None] * units) + 0.0  # turns -0.0 into 0.0


def as_radius(radius: float) -> float:
    """Return the radius; raise unless it is positive and its square is in the range of float64."""
    return as_number(radius, name="radius", above=0, at_most=1e150)
