"""Average ranks with critical differences: the test of Friedman, and that of Nemenyi for all pairs.

Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7 (2006). A block is one draw of data: a
trial of a problem. So the differences are those that would show again on other draws of these problems; they say
nothing about other problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

#: The level of both tests.
LEVEL = 0.05
#: The test of Friedman needs at least so many methods and blocks.
_FEWEST = 3


@dataclass(frozen=True)
class Ranks:
    """The average ranks of methods over blocks, 1 is the best; ties share the mean of their ranks.

    Attributes
    ----------
    mean : mapping of str to float
        From the lowest rank to the highest.
    n_blocks : int
    p_value : float
        Of the hypothesis that all methods are alike, by Friedman; NaN with fewer than three methods or blocks.
    critical : float
        Two average ranks that differ by more than this differ at the level 5 %, for all pairs together, by Nemenyi.
    """

    mean: Mapping[str, float]
    n_blocks: int
    p_value: float
    critical: float

    @classmethod
    def of(cls, methods: Sequence[str], regrets: Sequence[Sequence[float]]) -> Ranks:
        """Rank the regrets, one row per block and one column per method.

        >>> Ranks.of(["a", "b", "c"], [[1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [5.0, 6.0, 6.0]]).mean
        {'a': 1.0, 'b': 2.1666666666666665, 'c': 2.8333333333333335}
        """
        table = np.array(regrets, dtype=float).reshape(-1, len(methods))
        n_blocks, k = table.shape
        means = rankdata(table, axis=1).mean(axis=0) if n_blocks else np.full(k, nan)
        order = np.argsort(means, kind="stable")
        enough = min(n_blocks, k) >= _FEWEST
        p_value = float(friedmanchisquare(*table.T).pvalue) if enough else nan
        critical = critical_difference(k, n_blocks) if enough else nan
        return cls({methods[j]: float(means[j]) for j in order}, n_blocks, p_value, critical)

    @property
    def is_significant(self) -> bool:
        """Whether Friedman rejects that all methods are alike."""
        return self.p_value < LEVEL

    def equals_of(self, method: str) -> list[str]:
        """Return the other methods whose average ranks differ from that of the method by at most the critical one."""
        own = self.mean[method]
        return [name for name, rank in self.mean.items() if name != method and abs(rank - own) <= self.critical]


def critical_difference(k: int, n_blocks: int) -> float:
    """Return the critical difference of average ranks of k methods.

    >>> round(critical_difference(5, 30), 3)  # Demšar's table: q = 2.728
    1.114
    """
    q = float(studentized_range.ppf(1 - LEVEL, k, inf)) / sqrt(2)
    return q * sqrt(k * (k + 1) / (6 * n_blocks))
