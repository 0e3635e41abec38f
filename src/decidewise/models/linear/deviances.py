"""Deviances: the losses of generalized linear models, of which the squared error is one.

They form one family. Half the deviance of power `p` is the Bregman divergence of the convex function with second
derivative `μ^-p`: the squared error (0), Poisson (1), gamma (2), and Tweedie between the last two. The mean minimises
each of them; they differ in how they weight an error. With a larger power, relative errors count more, and a few large
targets dominate the fit less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decidewise.kit.checks import FloatArray, as_choice, as_number
from decidewise.models.linear.link import Link

NAMES = ("squared", "poisson", "gamma", "tweedie")
_POWERS = {"squared": 0.0, "poisson": 1.0, "gamma": 2.0}


class Expansion(NamedTuple):
    """Half deviances, up to a term of the targets alone, and their derivatives in the linear predictor."""

    values: FloatArray
    slopes: FloatArray
    curvatures: FloatArray


@dataclass(frozen=True)
class Deviance:
    """A deviance by its name and power.

    Examples
    --------
    >>> gamma = Deviance.of("gamma")
    >>> gamma.expand(np.array([2.0]), np.log([2.0])).slopes  # zero, since the prediction is the target
    array([0.])
    """

    name: str
    power: float

    @classmethod
    def of(cls, name: str, power: float = 1.5) -> Deviance:
        """Return a deviance; only "tweedie" uses the power, from 1 to 2."""
        as_choice(name, name="deviance", choices=NAMES)
        # Above 2, the deviance with a log link has several minima; between 0 and 1 no distribution belongs to it.
        power = as_number(power, name="power", at_least=1, at_most=2)
        return cls(name, _POWERS.get(name, power))

    @property
    def link(self) -> Link:
        """The link whose predictions are all in the domain of the deviance."""
        return "identity" if self.power == 0 else "log"

    def expand(self, targets: FloatArray, predictor: FloatArray) -> Expansion:
        """Expand the half deviance around a linear predictor `η`, where the prediction is `exp(η)`.

        With `a = exp((2 - p) η)` and `c = y exp((1 - p) η)` the value is `a/(2 - p) + c/(p - 1)` (in the limit, `η` for
        `p = 2` and `-yη` for `p = 1`), the slope `s = a - c`, and the curvature `(2 - p) a + (p - 1) c`, which is never
        negative for `p` from 1 to 2. Value and curvature are computed from `s`, which is faster.
        """
        p = self.power
        if p == 1:
            means = np.exp(predictor)
            return Expansion(means - targets * predictor, means - targets, means)
        shrunk = (1 - p) * predictor
        np.exp(shrunk, out=shrunk)
        if p == 2:
            c = np.multiply(shrunk, targets, out=shrunk)
            return Expansion(predictor + c, 1 - c, c)
        c = targets * shrunk
        # For p = 1.5, one exponential is the inverse of the other; exponentials take half of the time.
        a = 1 / shrunk if p == 1.5 else np.exp((2 - p) * predictor)
        slopes = a - c
        return Expansion(((p - 1) * slopes + c) / ((2 - p) * (p - 1)), slopes, (2 - p) * slopes + c)

    def check(self, targets: FloatArray, weights: FloatArray | None, *, first_row: int) -> None:
        """Raise at the first target (b, d) that this deviance does not admit with a log link; rows are named by number.

        Targets of weight zero are not checked: under the change of measure, a row of zeros has weight 0.
        """
        bad = targets <= 0 if self.power == 2 else targets < 0
        if weights is not None:
            bad &= weights[:, None] > 0
        if not bad.any():
            return
        row, column = np.argwhere(bad)[0]
        expected = "positive targets" if self.power == 2 else "targets that are not negative"
        if targets[row, column] < 0:
            what, instead = "negative", 'deviance="squared" with link="identity"'
        else:
            what, instead = "zero", 'deviance="poisson", which admits zeros, or drop the row'
        raise ValueError(
            f"the {self.name} deviance with a log link needs {expected}; row {first_row + row}, column {column} is "
            f"{what}. Use {instead}."
        )
