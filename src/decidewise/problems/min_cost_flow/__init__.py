"""Flow of least cost through a network."""

from decidewise.problems.min_cost_flow.problem import MinCostFlow

__all__ = ["MinCostFlow"]
