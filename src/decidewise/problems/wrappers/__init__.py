"""Wrappers of a problem: the same region, solved with a cache, a counter, several processes or known costs."""

from decidewise.problems.wrappers.cached import CachedProblem
from decidewise.problems.wrappers.counted import CountedProblem
from decidewise.problems.wrappers.known_costs import KnownCosts
from decidewise.problems.wrappers.parallel import ParallelProblem

__all__ = ["CachedProblem", "CountedProblem", "KnownCosts", "ParallelProblem"]
