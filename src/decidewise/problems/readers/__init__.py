"""Problems that were written with other tools."""

from decidewise.problems.readers.pyepo import from_pyepo

__all__ = ["from_pyepo"]
