"""A conic region without its equations, and its analytic centre, from which `central_path` solves rows of costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr, solve_triangular
from scipy.sparse import csc_array

from decidewise.checks import FloatArray
from decidewise.polyhedra.central_path import EXPONENTIAL, LINEAR, SECOND_ORDER, SEMIDEFINITE, follow, times
from decidewise.polyhedra.exponential_cone import hessian, shadow_of_slacks
from decidewise.polyhedra.semidefinite_cone import LAST_SHARED, matrices, triangles
from decidewise.scaling import norms

IntArray = npt.NDArray[np.int64]

_KINDS = {
    "NonnegativeConeT": LINEAR, "SecondOrderConeT": SECOND_ORDER, "ExponentialConeT": EXPONENTIAL,
    "PSDTriangleConeT": SEMIDEFINITE,
}  # fmt: skip
_EQUATIONS = "ZeroConeT"
#: Up to this much work a step is faster with dense matrices than Clarabel's with sparse ones.
_MOST_WORK = 50_000
_MOST_STEPS = 100
# Newton's decrement at the centre, and that from which on its steps are whole.
_DECREMENT, _WHOLE = 1e-9, 0.25
# Equations whose pivots are smaller than this fraction of the largest depend on others.
_RANK = 1e-11


@dataclass(frozen=True)
class CentredRegion:
    """The region `{origin + basis u : b - A u in K}`, which has an interior and is bounded.

    Parameters
    ----------
    A, b : ndarray of shapes (m, k) and (m,)
    kinds, starts : ndarray of int
        The cones, and where the rows of each start.
    rows, equations : ndarray of int
        Where the constraints stand among all, and where the equations do.
    origin, basis : ndarray of shapes (n,) and (n, k)
        All solutions of the equations.
    prices : pair of ndarrays of shapes (n, e) and (m, e)
        The duals of the equations are the costs times the first and the other duals times the second.
    centre, slack, shadow : ndarray of shapes (k,), (m,) and (m,)
        The analytic centre `u`, with `s = b - A u` and `-∇f(s)`.
    spread : ndarray of shape (k, k)
        Costs times this have the length by which their value may differ around the centre.
    """

    A: FloatArray
    b: FloatArray
    kinds: IntArray
    starts: IntArray
    rows: IntArray
    equations: IntArray
    origin: FloatArray
    basis: FloatArray
    prices: tuple[FloatArray, FloatArray]
    centre: FloatArray
    slack: FloatArray
    shadow: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, A: csc_array, b: FloatArray, cones: Sequence[Any], point: FloatArray) -> CentredRegion | None:
        """Return the region `{w : b - A w in K}`, given a point inside.

        There is none if it is large, flat or unbounded, or has cones of other kinds. What is almost flat may also be a
        `LinAlgError`.
        """
        names = [kind for kind, *_ in cones]
        m, n = A.shape
        if not {*names} <= {*_KINDS, _EQUATIONS} or {*names} <= {_EQUATIONS} or m * n**2 > _MOST_WORK:
            return None
        sizes = [n_rows_of(*kind) for kind in cones]
        is_equation = np.repeat([name == _EQUATIONS for name in names], sizes)
        rows, equations = np.flatnonzero(~is_equation), np.flatnonzero(is_equation)
        dense = A.toarray()
        E, e = dense[equations], b[equations]
        origin, basis, free = _solutions(E, e)
        if not len(free) or not np.allclose(E @ origin, e, rtol=1e-9, atol=1e-9):
            return None
        inner, sides = np.ascontiguousarray(dense[rows] @ basis), b[rows] - dense[rows] @ origin
        kinds = np.array([_KINDS[name] for name in names if name != _EQUATIONS])
        starts = np.cumsum([0, *(size for name, size in zip(names, sizes, strict=True) if name != _EQUATIONS)])
        found = _centre(inner, sides, kinds, starts, point[free])
        prices = -np.linalg.pinv(E)
        return None if found is None else cls(
            inner, sides, kinds, starts, rows, equations, origin, basis, (prices, dense[rows] @ prices), *found
        )  # fmt: skip

    @cached_property
    def degree(self) -> float:
        """The parameter of the barrier: `μ` is the gap divided by this."""
        sizes = np.diff(self.starts)
        by_kind = {LINEAR: sizes, SECOND_ORDER: 1, EXPONENTIAL: 3, SEMIDEFINITE: np.sqrt(2 * sizes).astype(int)}
        return float(sum(np.where(self.kinds == kind, degree, 0).sum() for kind, degree in by_kind.items()))

    def solve(
        self, costs: FloatArray, aim: float, accepted: float
    ) -> tuple[npt.NDArray[np.bool_], FloatArray, FloatArray, FloatArray]:
        """Return which rows (r, n) are solved, the points (r, n), and slacks and duals (r, all rows).

        A row is solved if gap and residual are below `aim`, or below `accepted` where it gets no further.
        """
        inside, values = times(costs, self.basis), times(costs, self.origin[:, None])[:, 0]
        points, slacks, duals = (np.empty((len(costs), k)) for k in (len(self.centre), len(self.b), len(self.b)))
        solved = np.zeros(len(costs), dtype=bool)
        follow(
            inside, values, norms(times(inside, self.spread)), self.A, self.kinds, self.starts, self.centre, self.slack,
            self.shadow, self.degree, aim, accepted, points, slacks, duals, solved, *self._work_space(),
        )  # fmt: skip
        all_slacks, all_duals = np.zeros((2, len(costs), len(self.rows) + len(self.equations)))
        all_slacks[:, self.rows], all_duals[:, self.rows] = slacks, duals
        all_duals[:, self.equations] = times(costs, self.prices[0]) + times(duals, self.prices[1])
        return solved, self.origin + times(points, np.ascontiguousarray(self.basis.T)), all_slacks, all_duals

    def _work_space(self) -> Iterator[FloatArray | None]:
        """Yield what second-order, exponential and semidefinite cones work in; `None` for cones that there are not."""
        m, sizes = len(self.b), np.diff(self.starts)
        semidefinite = sizes[self.kinds == SEMIDEFINITE]
        k = int(np.sqrt(2 * semidefinite.max(initial=0)))  # of k (k + 1) / 2 rows
        space = LAST_SHARED + 1 + len(semidefinite), k, k
        for kind, shape in (SECOND_ORDER, (4, m)), (EXPONENTIAL, (2, m)), (SEMIDEFINITE, space):
            yield np.empty(shape) if kind in self.kinds else None


def n_rows_of(kind: str, *size: Any) -> int:
    """Return how many rows a cone has."""
    if kind == "PSDTriangleConeT":
        return int(size[0] * (size[0] + 1) // 2)
    if kind == "GenPowerConeT":
        return len(size[0]) + int(size[1])
    return 3 if kind in ("ExponentialConeT", "PowerConeT") else int(size[0])


def _solutions(E: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return all solutions of `E w = e` as `origin + basis u`, and which variables are the `u`, free to choose."""
    n = E.shape[1]
    if not len(E):
        return np.zeros(n), np.eye(n), np.arange(n)
    Q, R, order = qr(E, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(R))
    rank = int((pivots > _RANK * pivots.max(initial=0.0)).sum())
    bound, free = order[:rank], order[rank:]
    origin, basis = np.zeros(n), np.zeros((n, n - rank))
    origin[bound] = solve_triangular(R[:rank, :rank], Q.T[:rank] @ e)
    basis[bound] = -solve_triangular(R[:rank, :rank], R[:rank, rank:])
    basis[free, np.arange(n - rank)] = 1.0
    return origin, basis, free


