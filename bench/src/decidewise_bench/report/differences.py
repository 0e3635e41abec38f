"""Differences between two methods on the same draws of data."""

from __future__ import annotations

from math import isfinite, nan, sqrt
from typing import NamedTuple

from decidewise_bench.report.results import Summary, Trials


class Difference(NamedTuple):
    """The regret of one method minus that of another in the same trials: mean and standard error, in points."""

    mean: float
    error: float

    @classmethod
    def of(cls, one: Trials, other: Trials) -> Difference:
        """Compare two methods; the error is NaN with fewer than two trials in common."""
        common = sorted(one.trials.keys() & other.trials.keys())
        gaps = Summary.of(one.trials[trial].regret - other.trials[trial].regret for trial in common)
        return cls(gaps.mean, gaps.std / sqrt(len(common)) if len(common) > 1 else nan)

    @property
    def verdict(self) -> str:
        """Whether the one is "lower" or "higher" by more than a standard error, or "even"; "" if that is unknown.

        >>> Difference(-1.0, 0.5).verdict, Difference(0.4, 0.5).verdict, Difference(1.0, 0.5).verdict
        ('lower', 'even', 'higher')
        """
        return self.beyond(1.0)

    def beyond(self, errors: float) -> str:
        """Return the verdict for a difference of more than so many standard errors.

        >>> Difference(-1.0, 0.6).beyond(2.0)
        'even'
        """
        if not isfinite(self.error):
            return ""
        margin = errors * self.error
        return "lower" if self.mean < -margin else "higher" if self.mean > margin else "even"

    def __str__(self) -> str:
        if not isfinite(self.mean):
            return ""
        error = f" ± {self.error:.2f}" if isfinite(self.error) else ""
        return f"{self.mean:+.2f}{error}".replace("-", "−")
