"""IntOpt, the regret of the point that a logarithmic barrier keeps inside the region.

Mandi & Guns, "Interior Point Solving for LP-based Prediction+Optimisation", NeurIPS 2020.

With `s_i(x) > 0` the slacks of all inequalities and bounds, `x(p) = argmin p·x - μ Σ_i ln s_i(x)` subject to the
equalities. Write `x = x₀ + N u`, where the columns of `N` are an orthonormal basis of the directions that keep the
equalities, and `G` for the normals of the slacks in these coordinates. Newton's method on `u` needs the Hessian
`H = μ Gᵀ diag(1/s²) G` alone, and the Jacobian of `x(p)` is `-N H⁻¹ Nᵀ`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack

from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import SolverError
from decidewise.losses.base import Loss, positive
from decidewise.losses.parts.target import SHARED, RelaxedTarget, ValueAndGrad, row_dot
from decidewise.problems.contract import Problem
from decidewise.solvers import Polyhedron

_MOST_STEPS = 200
# Newton's decrement, in units of μ, below which a step is the last one: its error is of the order of its square.
_DECREMENT = 1e-10
_INTERIOR = 1e-9
# The most entries of products of normals that are kept, 32 MB.
_MOST_SQUARES = 2**22


@dataclass(frozen=True)
class BarrierTarget(RelaxedTarget):
    """Costs with the optimal decisions and values of the linear relaxation, and the barrier of the region."""

    barrier: Barrier = field(metadata=SHARED)


@dataclass(frozen=True)
class IntOpt(Loss):
    """The regret `c·x(p) - c·w` of `x(p) = argmin p·x - μ Σ ln(slacks)`, `x` in the linear relaxation; `w` its optimum.

    Parameters
    ----------
    mu : float
        The weight `μ` of the barrier, in the units of the costs. Tuned values in the literature are 1e-6 to 10.

    Notes
    -----
    The gradient is `J c` with the Jacobian `J = -N H⁻¹ Nᵀ` of `x(p)` (see `Barrier`). `x(p)` never reaches a
    vertex, so the gradient never vanishes, and as `μ` goes to 0 the value becomes the regret on the relaxation.
    Newton's method finds `x(p)` to machine precision. The original code differentiates the iterate of a homogeneous
    embedding, whose equations have no exact solution for `μ > 0`. The region must have a point with all inequalities
    slack.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = IntOpt(mu=0.5)
    >>> target = loss.prepare(TopK(2, 1, sense="min"), [[1.0, 2.0]])
    >>> values, gradient = loss.value_and_grad([[2.0, 1.0]], target, np.random.default_rng(0))
    >>> values.round(4), gradient.round(4)
    (array([0.618]), array([[ 0.1056, -0.1056]]))
    """

    mu: float = positive(0.1)

    target_type = BarrierTarget
    gradient = "exact"
    solves = False
    requires = frozenset({"polyhedron"})

    def label(
        self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator
    ) -> BarrierTarget:
        barrier = Barrier(cast("Polyhedron", problem.polyhedron))  # `check` refuses a problem without one
        barrier.interior  # noqa: B018  (raises now, not in training, if there is none)
        return BarrierTarget.of(problem, costs, barrier)

    def evaluate(self, prediction: FloatArray, target: BarrierTarget, rng: np.random.Generator) -> ValueAndGrad:
        points, along = target.barrier.minimize(prediction, mu=self.mu, vectors=target.costs)
        return row_dot(target.costs, points) - target.values, along


@dataclass(frozen=True)
class Barrier:
    """The barrier of one polyhedron, which must have a point with all slacks positive.

    Examples
    --------
    >>> square = Polyhedron.within(-np.ones(2), np.ones(2))
    >>> points, along = Barrier(square).minimize(np.array([[0.0, 1.0]]), mu=0.5, vectors=np.array([[1.0, 0.0]]))
    >>> points.round(6), along.round(6)
    (array([[ 0.      , -0.618034]]), array([[-1.,  0.]]))
    """

    polyhedron: Polyhedron

    @cached_property
    def equalities(self) -> tuple[csr_array, FloatArray]:
        """All equations as `rows·x = sides`, those of variables with one value among them: sparse (k, d), and (k,)."""
        region = self.polyhedron
        fixed = np.flatnonzero(region.lower == region.upper)
        rows = vstack([region.A_eq, csr_array(eye_array(len(region.lower)))[fixed]], format="csr")
        return csr_array(rows), np.concatenate([region.b_eq, region.lower[fixed]])

    @cached_property
    def directions(self) -> FloatArray:
        """An orthonormal basis (d, r) of the directions that keep all equalities."""
        A, _ = self.equalities
        return null_space(A.toarray()) if A.shape[0] else np.eye(A.shape[1])

    @cached_property
    def slacks(self) -> tuple[csr_array, FloatArray]:
        """All inequalities and finite bounds as `rows·x <= limits`: sparse (m, d), and (m,)."""
        region, d = self.polyhedron, len(self.polyhedron.lower)
        free = region.lower < region.upper
        below, above = free & np.isfinite(region.lower), free & np.isfinite(region.upper)
        unit = csr_array(eye_array(d))
        rows = vstack([region.A_ub, -unit[below], unit[above]], format="csr")
        return csr_array(rows), np.concatenate([region.b_ub, -region.lower[below], region.upper[above]])

    @cached_property
    def interior(self) -> FloatArray:
        """The point (d,) whose smallest slack is largest; raise a `ValueError` if that is not positive."""
        rows, limits = self.slacks
        (A_eq, b_eq), (m, d) = self.equalities, rows.shape
        found = linprog(
            np.append(np.zeros(d), -1.0),
            A_ub=hstack([rows, csr_array(np.ones((m, 1)))], format="csr"),
            b_ub=limits,
            A_eq=hstack([A_eq, csr_array((len(b_eq), 1))], format="csr") if len(b_eq) else None,
            b_eq=b_eq if len(b_eq) else None,
            bounds=[(None, None)] * d + [(None, 1.0)],
            method="highs",
        )
        if found.status != 0 or found.x[-1] <= _INTERIOR:
            raise ValueError(
                "the region has no point at which all inequalities and bounds are slack, which a logarithmic barrier "
                "needs. Write what always holds as an equality, remove what is fixed, or choose a loss without a "
                "barrier, such as SpoPlus or Qptl."
            )
        return np.ascontiguousarray(found.x[:-1])

    def minimize(self, costs: FloatArray, *, mu: float, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `x(p)` (n, d) for each row of costs, and the product of its Jacobian with each vector (n, d)."""
        rows, limits = self.slacks
        normals = rows @ self.directions  # (m, r)
        hessians = _weighted_squares(normals)
        slacks = np.tile(limits - rows @ self.interior, (len(costs), 1))
        moved = np.zeros((len(costs), normals.shape[1]))
        reduced = costs @ self.directions / mu
        active = np.arange(len(costs))
        for _ in range(_MOST_STEPS):
            inverse = 1 / slacks[active]
            slope = reduced[active] + inverse @ normals
            hessian = hessians(inverse**2)
            step = -np.linalg.solve(hessian, slope[:, :, None])[:, :, 0]
            decrement = -np.einsum("bi,bi->b", slope, step)
            # Of the damped step of a self-concordant function and the longest that stays inside, the longer one.
            change = step @ normals.T
            reach = (change * inverse).max(axis=1)
            length = np.maximum(1 / (1 + np.sqrt(decrement)), np.where(reach < 0.5, 1.0, 0.0))
            moved[active] += length[:, None] * step
            slacks[active] -= length[:, None] * change
            active = active[decrement > _DECREMENT]
            if len(active) == 0:
                break
        else:
            raise SolverError(
                "the barrier did not converge: the costs are too large for mu. Raise mu, or pass costs nearer 1.",
                row=int(active[0]),
            )
        hessian = mu * hessians(slacks**-2.0)
        along = -np.linalg.solve(hessian, (vectors @ self.directions)[:, :, None])[:, :, 0]
        return self.interior + moved @ self.directions.T, along @ self.directions.T


def _weighted_squares(normals: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the function `NᵀWN` of the diagonals of `W`, (b, m) -> (b, r, r), for normals `N` (m, r)."""
    m, r = normals.shape
    if m * r**2 > _MOST_SQUARES:
        return lambda weights: (weights[:, None] * normals.T) @ normals
    squares = (normals[:, :, None] * normals[:, None]).reshape(m, r * r)  # one product for all rows is twice as fast
    return lambda weights: (weights @ squares).reshape(-1, r, r)
