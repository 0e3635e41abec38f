"""Units: what numbers are divided by, so that a fit does not depend on those of the caller, and nothing overflows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.models.linear.link import Link, multiplied

# Costs of up to this size, and their squares, need no other unit.
_TAME_COSTS = 2.0**150
# A standard deviation below this part of the mean is rounding: the feature is constant.
_ROUNDING = 1e-13
# What a coefficient may lose, of the largest, where it is too small for float64 to hold all its digits.
_LOST = 1e-9


def power_of_two(sizes: Any) -> Any:
    """Return the powers of two next below positive sizes, and 1 for zero: dividing by one of them rounds nothing.

    >>> power_of_two(np.array([0.0, 1.0, 3.9, 0.2]))
    array([1.   , 1.   , 2.   , 0.125])
    """
    _, exponents = np.frexp(sizes)
    # Within these bounds the power has an inverse.
    return np.where(np.isfinite(sizes) & (sizes > 0), np.ldexp(1.0, np.clip(exponents - 1, -1000, 1000)), 1.0)


def tame_unit(sizes: Any, *, bound: float) -> Any:
    """Return 1 for sizes from `1 / bound` to `bound`, whose products stay far inside float64, else a power of two."""
    tame = (sizes >= 1 / bound) & (sizes <= bound)
    return np.ones(np.shape(sizes)) if np.all(tame) else np.where(tame, 1.0, power_of_two(sizes))


def cost_unit(costs: FloatArray, *, power: float) -> float:
    """Return a unit of costs (n, d) in which their powers stay inside float64; 1 where they do so anyway."""
    return float(tame_unit(np.abs(costs).max(), bound=_TAME_COSTS ** (1 / max(power, 1.0))))


def back_from(unit: float, exponent: float) -> float:
    """Return what targets `y/‖y‖^exponent` of costs in a unit are multiplied by to be those of the costs themselves."""
    with np.errstate(over="ignore"):
        factor = float(np.float64(unit) ** (1 - exponent))
    if not 0 < factor < np.inf:
        raise ValueError(
            f"exponent={exponent:g} takes costs of about {unit:.0e} out of the range of float64. Scale the costs, or "
            "choose an exponent nearer to 1."
        )
    return factor


def out_of_units(coefficients: FloatArray, unit: FloatArray) -> FloatArray:
    """Return the coefficients (p, d) of features in units (p,) as those of the features themselves.

    Raise where float64 cannot hold them.
    """
    with np.errstate(over="ignore"):
        result = coefficients / unit[:, None]
        lost = np.abs(result * unit[:, None] - coefficients) > _LOST * np.abs(coefficients).max(axis=0, initial=0.0)
    if lost.any() or not np.isfinite(result).all():
        raise ValueError(
            "the coefficients, costs over features, are beyond the range of float64. Scale the features or the costs."
        )
    return result


@dataclass(frozen=True)
class Units:
    """What training divides features, costs and predictions by, so that its steps do not depend on the caller's units.

    Attributes
    ----------
    center, scale : ndarray of shape (p,)
        The mean of each feature and its standard deviation, 1 where it is constant.
    varies : bool ndarray of shape (p,)
    cost : float
        A typical cost: the mean size of each column's, and of these the median. A column that is priced out by a large
        number, or another that is always zero, does not count for more than one.
    prediction : float
        The typical cost, or 1 for a loss whose predictions are directions.

    Examples
    --------
    >>> units = Units.of(np.array([[1.0], [3.0]]), np.array([[10.0, 30.0], [20.0, -20.0]]), directions=False)
    >>> units.features(np.array([[4.0]])), units.cost
    (array([[2.]]), 20.0)
    """

    center: FloatArray
    scale: FloatArray
    varies: npt.NDArray[np.bool_]
    cost: float
    prediction: float

    @classmethod
    def of(cls, X: FloatArray, costs: FloatArray, *, directions: bool) -> Self:
        """Return the units of features (n, p) and costs (n, d)."""
        unit = power_of_two(np.abs(X).max(axis=0))
        mean = (X / unit).mean(axis=0)
        deviation = np.sqrt(((X / unit - mean) ** 2).mean(axis=0))
        varies = deviation > _ROUNDING * np.abs(mean)
        unit_cost = power_of_two(np.abs(costs).max())
        sizes = np.abs(costs / unit_cost).mean(axis=0)
        cost = float(unit_cost * np.median(sizes[sizes > 0])) if sizes.any() else 1.0
        return cls(mean * unit, np.where(varies, deviation * unit, 1.0), varies, cost, 1.0 if directions else cost)

    @classmethod
    def callers(cls, n_features: int) -> Self:
        """Return the units of the caller: nothing is changed."""
        return cls(np.zeros(n_features), np.ones(n_features), np.ones(n_features, dtype=bool), 1.0, 1.0)

    def features(self, X: FloatArray) -> FloatArray:
        """Return features (n, p) in these units."""
        return (X - self.center) / self.scale

    def enter(self, parameters: FloatArray) -> FloatArray:
        """Return parameters (p + 1, d), intercepts first, for features in these units."""
        intercepts, slopes = parameters[0], parameters[1:]
        return np.vstack([intercepts + self.center @ slopes, slopes * self.scale[:, None]])

    def leave(self, parameters: FloatArray, link: Link) -> FloatArray:
        """Return parameters (p + 1, d) for features and predictions in the units of the caller."""
        scaled = multiplied(link, parameters, self.prediction)
        coefficients = out_of_units(scaled[1:], self.scale)
        return np.vstack([scaled[0] - self.center @ coefficients, coefficients])
