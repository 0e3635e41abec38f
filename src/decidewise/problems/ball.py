"""Strongly convex sets: the ball, and the ellipsoid, whose curvature depends on the direction.

Ties: none, except for zero costs, where the centre is returned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray, as_integer, as_matrix, as_number
from decidewise.kit.scaling import norms, unit_rows
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.problems.mapped_problem.arguments import as_symmetric


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
        self.radius = _as_radius(radius)
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


class Ellipsoid(Problem):
    """Choose a point with `wᵀMw <= radius²`: `w = -radius M⁻¹c / sqrt(cᵀM⁻¹c)`.

    It is the level set `g(w) <= r` of `g(w) = wᵀMw`, which is `mu`-strongly convex and `L`-smooth.

    Parameters
    ----------
    matrix : array-like of shape (n_costs, n_costs)
        `M`, symmetric and positive definite.
    radius : float
    sense : {"min", "max"}

    Attributes
    ----------
    n_costs : int
        One per row of `matrix`.
    mu, L : float
        Twice the smallest and twice the largest eigenvalue of `M`.
    r, g_min : float
        `radius²` and 0.
    B_S : float
        The longest half-axis, `radius / sqrt(smallest eigenvalue)`.

    Examples
    --------
    >>> from decidewise.problems import Ellipsoid
    >>> Ellipsoid([[1.0, 0.0], [0.0, 4.0]], radius=5.0).solve([[3.0, -8.0], [0.0, 0.0]])
    array([[-3.,  2.],
           [ 0.,  0.]])
    """

    faces = "curved"
    g_min: float = 0.0

    def __init__(self, matrix: Any, radius: float = 1.0, *, sense: Sense = "min") -> None:
        super().__init__(sense=sense)
        self.matrix = as_matrix(matrix, name="matrix").copy()
        self.radius = _as_radius(radius)
        self.n_costs = len(self.matrix)
        eigenvalues, axes = _positive_eigenpairs(self.matrix)
        self._half_axes = axes / np.sqrt(eigenvalues)  # H with HHᵀ = M⁻¹: the set is {radius H u : ‖u‖ <= 1}
        self._ball = Ball(self.n_costs, self.radius)
        self.mu, self.L = 2 * float(eigenvalues[0]), 2 * float(eigenvalues[-1])
        self.r = self.radius**2
        self.B_S = self.radius / float(np.sqrt(eigenvalues[0]))

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the one point whose outward normal is `-c`, and the centre for zero costs."""
        directions = unit_rows(_multiply_rows(unit_rows(costs), self._half_axes))
        return _multiply_rows(-self.radius * directions, self._half_axes.T) + 0.0  # turns -0.0 into 0.0

    def derivative(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `H J Hᵀ v` with the derivative `J` of the ball at the costs `Hᵀc`, and zero for zero costs."""
        inside = _multiply_rows(costs, self._half_axes)
        along = self._ball.derivative(inside, inside, _multiply_rows(vectors, self._half_axes))
        return _multiply_rows(along, self._half_axes.T)


def _multiply_rows(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return `rows @ matrix`, one row at a time: in one product, the rounding would depend on the number of rows."""
    return np.matmul(rows[:, None, :], matrix)[:, 0]


def _positive_eigenpairs(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues, smallest first, and eigenvectors; raise unless the matrix is positive definite."""
    eigenvalues, axes = np.linalg.eigh(as_symmetric(matrix, name="matrix", form="wᵀMw").toarray())
    if eigenvalues[0] <= len(matrix) * np.finfo(float).eps * eigenvalues[-1]:
        raise ValueError(
            f"matrix must be positive definite; its smallest eigenvalue is {eigenvalues[0]:.3g} and its largest "
            f"{eigenvalues[-1]:.3g}, so the set would not be bounded. Add a positive number to its diagonal."
        )
    return eigenvalues, axes


def _as_radius(radius: float) -> float:
    """Return the radius; raise unless it is positive and its square is in the range of float64."""
    return as_number(radius, name="radius", above=0, at_most=1e150)
