"""Geometry of polyhedra: normal cones, projections, adjacent vertices and linear programs.

Nothing here depends on problems or losses.
"""

from decidewise.solvers.program import Polyhedron

__all__ = ["Polyhedron"]
