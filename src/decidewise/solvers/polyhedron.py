"""The data of a polyhedron: linear constraints and bounds."""

from __future__ import annotations

from dataclasses import dataclass

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
