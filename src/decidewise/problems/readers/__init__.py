"""Readers of problems written with other libraries."""

from decidewise.problems.readers.pyepo import from_pyepo

__all__ = ["from_pyepo"]
