"""Wrappers of a problem: the same region, solved with a cache, a counter or several processes."""

from decidewise.problems.wrappers.cached import CachedProblem
from decidewise.problems.wrappers.counted import CountedProblem
from decidewise.problems.wrappers.parallel import ParallelProblem

__all__ = ["CachedProblem", "CountedProblem", "ParallelProblem"]
