"""Problems around a problem: the same region, with something added to how it is solved."""

from decidewise.problems.wrappers.cached import CachedProblem
from decidewise.problems.wrappers.counted import CountedProblem
from decidewise.problems.wrappers.parallel import ParallelProblem

__all__ = ["CachedProblem", "CountedProblem", "ParallelProblem"]
