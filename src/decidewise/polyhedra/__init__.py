"""A polyhedron in, points out: cones, projections, adjacent vertices, and the solvers of linear programs.

Geometry alone: nothing here knows a problem or a loss.
"""

from decidewise.polyhedra.polyhedron import Polyhedron

__all__ = ["Polyhedron"]
