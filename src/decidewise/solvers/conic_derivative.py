"""How an optimal point of a conic program changes with its costs.

At an optimal point each cone is slack, binds smoothly, or binds at its apex. The constraints that bind smoothly are
`g(w) <= 0` with `g = ‖s̄‖ - s₀` for a second-order cone of slacks `s = (s₀, s̄)`, and `y exp(x/y) - z` for an exponential
one; the others are equations. The slacks of a semidefinite cone are a matrix `S` that keeps its rank: with `V` a basis
of its null space and `U` of the rest, `VᵀSV - VᵀSU (UᵀSU)⁻¹ UᵀSV = 0`. With `C` the gradients of all that bind, `λ`
their multipliers and `H = Σ λ ∇²g` the curvature of the Lagrangian, `H dw + Cᵀdλ = -dq` and `C dw = 0`. The same
equations are those of Newton's method for the optimality conditions, which first brings the point of the solver to
machine precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.solvers.conic import ConicRegion, ConicSolutions, matrices, triangles

#: The cones with a boundary that is curved and smooth.
CURVED = ("SecondOrderConeT", "ExponentialConeT", "PSDTriangleConeT")
_MOST_STEPS = 10
# Newton's method may move a point by this, relative to its size; further off, it has left what the solver found.
_REACH = 1e-2
# Singular values of the system below this fraction of the largest are zero: what binds twice, or is flat.
_RANK = 1e-11


def conic_derivative(region: ConicRegion, solutions: ConicSolutions, vectors: FloatArray) -> FloatArray:
    """Return the products of the Jacobian of the points in the unit costs with vectors: (r, n) -> (r, n)."""
    A = region.A.toarray()
    moved = np.zeros_like(vectors)
    for row, (q, w, s, z) in enumerate(
        zip(solutions.units, solutions.points, solutions.slacks, solutions.duals, strict=True)
    ):
        if q.any():
            moved[row] = _Binding.of(region, A, s, z).derivative(q, w, vectors[row])
    return moved


class _Smooth(NamedTuple):
    """Rows of slacks that bind smoothly, their multipliers (k,), and the function of both that describes them.

    It returns the k values of `g`, their gradients in the slacks, and `Σ λ ∇²g`.
    """

    rows: slice
    multipliers: FloatArray
    of: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray, FloatArray]]


@dataclass(frozen=True)
class _Binding:
    """What binds at an optimal point: equations `E w = e`, and rows of slacks of cones that bind smoothly."""

    A: FloatArray
    b: FloatArray
    linear: list[int]
    smooth: list[_Smooth]
    multipliers: FloatArray

    @classmethod
    def of(cls, region: ConicRegion, A: FloatArray, s: FloatArray, z: FloatArray) -> _Binding:
        """Sort the constraints by the slacks and duals (m,) that the solver found."""
        linear: list[int] = []
        smooth: list[_Smooth] = []
        for kind, _, rows in region.blocks:
            if kind == "ZeroConeT":
                linear += range(rows.start, rows.stop)
            elif kind == "NonnegativeConeT":
                linear += [k for k in range(rows.start, rows.stop) if z[k] > s[k]]
            elif kind == "SecondOrderConeT":
                lengths = np.linalg.norm(s[rows][1:]), np.linalg.norm(z[rows][1:])
                if s[rows][0] + lengths[0] <= z[rows][0] - lengths[1]:  # at the apex
                    linear += range(rows.start, rows.stop)
                elif z[rows][0] + lengths[1] > s[rows][0] - lengths[0]:
                    smooth.append(_Smooth(rows, z[rows][:1], _norm))
            elif kind == "ExponentialConeT":
                x, y, height = s[rows]
                if z[rows][2] > height - y * np.exp(x / y):
                    smooth.append(_Smooth(rows, z[rows][2:], _exponential))
            else:
                smooth.append(_semidefinite(rows, s[rows], z[rows]))
        return cls(A, region.b, linear, smooth, np.concatenate([z[linear], *(part.multipliers for part in smooth)]))

    def derivative(self, q: FloatArray, w: FloatArray, vector: FloatArray) -> FloatArray:
        """Return the change of the point (n,) for a change of the costs `q` by `vector`."""
        n, polished, multipliers = len(w), w.copy(), self.multipliers.copy()
        for _ in range(_MOST_STEPS):
            system, gradients, broken = self._linearised(polished, multipliers)
            right = np.concatenate([q + gradients.T @ multipliers, broken])
            step = -np.linalg.lstsq(system, right, rcond=_RANK)[0]
            polished += step[:n]
            multipliers += step[n:]
            if not np.abs(polished - w).max() <= _REACH * (1 + np.abs(w).max()):
                polished, multipliers = w, self.multipliers
                break
            if np.abs(step).max(initial=0.0) <= 1e-14 * (1 + np.abs(w).max()):
                break
        system, gradients, _ = self._linearised(polished, multipliers)
        right = np.concatenate([-vector, np.zeros(len(gradients))])
        return np.asarray(np.linalg.lstsq(system, right, rcond=_RANK)[0][:n])

    def _linearised(self, w: FloatArray, multipliers: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the matrix of the system, the gradients `C` of what binds, and by how much it is broken at `w`."""
        n, s = len(w), self.b - self.A @ w
        gradients, broken = [self.A[self.linear]], [-s[self.linear]]
        curvature = np.zeros((n, n))
        first = len(self.linear)
        for rows, prices, of in self.smooth:
            values, slopes, hessian = of(s[rows], multipliers[first : first + len(prices)])
            first += len(prices)
            broken.append(values)
            gradients.append(-(slopes @ self.A[rows]))
            curvature += self.A[rows].T @ hessian @ self.A[rows]
        C = np.concatenate(gradients)
        return np.block([[curvature, C.T], [C, np.zeros((len(C), len(C)))]]), C, np.concatenate(broken)


