"""The Markowitz portfolio with a bound on its risk: a convex feasible set that is neither polyhedral nor smooth."""

from decidewise.problems.portfolio.problem import Portfolio

__all__ = ["Portfolio"]
