"""A program in, points out: linear, mixed-integer and conic programs, and vertices of polyhedra.

Nothing here depends on problems or losses.
"""

from decidewise.solvers.program import Polyhedron

__all__ = ["Polyhedron"]
