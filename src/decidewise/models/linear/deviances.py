"""Generalized linear models: the link of a linear predictor to a prediction, and the deviances that are minimised.

The link is the identity, or the logarithm for positive costs. The deviances form one family. Half the deviance of power
`p` is the Bregman divergence of the convex function with second derivative `μ^-p`: the squared error (0), Poisson (1),
gamma (2), and Tweedie between the last two. The mean minimises each of them; they differ in how they weight an error.
With a larger power, relative errors count more, and a few large targets dominate the fit less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from decidewise.kit.checks import FloatArray, as_choice, as_integer, as_number
from decidewise.kit.kept import are_floats, need

Link = Literal["identity", "log"]

#: Keeps predictions, and sums of thousands of them, positive and finite: the largest float is about exp(709).
LARGEST_EXPONENT = 700.0
# exp(700) is 1e304. With means closer to it than this, the predictions of some rows would be clipped.
_SMALLEST_MEAN, _LARGEST_MEAN = 1e-302, 1e302
NAMES = ("squared", "poisson", "gamma", "tweedie")
_POWERS = {"squared": 0.0, "poisson": 1.0, "gamma": 2.0}


def linear_predictor(X: FloatArray, coefficients: FloatArray, intercepts: FloatArray | float) -> FloatArray:
    """Return `X b + a`: (n, d) or (n,) for X (n, p) and b (d, p) or (p,); (n, d) for X (n, d, q) and b (q,) or (d, q).

    >>> linear_predictor(np.ones((1, 3, 2)), np.array([[1.0, 2.0], [0.0, 0.0], [5.0, 5.0]]), 1.0)
    array([[ 4.,  1., 11.]])
    """
    if X.ndim == 2:
        return X @ coefficients.T + intercepts
    if coefficients.ndim == 2:
        return np.einsum("njk,jk->nj", X, coefficients) + intercepts
    return (X.reshape(-1, X.shape[2]) @ coefficients).reshape(X.shape[:2]) + intercepts


def respond(link: Link, predictor: FloatArray) -> FloatArray:
    """Return the predictions that belong to a linear predictor, elementwise."""
    if link == "identity":
        return predictor
    return np.exp(np.clip(predictor, -LARGEST_EXPONENT, LARGEST_EXPONENT))


def multiplied(link: Link, parameters: FloatArray, factor: float) -> FloatArray:
    """Return parameters (p + 1, d), intercepts first, whose predictions are `factor` times those of the given ones.

    >>> multiplied("identity", np.array([[1.0], [2.0]]), 10.0).ravel()
    array([10., 20.])
    >>> multiplied("log", np.array([[1.0], [2.0]]), np.e).ravel()
    array([2., 2.])
    """
    if link == "identity":
        return parameters * factor
    return np.vstack([parameters[:1] + np.log(factor), parameters[1:]])


def check_means(means: FloatArray) -> None:
    """Raise if the means (d,) of positive targets are outside the range that a log link can predict."""
    beyond = np.flatnonzero(~((means >= _SMALLEST_MEAN) & (means <= _LARGEST_MEAN)))
    if len(beyond):
        raise ValueError(
            f"a log link needs targets with means from {_SMALLEST_MEAN:g} to {_LARGEST_MEAN:g}; the mean of column "
            f"{beyond[0]} is {means[beyond[0]]:g}. Pass the costs in another unit."
        )


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


def check_kept_coefficients(model: Any) -> None:
    """Raise unless the coefficients of a linear or log-linear model, of rows or of items, fit its other attributes."""
    if not hasattr(model, "coef_"):
        return
    as_choice(model.link, name="link", choices=(None, "identity", "log"))
    as_choice(model.per_item, name="per_item", choices=("none", "intercept", "coefficients"))
    n_features = as_integer(model.n_features_in_, name="n_features_in_", minimum=0)
    shape, intercepts = np.shape(model.coef_), np.shape(model.intercept_)
    need(are_floats(model.coef_) and are_floats(model.intercept_), "coef_ and intercept_ must be numbers")
    need(len(shape) in (1, 2) and shape[-1] == n_features, f"coef_ must have {n_features} columns; it has {shape}")
    own = shape[:-1]
    if hasattr(model, "n_items_in_"):
        n_items = as_integer(model.n_items_in_, name="n_items_in_")
        need((len(shape) == 2) == (model.per_item == "coefficients"), f"coef_ of shape {shape} does not fit per_item")
        own = () if model.per_item == "none" else (n_items,)
        need(shape[:-1] in ((), own), f"coef_ of shape {shape} does not fit {n_items} items")
    need(intercepts == own, f"intercept_ must have the shape {own}; it has {intercepts}")
