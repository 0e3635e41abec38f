"""The cone of semidefinite matrices in the primal-dual method of `central_path`.

A matrix is kept as its upper triangle by columns, in which what counts twice is times √2. The barrier is
`f = -log det S`. The scaling is `M X = ½ (Z X S⁻¹ + S⁻¹ X Z)`, for which `M S = Z` (Helmberg, Rendl, Vanderbei &
Wolkowicz, "An interior-point method for semidefinite programming", 1996): it needs no eigenvalues, and small matrices
take little else than their products. A cone has the rows `first` to `end - 1`; `matrices` are work space, three of them
for all cones and then the `inverse` of the slacks of each.
"""

from __future__ import annotations

import numpy as np

from decidewise.checks import FloatArray
from decidewise.runtime.kernels import kernel

inner = kernel(error_model="numpy", inner=True)

#: The last of the matrices that all cones share; those after it are the inverses of each.
LAST_SHARED = 2
_HALVINGS = 7  # of the interval in which the longest step is sought, to a hundredth


@inner
def size_of(first, end):  # type: ignore[no-untyped-def]
    """Return the size `k` of matrices with triangles of this length."""
    return int(np.sqrt(2.0 * (end - first)))


@inner
def set_scaled(s, z, A, first, end, MA, matrices, inverse):  # type: ignore[no-untyped-def]
    """Set these rows of `MA` to `M A`, and `inverse` to `S⁻¹`; return whether the slacks are positive definite."""
    k, n, Z = size_of(first, end), A.shape[1], matrices[0]
    if not _set_inverse(s, first, k, matrices, inverse):
        return False
    _unpack(z, first, k, Z)
    row = first
    for j in range(k):
        for i in range(j + 1):
            for h in range(n):
                MA[row, h] = 0.0
            column = first
            for q in range(k):
                for p in range(q + 1):
                    factor = _scaling(Z, inverse, i, j, p, q)
                    for h in range(n):
                        MA[row, h] += factor * A[column, h]
                    column += 1
            row += 1
    return True


@inner
def correct(z, ds, dz, first, end, target, weight, g, matrices, inverse):  # type: ignore[no-untyped-def]
    """Set `g` to `-z + target S⁻¹ - weight ½ (dZ dS S⁻¹ + S⁻¹ dS dZ)`, with the `inverse` of the scaling."""
    k, dZ = size_of(first, end), matrices[0]
    _unpack(dz, first, k, dZ)
    row = first
    for j in range(k):
        for i in range(j + 1):
            product, column = 0.0, first
            for q in range(k):
                for p in range(q + 1):
                    product += _scaling(dZ, inverse, i, j, p, q) * ds[column]
                    column += 1
            g[row] = target * _twice(i, j) * inverse[i, j] - weight * product - z[row]
            row += 1


@inner
def longest_step(s, ds, first, end, length, matrices):  # type: ignore[no-untyped-def]
    """Return a step, at most `length`, that keeps the matrix positive definite, and is nearly the longest."""
    k = size_of(first, end)
    if _is_definite(s, ds, length, first, k, matrices[1]):
        return length
    short = 0.0
    for _ in range(_HALVINGS):
        middle = (short + length) / 2
        if _is_definite(s, ds, middle, first, k, matrices[1]):
            short = middle
        else:
            length = middle
    return short


@inner
def _is_definite(s, ds, length, first, k, L):  # type: ignore[no-untyped-def]
    """Factorise the matrix after a step; return whether there is a Cholesky factor `L`."""
    root, entry = np.sqrt(0.5), first
    for j in range(k):
        for i in range(j + 1):
            total = s[entry] + length * ds[entry]
            entry += 1
            if i < j:
                total *= root
            for h in range(i):
                total -= L[j, h] * L[i, h]
            if i < j:
                L[j, i] = total / L[i, i]
            elif total > 0:
                L[j, j] = np.sqrt(total)
            else:
                return False
    return True


@inner
def _set_inverse(s, first, k, matrices, inverse):  # type: ignore[no-untyped-def]
    """Set `inverse` to `S⁻¹`; return whether `S` is positive definite."""
    L, half = matrices[1], matrices[2]  # half of the inverse: L⁻¹
    if not _is_definite(s, s, 0.0, first, k, L):
        return False
    for j in range(k):
        for i in range(j, k):
            total = 1.0 if i == j else 0.0
            for h in range(j, i):
                total -= L[i, h] * half[h, j]
            half[i, j] = total / L[i, i]
    for i in range(k):
        for j in range(i + 1):
            total = 0.0
            for h in range(i, k):
                total += half[h, i] * half[h, j]
            inverse[i, j] = inverse[j, i] = total
    return True


@inner
def _scaling(Z, inverse, i, j, p, q):  # type: ignore[no-untyped-def]
    """Return the entry of `X ↦ ½ (Z X S⁻¹ + S⁻¹ X Z)` from `(p, q)` to `(i, j)` of the triangles."""
    total = Z[i, p] * inverse[j, q] + inverse[i, p] * Z[j, q] + Z[i, q] * inverse[j, p] + inverse[i, q] * Z[j, p]
    return 0.25 * _twice(i, j) * _twice(p, q) * total


@inner
def _twice(i, j):  # type: ignore[no-untyped-def]
    """Return the factor of an entry in the triangle."""
    return 1.0 if i == j else np.sqrt(2.0)


@inner
def _unpack(triangle, first, k, matrix):  # type: ignore[no-untyped-def]
    root, entry = np.sqrt(0.5), first
    for j in range(k):
        for i in range(j):
            matrix[i, j] = matrix[j, i] = root * triangle[entry]
            entry += 1
        matrix[j, j] = triangle[entry]
        entry += 1


def matrices(triangles: FloatArray) -> FloatArray:
    """Return symmetric matrices (..., k, k) of triangles (..., k (k + 1) / 2)."""
    size = int(np.sqrt(2 * triangles.shape[-1]))
    column, row = np.tril_indices(size)
    entries = triangles / np.where(row == column, 1.0, np.sqrt(2.0))
    symmetric = np.zeros((*triangles.shape[:-1], size, size))
    symmetric[..., row, column] = symmetric[..., column, row] = entries
    return symmetric


def triangles(symmetric: FloatArray) -> FloatArray:
    """Return what `matrices` takes."""
    column, row = np.tril_indices(symmetric.shape[-1])
    return np.asarray(symmetric[..., row, column] * np.where(row == column, 1.0, np.sqrt(2.0)))
