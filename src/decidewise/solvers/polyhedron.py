"""The data of a polyhedron: linear constraints and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.checks import FloatArray


@dataclass(frozen=True)
class Polyhedron:
    """The set `{w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}`, with sparse rows.

    For an integer problem it is the linear relaxation.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> polyhedron = TopK(3, 1).polyhedron
    >>> polyhedron.A_eq.toarray(), polyhedron.b_eq, polyhedron.upper
    (array([[1., 1., 1.]]), array([1.]), array([1., 1., 1.]))
    """

    A_ub: csr_array
    b_ub: FloatArray
    A_eq: csr_array
    b_eq: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def within(cls, lower: FloatArray, upper: FloatArray, *, ub: Any = None, eq: Any = None) -> Self:
        """Return the points between bounds (d,), with constraints as pairs of a matrix (m, d) and a side (m,), if any.

        >>> simplex = Polyhedron.within(np.zeros(3), np.ones(3), eq=([[1.0, 1.0, 1.0]], [1.0]))
        >>> simplex.A_eq.shape, simplex.A_ub.shape
        ((1, 3), (0, 3))
        """
        none = csr_array((0, len(lower))), ()
        (A_ub, b_ub), (A_eq, b_eq) = ub or none, eq or none
        sides = np.asarray(b_ub, dtype=np.float64), np.asarray(b_eq, dtype=np.float64)
        return cls(csr_array(A_ub), sides[0], csr_array(A_eq), sides[1], lower, upper)
