"""Constraints of a conic program, as a user writes them, and the rows `b - A w in K` that they become."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse, vstack

from decidewise.kit.checks import FloatArray, as_array, as_number, as_vector, listed, nearest_names, shown
from decidewise.problems.mapped_problem.arguments import ROUNDING, as_sparse, as_symmetric
from decidewise.solvers.conic import Kind


class Cone(ABC):
    """A constraint of a conic program."""

    @abstractmethod
    def rows(self) -> ConeRows:
        """Return the constraint as rows that lie in cones."""


@dataclass(eq=False)
class ConeRows(Cone):
    """The constraint `b - A w in K`, with `A` of shape (m, n) and `b` of shape (m,)."""

    A: csr_array
    b: FloatArray
    cones: tuple[Kind, ...]

    def rows(self) -> ConeRows:
        """Return the rows themselves."""
        return self


@dataclass(eq=False)
class SecondOrder(Cone):
    """The constraint `‖A w + b‖ <= c·w + d`.

    Parameters
    ----------
    A : array-like or sparse, of shape (k, n)
    b : array-like of shape (k,), optional
        Zero by default, as `c` and `d` are.
    c : array-like of shape (n,), optional
    d : float

    Examples
    --------
    The ball of radius 2 around the point (1, 0):

    >>> ball = SecondOrder([[1.0, 0.0], [0.0, 1.0]], b=[-1.0, 0.0], d=2.0)
    """

    A: Any
    b: Any = None
    c: Any = None
    d: float = 0.0

    def __post_init__(self) -> None:
        A = as_sparse(self.A, name="A of SecondOrder")
        self.A, self.b = A, _as_side(self.b, A.shape[0], "b of SecondOrder")
        self.c = _as_side(self.c, A.shape[1], "c of SecondOrder", "columns of A")
        self.d = as_number(self.d, name="d of SecondOrder")

    def rows(self) -> ConeRows:
        """Return `(c·w + d, A w + b)` in a second-order cone."""
        A = vstack([csr_array([self.c]), self.A], format="csr")
        return ConeRows(-A, np.concatenate([[self.d], self.b]), (("SecondOrderConeT", A.shape[0]),))


@dataclass(eq=False)
class Semidefinite(Cone):
    """The constraint that `A w + b`, written row by row as a symmetric matrix of size k, is positive semidefinite.

    Parameters
    ----------
    A : array-like of shape (k, k, n) or (k², n), or sparse of shape (k², n)
        `A[:, :, j]` is the symmetric matrix that variable `j` multiplies.
    b : array-like of shape (k, k) or (k²,), optional
        The symmetric matrix that is added; zero by default.

    Examples
    --------
    The matrix with the variables 0, 1 and 2 as its entries, of a program with 3 variables:

    >>> cone = Semidefinite.of_variables([[0, 1], [1, 2]], n=3)
    >>> cone.A.toarray()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    A: Any
    b: Any = None

    def __post_init__(self) -> None:
        A = self.A if issparse(self.A) else as_array(self.A, name="A of Semidefinite")
        if A.ndim == 3 and A.shape[0] == A.shape[1]:
            A = A.reshape(A.shape[0] ** 2, A.shape[2])
        size = round(np.sqrt(A.shape[0])) if A.ndim == 2 else 0
        if size == 0 or size**2 != A.shape[0]:
            raise ValueError(
                "A of Semidefinite must have the shape (k, k, n) or (k², n), one column for each variable; got "
                f"A.shape={np.shape(self.A)}."
            )
        A = as_sparse(A, name="A of Semidefinite")
        b = None if self.b is None else as_array(self.b, name="b of Semidefinite").ravel()
        self.A, self.b = A, _as_side(b, size**2, "b of Semidefinite")
        _check_symmetric(A, size, "A of Semidefinite")
        _check_symmetric(csr_array(self.b[:, None]), size, "b of Semidefinite")

    @classmethod
    def of_variables(cls, places: Any, n: int) -> Semidefinite:
        """Return the constraint on a matrix of variables.

        Parameters
        ----------
        places : array-like of shape (k, k)
            The index of the variable at each entry, symmetric.
        n : int
            The number of variables of the program.
        """
        places = np.asarray(places)
        if places.ndim != 2 or places.dtype.kind not in "iu" or not np.array_equal(places, places.T):
            raise ValueError(f"places must be a symmetric matrix of indices of variables; got {places!r}.")
        if places.min() < 0 or places.max() >= n:
            raise ValueError(f"places must be indices from 0 to {n - 1}; got {places.min()} to {places.max()}.")
        return cls(csr_array((np.ones(places.size), (np.arange(places.size), places.ravel())), shape=(places.size, n)))

    def rows(self) -> ConeRows:
        """Return the upper triangle, column by column, with what counts twice times the square root of 2."""
        size = round(np.sqrt(len(self.b)))
        column, row = np.tril_indices(size)  # the upper triangle by columns is the lower one by rows
        factors = np.where(row == column, 1.0, np.sqrt(2.0))
        entries = row * size + column
        A = csr_array(diags_array(factors) @ self.A[entries])
        return ConeRows(-A, factors * self.b[entries], (("PSDTriangleConeT", size),))


