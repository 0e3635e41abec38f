"""Geometry of polyhedra: normal cones, projections, adjacent vertices and linear programs.

Nothing here depends on problems or losses.
"""

from decidewise.solvers.polyhedron import Polyhedron

__all__ = ["Polyhedron"]