def _norm(s: FloatArray, price: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `‖s̄‖ - s₀` of slacks `(s₀, s̄)`, its gradient and its Hessian times the price."""
    length = float(np.linalg.norm(s[1:]))
    unit = s[1:] / length
    hessian = np.zeros((len(s), len(s)))
    hessian[1:, 1:] = (np.eye(len(unit)) - np.outer(unit, unit)) / length
    return np.array([length - s[0]]), np.concatenate([[-1.0], unit])[None], price * hessian


def _exponential(s: FloatArray, price: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `y exp(x/y) - z` of slacks `(x, y, z)`, its gradient and its Hessian times the price."""
    x, y, z = s
    ratio, height = x / y, np.exp(x / y)
    direction = np.array([1.0, -ratio, 0.0])
    gradient = np.array([[height, height * (1 - ratio), -1.0]])
    return np.array([y * height - z]), gradient, price * height / y * np.outer(direction, direction)


def _semidefinite(rows: slice, s: FloatArray, z: FloatArray) -> _Smooth:
    """Return the constraint that keeps the rank of the matrix of slacks; none if it has full rank."""
    eigenvalues, vectors = np.linalg.eigh(matrices(s) - matrices(z))  # of the slacks above zero, of the duals below
    null, rest = vectors[:, eigenvalues < 0], vectors[:, eigenvalues >= 0]
    return _Smooth(rows, triangles(null.T @ matrices(z) @ null), partial(_rank, null, rest))


def _rank(V: FloatArray, U: FloatArray, s: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return minus the Schur complement of the slacks `S` in the bases `V` and `U`, with both its derivatives.

    With `W = V - U (UᵀSU)⁻¹ UᵀSV` its differential is `WᵀdS W`, and its second `-2 WᵀdS U (UᵀSU)⁻¹ UᵀdS W`.
    """
    S = matrices(s)
    inner = U.T @ S @ U
    W = V - U @ np.linalg.solve(inner, U.T @ S @ V)
    units = matrices(np.eye(len(s)))
    across = W.T @ units @ U
    bent = matrices(prices) @ across @ np.linalg.inv(inner)
    return (
        -triangles(V.T @ S @ W),
        -triangles(W.T @ units @ W).T,
        2 * np.einsum("aij,bij->ab", across, bent),
    )