@dataclass(eq=False)
class Exponential(Cone):
    """The constraint `y exp(x / y) <= z` with `y > 0`, where `(x, y, z) = A w + b`, and several such at once.

    Parameters
    ----------
    A : array-like or sparse, of shape (3 k, n)
        Rows of `x`, `y` and `z` of the first constraint, then of the second, and so on.
    b : array-like of shape (3 k,), optional
        Zero by default.

    Examples
    --------
    `exp(w0) <= w1`:

    >>> cone = Exponential([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], b=[0.0, 1.0, 0.0])
    """

    A: Any
    b: Any = None

    def __post_init__(self) -> None:
        A = as_sparse(self.A, name="A of Exponential")
        if A.shape[0] % 3 or not A.shape[0]:
            raise ValueError(
                f"A of Exponential must have three rows, x, y and z, for each constraint; got A.shape={A.shape}."
            )
        self.A, self.b = A, _as_side(self.b, A.shape[0], "b of Exponential")

    def rows(self) -> ConeRows:
        """Return `A w + b` in one exponential cone for every three rows."""
        return ConeRows(-self.A, self.b, (("ExponentialConeT",),) * (len(self.b) // 3))


@dataclass(eq=False)
class Quadratic(Cone):
    """The constraint `wᵀQw + q·w <= r`, which becomes a second-order cone.

    Parameters
    ----------
    Q : array-like or sparse, of shape (n, n)
        Symmetric and positive semidefinite.
    q : array-like of shape (n,), optional
        Zero by default.
    r : float

    Examples
    --------
    A variance of at most 0.5:

    >>> risk = Quadratic([[1.0, 0.2], [0.2, 2.0]], r=0.5)
    """

    Q: Any
    q: Any = None
    r: float = 0.0
    _root: csr_array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.Q = as_symmetric(self.Q, name="Q of Quadratic", form="wᵀQw")
        n = self.Q.shape[0]
        self.q = np.zeros(n) if self.q is None else as_vector(self.q, name="q of Quadratic", length=n)
        self.r, self._root = as_number(self.r, name="r of Quadratic"), _root(self.Q)

    def rows(self) -> ConeRows:
        """Return `‖F w + v‖² <= t`, with `FᵀF = Q` and `t = s - p·w`, where `Q p = 0`, as a second-order cone.

        If `p` is zero that is `‖F w + v‖ <= sqrt(s)`, and otherwise `‖(2 (F w + v), u - t / u)‖ <= u + t / u` for any
        `u > 0`.
        """
        F, lengths = self._root, self._root.multiply(self._root).sum(axis=1)
        v = F @ self.q / (2 * lengths)
        p, square = self.q - 2 * F.T @ v, float(v @ v)
        p[np.abs(p) <= ROUNDING * np.abs(self.q).max(initial=0.0)] = 0.0
        s = self.r + square
        if not p.any():
            if s < -ROUNDING * square:
                raise ValueError(
                    f"the region is empty: the least value of wᵀQw + q·w is {0.0 - square:g}, above r={self.r:g}."
                )
            if s <= np.finfo(float).eps * square:
                return ConeRows(F, -v, (("ZeroConeT", len(v)),))
            return SecondOrder(F, v, d=np.sqrt(s)).rows()
        u = np.sqrt(abs(s)) or 1.0
        return SecondOrder(
            vstack([2 * F, csr_array([p / u])], format="csr"), np.append(2 * v, u - s / u), -p / u, u + s / u
        ).rows()


#: The constraints by the names that a table has for them.
KINDS: dict[str, type[Any]] = {
    "second_order": SecondOrder,
    "semidefinite": Semidefinite,
    "exponential": Exponential,
    "quadratic": Quadratic,
}


def as_cone(constraint: Any) -> Cone:
    """Return a constraint as it is, or make it from a table, as files have them.

    >>> as_cone({"kind": "quadratic", "Q": [[1.0, 0.2], [0.2, 2.0]], "r": 0.5}).r
    0.5
    """
    if isinstance(constraint, Cone):
        return constraint
    if not isinstance(constraint, Mapping):
        raise TypeError(
            "cones must be SecondOrder, Semidefinite, Exponential or Quadratic constraints, or tables such as "
            f'{{"kind": "quadratic", "Q": ..., "r": 1.0}}; got {shown(constraint)}'
        )
    kind, arguments = constraint.get("kind"), {key: value for key, value in constraint.items() if key != "kind"}
    if kind not in KINDS:
        raise ValueError(f"the kind of a cone must be one of {listed([*KINDS])}; got {kind!r}.")
    names = [field.name for field in fields(KINDS[kind]) if field.init]
    for name in arguments:
        if name not in names:
            raise ValueError(f"a cone of kind {kind!r} has no {name!r}{nearest_names(str(name), names)}")
    if names[0] not in arguments:
        raise ValueError(f"a cone of kind {kind!r} needs {names[0]!r}, see `{KINDS[kind].__name__}`.")
    return KINDS[kind](**arguments)


def _as_side(values: Any, length: int, name: str, per: str = "rows of A") -> FloatArray:
    values = np.zeros(length) if values is None else as_vector(values, name=name)
    if len(values) != length:
        raise ValueError(f"{name} must have one entry for each of the {length} {per}; got {len(values)}.")
    return values


def _check_symmetric(A: csr_array, size: int, name: str) -> None:
    mirrored = A[np.arange(size**2).reshape(size, size).T.ravel()]
    difference = abs(A - mirrored)
    if difference.nnz and difference.max() > ROUNDING * abs(A).max():
        entry, column = (int(k) for k in np.unravel_index(difference.toarray().argmax(), A.shape))
        i, j = divmod(entry, size)
        raise ValueError(
            f"{name} must be symmetric; for variable {column} entry ({i}, {j}) is {A[entry, column]:g} and entry "
            f"({j}, {i}) is {mirrored[entry, column]:g}."
        )


def _root(Q: csr_array) -> csr_array:
    """Return `F` with `FᵀF = Q`; raise unless `Q` is positive semidefinite."""
    used = np.flatnonzero(np.diff(Q.indptr))  # a row of zeros is a column of zeros
    if not len(used):
        return csr_array((0, Q.shape[1]))
    eigenvalues, axes = np.linalg.eigh(Q[used][:, used].toarray())
    if eigenvalues[0] < -ROUNDING * abs(eigenvalues).max():
        raise ValueError(
            "Q of Quadratic must be positive semidefinite, for the region to be convex; its smallest eigenvalue is "
            f"{eigenvalues[0]:.3g}. If the constraint reads the other way round, change the signs of Q, q and r."
        )
    kept = eigenvalues > len(used) * np.finfo(float).eps * eigenvalues[-1]
    root = np.zeros((int(kept.sum()), Q.shape[1]))
    root[:, used] = np.sqrt(eigenvalues[kept])[:, None] * axes[:, kept].T
    return csr_array(root)
