"""The change of measure: from costs to weights and directions.

A decision depends only on the direction of its cost vector `y`; the price of a wrong decision grows with the norm of
`y`. So the paper moves the data from their distribution `P` to a measure `Q` in two steps: weight each sample by `‖y‖`
(step 1, `reweight`), then replace `y` by `y/‖y‖` (step 2, `project`). The two steps together keep the optimal
decision; neither step does so alone. Least squares under `Q` is the WISE loss.

>>> import numpy as np
>>> costs = np.array([[4.0, 0.0], [0.0, 1.0]])
>>> weights, directions = transform(costs)
>>> np.average(directions, axis=0, weights=weights)  # the direction of the mean cost (2, 1/2)
array([0.8, 0.2])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from decidewise.checks import FloatArray, as_integer, as_matrix, as_number, as_rng, as_sample_weight, check_same_rows
from decidewise.scaling import norms, unit_rows


def reweight(costs: Any) -> FloatArray:
    """Return the weights of step 1: proportional to the norm of each row, with mean 1.

    Parameters
    ----------
    costs : array-like of shape (n, d)

    Returns
    -------
    weights : ndarray of shape (n,)
        Zero for a zero row: all decisions cost the same there.
    """
    return mean_one(norms(as_matrix(costs)))


def mean_one(weights: FloatArray) -> FloatArray:
    """Scale weights (n,) to mean 1; raise if they are all zero."""
    if not weights.any():
        raise ValueError(
            f"all {len(weights)} rows have weight zero (zero costs or zero sample weights), so there is nothing to "
            "learn from. Pass at least one row with a non-zero cost and a non-zero weight."
        )
    relative = weights / weights.max()  # the mean of weights near the largest float would overflow
    return relative / relative.mean()


def project(costs: Any) -> FloatArray:
    """Return the directions of step 2: each row divided by its norm; a zero row stays zero: (n, d) -> (n, d)."""
    return unit_rows(as_matrix(costs))


def transform(costs: Any, exponent: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Return weights `‖y‖^exponent` and targets `y/‖y‖^exponent`: both steps of the change of measure.

    For every exponent, weighted least squares on the targets gives the direction of the conditional mean: its
    minimiser is `E[y | x] / E[‖y‖^exponent | x]`. An exponent of 1 is WISE, an exponent of 0 plain least squares.

    Parameters
    ----------
    costs : array-like of shape (n, d)
    exponent : float
        Not negative, and small enough that `‖y‖^exponent` stays in the range of float64.

    Returns
    -------
    weights : ndarray of shape (n,)
    targets : ndarray of shape (n, d)
        A zero row has a zero target and weight 0 (weight 1 if the exponent is 0: then all rows weigh the same).
    """
    check_exponent(exponent)
    costs = as_matrix(costs)
    weights = cost_weights(costs, exponent)
    if costs.any() and not 0 < weights.max() < np.inf:
        raise ValueError(
            f"the weights ‖y‖^{exponent:g} of the costs leave the range of float64. Choose a smaller exponent, or "
            "scale all costs to norms nearer 1."
        )
    return weights, targets_of(costs, weights)


def polar(costs: Any, xp: Any, *, eps: float = 0.0) -> tuple[Any, Any]:
    """Return norms and directions of any array type, differentiable by its library: (..., d) -> (..., 1), (..., d).

    Parameters
    ----------
    xp : module
        The namespace of the array type, as returned by `array_api_compat.array_namespace`.
    eps : float
        Norms below `eps` are raised to `eps`. If `eps` is 0, a zero row has norm and direction zero.
    """
    largest = xp.max(xp.abs(costs), axis=-1, keepdims=True)
    largest = xp.where(largest > 0, largest, xp.ones_like(largest))
    scaled = costs / largest  # keeps the squares of very large and very small costs in range
    norm = largest * xp.sqrt(xp.sum(scaled * scaled, axis=-1, keepdims=True))
    if eps > 0:
        norm = xp.clip(norm, min=eps)
    return norm, costs / xp.where(norm > 0, norm, xp.ones_like(norm))


def resample(
    X: Any, costs: Any, size: int, rng: np.random.Generator, *, exponent: float = 1.0, sample_weight: Any = None
) -> tuple[Any, FloatArray]:
    """Draw a sample from `Q`, for learners that take no weights.

    Rows are drawn with replacement, with probabilities proportional to `‖y‖^exponent` times the sample weight.

    Parameters
    ----------
    X : array-like or frame with n rows
        The drawn rows are returned as the same type.
    costs : array-like of shape (n, d)
    size : int
        The number of rows to draw.
    rng : numpy.random.Generator

    Returns
    -------
    X_drawn : the drawn rows of `X`
    targets : ndarray of shape (size, d)
    """
    costs = as_matrix(costs)
    check_same_rows(X=X, costs=costs)
    size, rng = as_integer(size, name="size"), as_rng(rng)
    weights, targets = transform(costs, exponent)
    weights = mean_one(mean_one(weights) * as_sample_weight(sample_weight, len(costs)))
    rows = rng.choice(len(costs), size=size, p=weights / len(weights))
    return _safe_indexing(X, rows), targets[rows]


def cost_weights(costs: FloatArray, exponent: float) -> FloatArray:
    """Return `‖y‖^exponent` for each row, unchecked, infinite if that overflows: (n, d) -> (n,)."""
    lengths = norms(costs)
    if exponent == 1:
        return lengths
    with np.errstate(over="ignore"):
        return lengths**exponent


def targets_of(costs: FloatArray, weights: FloatArray) -> FloatArray:
    """Return each row divided by its weight; a row of weight zero is unchanged: (n, d), (n,) -> (n, d)."""
    return costs / np.where(weights > 0, weights, 1.0)[:, None]


def check_exponent(exponent: float) -> None:
    """Raise unless the exponent is a finite number that is not negative."""
    as_number(exponent, name="exponent", at_least=0)
