"""Scale rows to norm 1, or to a largest absolute entry of 1; norms and standard deviations of any size."""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray


def norms(rows: FloatArray) -> FloatArray:
    """Return the Euclidean norm of each row, without intermediate overflow or underflow: (n, d) -> (n,).

    >>> norms(np.array([[3e200, 4e200], [3e-200, 4e-200]]))
    array([5.e+200, 5.e-200])
    """
    squares = np.einsum("ij,ij->i", rows, rows)
    if len(rows) and squares.min() > 1e-280 and squares.max() < 1e280:
        return np.sqrt(squares)
    # Scale only the rows whose sum of squares may have overflowed or underflowed.
    extreme = ~((squares > 1e-280) & (squares < 1e280))
    result = np.sqrt(squares, where=~extreme, out=np.zeros(len(rows)))
    if extreme.any():
        largest = _largest(rows[extreme])
        with np.errstate(invalid="ignore"):  # an infinite entry gives NaN, like a NaN entry
            scaled = rows[extreme] / largest
        with np.errstate(over="ignore"):
            result[extreme] = largest[:, 0] * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        if np.isinf(result).any():
            row = int(np.isinf(result).argmax())
            raise ValueError(f"row {row}: the norm of its costs is too large for float64. Scale all costs down.")
    return result


def spread(values: FloatArray, *, ddof: int = 0) -> FloatArray:
    """Return the standard deviation of each column, without intermediate overflow or underflow: (n, d) -> (d,).

    >>> spread(np.array([[1e300, 3e-300], [3e300, 5e-300]]))
    array([1.e+300, 1.e-300])
    """
    largest = _largest(values.T)
    return np.std(values / largest.T, axis=0, ddof=ddof) * largest[:, 0]


def unit_rows(rows: FloatArray) -> FloatArray:
    """Return each row divided by its norm; a zero row stays zero, and no row overflows: (n, d) -> (n, d).

    >>> unit_rows(np.array([[3e300, 4e300], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    scaled = unit_largest(rows)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1.0)


def unit_largest(rows: FloatArray) -> FloatArray:
    """Return each row divided by its largest absolute entry; a zero row stays zero: (n, d) -> (n, d).

    >>> unit_largest(np.array([[3.0, -4.0], [0.0, 0.0]]))
    array([[ 0.75, -1.  ],
           [ 0.  ,  0.  ]])
    """
    return rows / _largest(rows)


def _largest(rows: FloatArray) -> FloatArray:
    """Return the largest absolute entry of each row, or 1 for a zero row: (n, d) -> (n, 1)."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    return np.where(largest > 0, largest, 1.0)
