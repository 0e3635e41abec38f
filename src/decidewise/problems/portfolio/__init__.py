"""The Markowitz portfolio with a bound on its risk: a convex region that is neither polyhedral nor smooth."""

from decidewise.problems.portfolio.problem import Portfolio

__all__ = ["Portfolio"]
