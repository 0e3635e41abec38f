"""The symmetric travelling salesman: the cheapest tour through all nodes."""

from decidewise.problems.travelling_salesman.problem import TravellingSalesman

__all__ = ["TravellingSalesman"]
