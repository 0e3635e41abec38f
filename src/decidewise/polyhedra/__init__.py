"""Geometry of polyhedra: normal cones, projections, adjacent vertices and linear programs.

Nothing here depends on problems or losses.
"""

from decidewise.polyhedra.polyhedron import Polyhedron

__all__ = ["Polyhedron"]
