"""ProjectNet, the regret of the decision that a few unrolled steps of projected gradient descent reach.

Cristian, Harsha, Perakis, Quanz & Spantidakis, "End-to-End Learning for Optimization via Constraint-Enforcing
Approximators", AAAI 2023, and its continuation of 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IndexArray
from decidewise.kit.progress import tracked
from decidewise.losses.base import Loss, count, not_negative, positive
from decidewise.losses.lodl import spread_of
from decidewise.losses.parts.adam import Adam
from decidewise.losses.parts.split_region import SplitRegion
from decidewise.losses.parts.target import SHARED, RelaxedTarget, ValueAndGrad, row_dot
from decidewise.problems.contract import Problem
from decidewise.solvers import Polyhedron

# Of the steps of Adam that train the matrix.
_LEARNING_RATE, _BATCH = 1e-2, 64


@dataclass(frozen=True)
class LayerTarget(RelaxedTarget):
    """Costs, optimal decisions and values of the relaxation, the region in split form, and the matrix `L` (d, d)."""

    region: SplitRegion = field(metadata=SHARED)
    matrix: FloatArray = field(metadata=SHARED)


@dataclass(frozen=True)
class ProjectNet(Loss):
    """The regret `c·x(p) - c·w` of `x(p)`, the end of `n_rounds` steps `x ← Π(x - ρ p - ξ L x)` from `x = 0`.

    `Π` projects on the linear relaxation, by Dykstra's method between the equations and the bounds, and `w` is the
    optimum of the relaxation. The symmetric matrix `L` is trained before the model, so that for random costs `u`, drawn
    around the true ones, `u·x(u)` is low.

    Parameters
    ----------
    n_rounds : int
        Steps.
    step : float
        The length `ρ` of a step, in units of decisions over costs.
    xi : float
        The weight `ξ` of the matrix.
    tol : float
        The projection of a row ends when its points on the equations and within the bounds are at most this apart.
    max_iter : int
        The largest number of rounds of Dykstra's method in a projection; a row that needs more keeps its last point.
    n_steps : int
        Steps of Adam that train the matrix; 0 leaves it at zero.

    Notes
    -----
    The gradient is that of the unrolled steps, exact wherever the number of rounds does not change. It needs no solver,
    only products of matrices. As `n_rounds` grows with `L = 0`, `x(p)` becomes the optimum of the relaxation. In the
    public code a row depends on its batch, and `L` is not symmetric. `Dys` is such a layer with nothing to train.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = ProjectNet()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))[0].round(1)  # it chooses the second
    array([1.])
    """

    n_rounds: int = count(3)
    step: float = positive(3.0)
    xi: float = not_negative(0.5)
    tol: float = positive(1e-2)
    max_iter: int = count(100)
    n_steps: int = count(20, minimum=0)

    target_type = LayerTarget
    gradient = "exact"
    solves = False
    requires = frozenset({"polyhedron"})

    def label(self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator) -> LayerTarget:
        """Solve the linear relaxation of every row, decompose the equations of the region, and train the matrix."""
        region = SplitRegion.of(cast("Polyhedron", problem.polyhedron))  # `check` refuses a problem without one
        d = costs.shape[1]
        matrix = np.zeros((d, d))
        adam = Adam(matrix, _LEARNING_RATE)
        for _ in tracked(range(self.n_steps), "Training the matrix of ProjectNet"):
            rows = rng.integers(len(costs), size=min(_BATCH, len(costs)))
            drawn = costs[rows] + spread_of(costs) * rng.standard_normal((len(rows), d))
            _, _, slope = self._unrolled(drawn, drawn, region, matrix)
            adam.step((slope + slope.T) / 2, len(rows))
        return LayerTarget.of(problem, costs, region, matrix)

    def evaluate(self, prediction: FloatArray, target: LayerTarget, rng: np.random.Generator) -> ValueAndGrad:
        points, gradient, _ = self._unrolled(prediction, target.costs, target.region, target.matrix)
        return row_dot(target.costs, points) - target.values, gradient

    def _unrolled(
        self, prediction: FloatArray, costs: FloatArray, region: SplitRegion, matrix: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return `x(p)` (n, d), the gradients of `c·x(p)` in `p` (n, d), and that of their sum in the matrix (d, d)."""
        n, d = prediction.shape
        x = np.zeros((n, len(region.origin)))
        starts, projections = [], []
        for _ in range(self.n_rounds):
            starts.append(x[:, :d])
            moved = x.copy()
            moved[:, :d] -= self.step * prediction + self.xi * x[:, :d] @ matrix
            projections.append(_Dykstra.of(moved, region, tol=self.tol, max_iter=self.max_iter))
            x = projections[-1].points
        slope, in_matrix, in_prediction = np.zeros_like(x), np.zeros_like(matrix), np.zeros_like(prediction)
        slope[:, :d] = costs
        for start, projection in zip(reversed(starts), reversed(projections), strict=True):
            slope = projection.backward(slope, region)
            in_prediction -= self.step * slope[:, :d]
            in_matrix -= self.xi * slope[:, :d].T @ start
            slope[:, :d] -= self.xi * slope[:, :d] @ matrix
        return x[:, :d], in_prediction, in_matrix


@dataclass(frozen=True)
class _Dykstra:
    """Projections on a region by Dykstra's method, each row by itself, with what the derivative needs.

    Attributes
    ----------
    points : ndarray of shape (n, D)
    rounds : list of (rows, inside)
        Of each round, the rows that still moved, and where they lay inside their bounds.
    """

    points: FloatArray
    rounds: list[tuple[IndexArray, BoolArray]]

    @classmethod
    def of(cls, points: FloatArray, region: SplitRegion, *, tol: float, max_iter: int) -> _Dykstra:
        """Project points (n, D) between the equations and the bounds; only the bounds need a correction."""
        points, correction = points.copy(), np.zeros_like(points)
        rows = np.arange(len(points))
        rounds: list[tuple[IndexArray, BoolArray]] = []
        for _ in range(max_iter):
            level = region.origin + region.along(points[rows])
            sought = level + correction[rows]
            clipped = np.clip(sought, region.lower, region.upper)
            rounds.append((rows, (region.lower < sought) & (sought < region.upper)))
            correction[rows] = sought - clipped
            points[rows] = clipped
            apart = clipped - level  # a point may rest for many rounds while its correction still grows
            rows = rows[row_dot(apart, apart) > tol**2]
            if len(rows) == 0:
                break
        return cls(points, rounds)

    def backward(self, slope: FloatArray, region: SplitRegion) -> FloatArray:
        """Return the gradient in the points that were projected, given that in the projections (n, D)."""
        slope, of_correction = slope.copy(), np.zeros_like(slope)
        for rows, inside in reversed(self.rounds):
            of_sought = np.where(inside, slope[rows], of_correction[rows])
            of_correction[rows] = of_sought
            slope[rows] = region.along(of_sought)
        return slope
