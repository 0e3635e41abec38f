"""How an optimal point of a conic program changes with its costs.

At an optimal point each cone is slack, binds smoothly, or binds at its apex. The constraints that bind smoothly are
`g(w) <= 0` with `g = ‖s̄‖ - s₀` for a second-order cone of slacks `s = (s₀, s̄)`, and `y exp(x/y) - z` for an exponential
one; the others are equations. With `C` the gradients of all that bind, `λ` their multipliers and `H = Σ λ ∇²g` the
curvature of the Lagrangian, `H dw + Cᵀdλ = -dq` and `C dw = 0`. The same equations are those of Newton's method for the
optimality conditions, which first brings the point of the solver to machine precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.checks import FloatArray
from decidewise.polyhedra.conic import ConicRegion, ConicSolutions

#: The cones with a boundary that is curved and smooth.
CURVED = ("SecondOrderConeT", "ExponentialConeT")
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


@dataclass(frozen=True)
class _Binding:
    """What binds at an optimal point: equations `E w = e`, and rows of slacks of cones that bind smoothly."""

    A: FloatArray
    b: FloatArray
    linear: list[int]
    smooth: list[tuple[str, slice]]
    multipliers: FloatArray

    @classmethod
    def of(cls, region: ConicRegion, A: FloatArray, s: FloatArray, z: FloatArray) -> _Binding:
        """Sort the constraints by the slacks and duals (m,) that the solver found."""
        linear: list[int] = []
        smooth: list[tuple[str, slice]] = []
        multipliers: list[float] = []
        first = 0
        for kind, *arguments in region.cones:
            size = arguments[0] if arguments else 3
            rows = slice(first, first + size)
            first += size
            binding = list(range(rows.start, rows.stop))
            if kind == "NonnegativeConeT":
                binding = [k for k in binding if z[k] > s[k]]
            elif kind == "SecondOrderConeT":
                lengths = np.linalg.norm(s[rows][1:]), np.linalg.norm(z[rows][1:])
                if s[rows][0] + lengths[0] > z[rows][0] - lengths[1]:  # not at the apex
                    binding = []
                    if z[rows][0] + lengths[1] > s[rows][0] - lengths[0]:
                        smooth.append((kind, rows))
                        multipliers.append(z[rows][0])
            elif kind == "ExponentialConeT":
                binding = []
                x, y, height = s[rows]
                if z[rows][2] > height - y * np.exp(x / y):
                    smooth.append((kind, rows))
                    multipliers.append(z[rows][2])
            linear += binding
        return cls(A, region.b, linear, smooth, np.concatenate([z[linear], multipliers]))

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
        for (kind, rows), price in zip(self.smooth, multipliers[len(self.linear) :], strict=True):
            value, slope, hessian = (_norm if kind == "SecondOrderConeT" else _exponential)(s[rows])
            broken.append(np.array([value]))
            gradients.append(-(slope @ self.A[rows])[None])
            curvature += price * self.A[rows].T @ hessian @ self.A[rows]
        C = np.concatenate(gradients)
        return np.block([[curvature, C.T], [C, np.zeros((len(C), len(C)))]]), C, np.concatenate(broken)


def _norm(s: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return `‖s̄‖ - s₀` of slacks `(s₀, s̄)`, its gradient and its Hessian."""
    length = float(np.linalg.norm(s[1:]))
    unit = s[1:] / length
    hessian = np.zeros((len(s), len(s)))
    hessian[1:, 1:] = (np.eye(len(unit)) - np.outer(unit, unit)) / length
    return length - s[0], np.concatenate([[-1.0], unit]), hessian


def _exponential(s: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return `y exp(x/y) - z` of slacks `(x, y, z)`, its gradient and its Hessian."""
    x, y, z = s
    ratio, height = x / y, np.exp(x / y)
    direction = np.array([1.0, -ratio, 0.0])
    return y * height - z, np.array([height, height * (1 - ratio), -1.0]), height / y * np.outer(direction, direction)
