"""The 0/1 knapsack in any number of dimensions."""

from decidewise.problems.knapsack.problem import Knapsack

__all__ = ["Knapsack"]