def _centre(
    A: FloatArray, b: FloatArray, kinds: IntArray, starts: IntArray, u: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None:
    """Return the centre, its slacks, their `-∇f`, and the spread of costs, by Newton's method; `None` without one."""
    for _ in range(_MOST_STEPS):
        s = b - A @ u
        barrier = _barrier(s, kinds, starts)
        if barrier is None:
            return None
        shadow, bent = barrier
        factor = np.linalg.cholesky(A.T @ bent @ A)
        slope = np.linalg.solve(factor, A.T @ shadow)
        step, decrement = -np.linalg.solve(factor.T, slope), float(np.linalg.norm(slope))
        if decrement <= _DECREMENT:
            return u, s, shadow, np.linalg.inv(factor).T
        u = u + step / (1 + decrement if decrement > _WHOLE else 1)
    return None


def _barrier(s: FloatArray, kinds: IntArray, starts: IntArray) -> tuple[FloatArray, FloatArray] | None:
    """Return `-∇f(s)` and `∇²f(s)`; `None` if the slacks are not inside the cones."""
    shadow, bent = np.empty(len(s)), np.zeros((len(s), len(s)))
    for kind, first, end in zip(kinds, starts[:-1], starts[1:], strict=True):
        part = s[first:end]
        if kind == LINEAR:
            if not part.min() > 0:
                return None
            shadow[first:end] = 1 / part
            bent[range(first, end), range(first, end)] = 1 / part**2
        elif kind == SECOND_ORDER:
            signs = np.where(np.arange(len(part)) == 0, 1.0, -1.0)
            square = float(signs @ part**2)
            if not (part[0] > 0 and square > 0):
                return None
            shadow[first:end] = along = signs * part / square
            bent[first:end, first:end] = 2 * np.outer(along, along) - np.diag(signs) / square
        elif kind == SEMIDEFINITE:
            S = matrices(part)
            if not np.linalg.eigvalsh(S)[0] > 0:
                return None
            inverse = np.asarray(np.linalg.inv(S), dtype=np.float64)
            shadow[first:end] = triangles(inverse)
            bent[first:end, first:end] = triangles(inverse @ matrices(np.eye(len(part))) @ inverse)
        else:
            if not (part[1] > 0 and part[2] > 0 and part[1] * np.log(part[2] / part[1]) > part[0]):
                return None
            shadow[first:end] = shadow_of_slacks(*part)
            upper = np.triu_indices(3)
            bent[first:end, first:end][upper] = bent[first:end, first:end].T[upper] = hessian(*part)
    return shadow, bent
