"""Units by which numbers are divided, so that nothing overflows, and linear systems whose rank no unit changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh

from decidewise.kit.checks import BoolArray, FloatArray
from decidewise.models.linear.deviances import Link, multiplied

_EPS = float(np.finfo(np.float64).eps)
# Costs up to this size, and their squares, need no unit.
_TAME_COSTS = 2.0**150
# A feature is constant if its standard deviation is below this fraction of its mean: that is rounding.
_ROUNDING = 1e-13
# The most that a coefficient may lose to underflow, as a fraction of the largest coefficient.
_LOST = 1e-9


def power_of_two(sizes: Any) -> Any:
    """Return the largest powers of two up to the given sizes, and 1 for zero: dividing by a power of two is exact.

    >>> power_of_two(np.array([0.0, 1.0, 3.9, 0.2]))
    array([1.   , 1.   , 2.   , 0.125])
    """
    _, exponents = np.frexp(sizes)
    # Within these bounds the inverse of the power is in range as well.
    return np.where(np.isfinite(sizes) & (sizes > 0), np.ldexp(1.0, np.clip(exponents - 1, -1000, 1000)), 1.0)


def tame_unit(sizes: Any, *, bound: float) -> Any:
    """Return 1 for sizes from `1 / bound` to `bound`, whose products are well within float64, else a power of two."""
    tame = (sizes >= 1 / bound) & (sizes <= bound)
    return np.ones(np.shape(sizes)) if np.all(tame) else np.where(tame, 1.0, power_of_two(sizes))


def cost_unit(costs: FloatArray, *, power: float) -> float:
    """Return a unit in which powers of the costs (n, d) are within float64; 1 if they are so anyway."""
    return float(tame_unit(np.abs(costs).max(), bound=_TAME_COSTS ** (1 / max(power, 1.0))))


def back_from(unit: float, exponent: float) -> float:
    """Return the factor from targets `y/‖y‖^exponent` of costs in a unit to the targets of the costs themselves."""
    with np.errstate(over="ignore"):
        factor = float(np.float64(unit) ** (1 - exponent))
    if not 0 < factor < np.inf:
        raise ValueError(
            f"exponent={exponent:g} takes costs of about {unit:.0e} out of the range of float64. Scale the costs, or "
            "choose an exponent closer to 1."
        )
    return factor


def out_of_units(coefficients: FloatArray, unit: FloatArray) -> FloatArray:
    """Convert coefficients (p, d) for features in units (p,) to coefficients for the features themselves.

    Raise if these are outside the range of float64.
    """
    with np.errstate(over="ignore"):
        result = coefficients / unit[:, None]
        lost = np.abs(result * unit[:, None] - coefficients) > _LOST * np.abs(coefficients).max(axis=0, initial=0.0)
    if lost.any() or not np.isfinite(result).all():
        raise ValueError(
            "the coefficients, in units of costs divided by features, are beyond the range of float64. Scale the "
            "features or the costs."
        )
    return result


@dataclass(frozen=True)
class Units:
    """The units of features, costs and predictions in training, so that its steps do not depend on the caller's units.

    Attributes
    ----------
    center, scale : ndarray of shape (p,)
        The mean of each feature and its standard deviation, or 1 for a constant feature.
    varies : bool ndarray of shape (p,)
        Whether each feature is not constant.
    cost : float
        A typical cost: the median of the mean absolute costs of the columns, without columns that are always zero. So a
        column of huge costs, which forbids a decision, has little effect.
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
    varies: BoolArray
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
        """Return the caller's own units, which change nothing."""
        return cls(np.zeros(n_features), np.ones(n_features), np.ones(n_features, dtype=bool), 1.0, 1.0)

    def features(self, X: FloatArray) -> FloatArray:
        """Return features (n, p) in these units."""
        return (X - self.center) / self.scale

    def enter(self, parameters: FloatArray) -> FloatArray:
        """Convert parameters (p + 1, d), intercepts first, to features in these units."""
        intercepts, slopes = parameters[0], parameters[1:]
        return np.vstack([intercepts + self.center @ slopes, slopes * self.scale[:, None]])

    def leave(self, parameters: FloatArray, link: Link) -> FloatArray:
        """Convert parameters (p + 1, d) back to features and predictions in the caller's units."""
        scaled = multiplied(link, parameters, self.prediction)
        coefficients = out_of_units(scaled[1:], self.scale)
        return np.vstack([scaled[0] - self.center @ coefficients, coefficients])


def is_constant(squares: FloatArray, center: FloatArray, shift: FloatArray, weight: float) -> BoolArray:
    """Return which features (p,) vary by no more than rounding, which is not variance: their coefficients are zero."""
    with np.errstate(over="ignore"):
        rounding = 100 * _EPS * center**2 + (10 * _EPS * (shift + center)) ** 2
    return np.asarray(squares <= weight * rounding)


def least_value(n_features: int) -> float:
    """Return the eigenvalue, of products of features of size one, up to which a direction counts as absent."""
    return 64 * n_features * _EPS


def ridge_in(unit: FloatArray, alpha: float, weight: float, squares: FloatArray) -> FloatArray:
    """Return the ridge (p,) for features in units (p,), to be added to the sums of their squares (p,)."""
    with np.errstate(over="ignore", divide="ignore"):
        ridge = alpha * weight / unit**2 if alpha > 0 else np.zeros(len(unit))
    check_ridge(alpha, ridge, squares)
    return ridge


def check_ridge(alpha: float, ridge: FloatArray, squares: FloatArray) -> None:
    """Raise if the ridge (q,) overwhelms the squares (q,) of all features or directions to which it is added."""
    if not np.isfinite(ridge).all() or (squares.any() and (ridge * _EPS > squares).all()):
        raise ValueError(
            f"alpha={alpha:g} outweighs the squares of the features so far that the fit would be a constant. "
            "Scale the features, for example with StandardScaler, or lower alpha."
        )


def whiten(matrix: FloatArray, unit: FloatArray) -> FloatArray:
    """Return `T` (p, r) with `Tᵀ U matrix U T = I`, for a positive semidefinite matrix (p, p) of rank r and `U = unit`.

    The columns of `T` are orthogonal to the null space, so that `T @ c` is the shortest of all equivalent vectors.
    """
    scale, values, basis, null = _decompose(matrix, unit)
    result = basis / np.sqrt(values) / (scale * unit)[:, None]
    return result - null @ (null.T @ result)


def solve_semidefinite(matrix: FloatArray, right: FloatArray, unit: FloatArray) -> FloatArray:
    """Return the least-norm `b` with `matrix @ (unit * b) = right`, for a symmetric positive semidefinite matrix."""
    scale, values, basis, null = _decompose(matrix, unit)
    in_units = (basis @ ((basis.T @ (right / scale[:, None])) / values[:, None])) / scale[:, None]
    solution = out_of_units(in_units, unit)
    return solution - null @ (null.T @ solution)


def _decompose(matrix: FloatArray, unit: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Decompose a semidefinite matrix (p, p), scaled to a unit diagonal so that its rank does not depend on units.

    Returns the scale (p,), the r eigenvalues that are not zero, their vectors (p, r), and an orthonormal basis
    (p, p - r) of the null space of the matrix in the caller's units, `U matrix U`.
    """
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = eigh(matrix / np.outer(scale, scale))
    keep = values > least_value(len(matrix))
    null, _ = np.linalg.qr(vectors[:, ~keep] / (scale * unit)[:, None])
    return scale, values[keep], vectors[:, keep], null
