"""What the search of each method draws from: every range in one place, with the reason.

All ranges are searched in logarithms, a whole number rounded. Predictions and costs of a loss are in units of the
typical cost (`DecisionRegressor`, `DecisionBoostingRegressor`), so that one range serves all problems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Range:
    """Values from `low` to `high`, uniform in their logarithm; `reason` says why these."""

    low: float
    high: float
    reason: str
    whole: bool = False

    def at(self, quantile: float) -> float | int:
        """Return the value at a quantile from 0 to 1, to four digits, so that it can be written down and used again.

        >>> Range(0.01, 1.0, "").at(0.5), Range(2, 8, "", whole=True).at(0.4)
        (0.1, 3)
        """
        value = self.low * (self.high / self.low) ** quantile
        return round(value) if self.whole else float(f"{value:.4g}")


LEARNING_RATE = Range(
    3e-3,
    0.3,
    "of Adam: with a few hundred steps, less than this does not leave the random start, and more jumps past typical "
    "coefficients in a single step",
)
_SIGMA = Range(0.1, 3.0, "noise from a tenth of a typical cost, which seldom changes a decision, to one that drowns it")
_LAMBDA = Range(0.1, 10.0, "the range in which benchmarks of QPTL search the quadratic term")
_STEP = Range(0.01, 1.0, "a difference of the optimal value: from 1 % of the typical cost to the cost itself")
_MARGIN = Range(0.1, 10.0, "a margin around the default 1, both ways alike")

#: The main parameter of each loss that has one. A loss without an entry has its learning rate alone.
OF_LOSS: Mapping[str, Mapping[str, Range]] = {
    "pfy": {"sigma": _SIGMA},
    "dpo": {"sigma": _SIGMA},
    "sfge": {"sigma": _SIGMA},
    "aimle": {"sigma": _SIGMA},
    "imle": {"lambd": Range(1.0, 100.0, "the step of the perturbed costs: the default 10, both ways alike")},
    "dbb": {"lambd": Range(1.0, 100.0, "the interpolation: published values lie between 3 and 100")},
    "pg": {"h": _STEP},
    "pg-dca": {"h": _STEP},
    "pg-adaptive": {"h": _STEP},
    "rfy": {"lambd": _LAMBDA},
    "rfwo": {"lambd": _LAMBDA},
    "sce": {"lambd": _LAMBDA},
    "pear": {"lambd": _LAMBDA},
    "qptl": {"lambd": _LAMBDA},
    "mipaal": {"lambd": _LAMBDA},
    "compact": {"lambd": _LAMBDA},
    "projectnet": {"step": Range(0.3, 30.0, "the step of a round: the published 3, both ways alike")},
    "intopt": {"mu": Range(0.01, 1.0, "the barrier: the default 0.1, both ways alike; below, Newton steps fail")},
    "dys": {"gamma": Range(1e-4, 0.1, "the curvature: the published 5e-4, and more, which smooths")},
    "cilp": {"margin": _MARGIN},
    "mom": {"threshold": _MARGIN},
    "lava": {"threshold": Range(0.01, 1.0, "the published 0.1, both ways alike")},
    "one-sided": {"rho": Range(0.01, 1.0, "the share of the plain square: the default 0.1, both ways alike")},
    "ltr-pairwise": {"margin": Range(0.01, 1.0, "in typical costs; its default, no margin, is the limit below")},
    "ltr-listwise": {"temperature": Range(0.1, 10.0, "the default 1, both ways alike")},
    "lodl": {"sigma": _SIGMA},
    "lancer": {"sigma": _SIGMA},
}
_DEPTH = Range(2, 8, "from four leaves to more than the rows fill", whole=True)
_LEAF = Range(2, 40, "rows of a leaf: from almost none to a fifth of the rows", whole=True)
_SHARE = Range(0.2, 1.0, "features tried at a split: one of five to all")
TREE = {"max_depth": _DEPTH, "min_samples_leaf": _LEAF}
FOREST = {"min_samples_leaf": _LEAF, "max_features": _SHARE}
BOOSTING = {
    "learning_rate": Range(0.03, 1.0, "of trees: the usual 0.1, and steps up to the size of the typical cost"),
    "max_depth": Range(1, 5, "from stumps to 32 leaves", whole=True),
}


def draws(ranges: Mapping[str, Range], tries: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield `tries` draws at random. For each parameter, one draw falls into each of `tries` equal parts of its range.

    >>> rng = np.random.default_rng(0)
    >>> sorted(draw["x"] for draw in draws({"x": Range(1.0, 16.0, "")}, 4, rng))
    [1.012, 3.514, 4.115, 15.06]
    """
    quantiles = {name: (rng.permutation(tries) + rng.random(tries)) / tries for name in ranges}
    for i in range(tries):
        yield {name: ranges[name].at(float(quantiles[name][i])) for name in ranges}
