"""The shortest path in a directed graph: a grid, or any list of edges."""

from decidewise.problems.shortest_path.problem import ShortestPath

__all__ = ["ShortestPath"]
