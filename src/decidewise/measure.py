"""The change of measure: from costs to weights and directions.

A decision depends only on the direction of its cost vector `y`; the price of a wrong decision grows with the norm of
`y`. So the paper moves the data from their distribution `P` to a measure `Q` in two steps: weight each sample by `‖y‖`
(step 1, `reweight`), then replace `y` by `y/‖y‖` (step 2, `project`). The two steps together keep the optimal
decision; neither step does so alone. Least squares under `Q` is the WISE loss.

In general, for any sizes `a(y) > 0` and any scale `s(x) > 0`, the weight `a/s²` and the target `y s/a` give the
minimiser `s(x) E[y | x] / E[a | x]`, which has the direction of `E[y | x]` whatever the scale (`docs/theory.md`).
`transform` is this formula; the paper's WISE has `a = ‖y‖` and `s = 1`.

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

from decidewise.kit.checks import (
    FloatArray,
    IndexArray,
    as_array,
    as_integer,
    as_matrix,
    as_number,
    as_rng,
    as_sample_weight,
    check_same_rows,
)
from decidewise.kit.scaling import norms, unit_rows

__all__ = ["polar", "project", "resample", "reweight", "transform"]


def reweight(costs: Any) -> FloatArray:
    """Return the weights of step 1: proportional to the norm of each row, with mean 1.

    Parameters
    ----------
    costs : array-like of shape (n, d)

    Returns
    -------
    weights : ndarray of shape (n,)
        Zero for a zero row: all decisions cost the same there.

    Examples
    --------
    >>> reweight([[4.0, 0.0], [0.0, 1.0]])
    array([1.6, 0.4])
    """
    return mean_one(norms(as_matrix(costs)))


def mean_one(weights: FloatArray) -> FloatArray:
    """Scale weights (n,) to mean 1; raise if they are all zero."""
    if not weights.any():
        raise nothing_to_learn(len(weights))
    relative = weights / weights.max()  # the mean of weights near the largest float would overflow
    return relative / relative.mean()


def project(costs: Any) -> FloatArray:
    """Return the directions of step 2: each row divided by its norm; a zero row stays zero: (n, d) -> (n, d).

    Examples
    --------
    >>> project([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    return unit_rows(as_matrix(costs))


def transform(
    costs: Any, exponent: float = 1.0, *, scale: Any = None, power: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return weights `a/s^(2 - power)` and targets `y s/a`, with `a = ‖y‖^exponent`: both steps of the change.

    For every exponent and every scale, weighted least squares on the targets gives the direction of the conditional
    mean: its minimiser is `s(x) E[y | x] / E[‖y‖^exponent | x]`. An exponent of 1 with the scale 1 is WISE, an exponent
    of 0 plain least squares.

    Parameters
    ----------
    costs : array-like of shape (n, d)
    exponent : float
        Not negative, and small enough that `‖y‖^exponent` stays in the range of float64.
    scale : float or array-like of shape (n,), optional
        The positive scale `s`, for all rows or for each row; it may depend on the features, not on the costs of the
        row. By default 1.
    power : float
        The power of the deviance that is minimised: 0 for the square, 1 for Poisson, 2 for gamma. A deviance of
        targets and predictions that are `s` times as large is `s^(2 - power)` times as large, and the weights make up
        for that.

    Returns
    -------
    weights : ndarray of shape (n,)
    targets : ndarray of shape (n, d)
        A zero row has a zero target and weight 0 (weight 1 if the exponent is 0: then all rows weigh the same).

    Examples
    --------
    >>> transform([[3.0, 4.0]], scale=10.0)
    (array([0.05]), array([[6., 8.]]))
    """
    as_number(exponent, name="exponent", at_least=0)
    costs = as_matrix(costs)
    sizes = checked_sizes(costs, exponent)
    if scale is not None:
        scale = _as_scale(scale, len(costs))
    return weights_of(sizes, scale, power), targets_of(costs, sizes, scale)


def polar(costs: Any, xp: Any, *, eps: float = 0.0) -> tuple[Any, Any]:
    """Return norms and directions of any array type, differentiable by its library: (..., d) -> (..., 1), (..., d).

    Parameters
    ----------
    xp : module
        The namespace of the array type, as returned by `array_api_compat.array_namespace`.
    eps : float
        Norms below `eps` are raised to `eps`. If `eps` is 0, a zero row has norm and direction zero.

    Examples
    --------
    >>> polar(np.array([[3.0, 4.0]]), np)
    (array([[5.]]), array([[0.6, 0.8]]))
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

    Examples
    --------
    >>> X, targets = resample(np.array([["a"], ["b"]]), [[4.0, 0.0], [0.0, 1.0]], 1000, np.random.default_rng(0))
    >>> float((X == "a").mean().round(1)), targets.mean(axis=0).round(1)  # the first row weighs four times as much
    (0.8, array([0.8, 0.2]))
    """
    costs = as_matrix(costs)
    check_same_rows(X=X, costs=costs)
    size, rng = as_integer(size, name="size"), as_rng(rng)
    weights, targets = transform(costs, exponent)
    rows = draw(mean_one(weights) * as_sample_weight(sample_weight, len(costs)), size, rng)
    return _safe_indexing(X, rows), targets[rows]


def draw(weights: FloatArray, size: int, rng: np.random.Generator) -> IndexArray:
    """Draw indices of rows with replacement, with probabilities proportional to weights (n,)."""
    return rng.choice(len(weights), size=size, p=mean_one(weights) / len(weights))


def cost_sizes(costs: FloatArray, exponent: float) -> FloatArray:
    """Return `‖y‖^exponent` for each row, unchecked, infinite if that overflows: (n, d) -> (n,)."""
    lengths = norms(costs)
    if exponent == 1:
        return lengths
    with np.errstate(over="ignore"):
        return lengths**exponent


def checked_sizes(costs: FloatArray, exponent: float) -> FloatArray:
    """Return `‖y‖^exponent` for each row of finite costs; raise if that leaves the range of float64: (n, d) -> (n,)."""
    sizes = cost_sizes(costs, exponent)
    if costs.any() and not 0 < sizes.max() < np.inf:
        raise out_of_range(exponent)
    return sizes


def weights_of(sizes: FloatArray, scale: FloatArray | float | None = None, power: float = 0.0) -> FloatArray:
    """Return the weights `a/s^(2 - power)` of rows of sizes `a` (n,); a scale of None is 1."""
    return sizes if scale is None else sizes / scale ** (2 - power)


def targets_of(costs: FloatArray, sizes: FloatArray, scale: FloatArray | float | None = None) -> FloatArray:
    """Return the targets `y s/a`; a row of size zero is not divided by it: (n, d), (n,) -> (n, d)."""
    divisors = np.where(sizes > 0, sizes, 1.0)
    return costs / (divisors if scale is None else divisors / scale)[:, None]


def weighted_targets(costs: FloatArray, scale: FloatArray | float | None = None, power: float = 0.0) -> FloatArray:
    """Return the targets times their weights, which do not depend on the sizes: `y/s^(1 - power)`, (n, d) -> (n, d)."""
    if scale is None or power == 1:
        return costs
    return costs / np.reshape(scale ** (1 - power), (-1, 1))


def nothing_to_learn(n_rows: int | None = None) -> ValueError:
    """Return the error about rows, if their number is known, of which none has any weight."""
    rows = "rows" if n_rows is None else f"{n_rows} rows"
    return ValueError(
        f"all {rows} have weight zero (zero costs or zero sample weights), so there is nothing to learn from. "
        "Pass at least one row with a non-zero cost and a non-zero weight."
    )


def out_of_range(exponent: float) -> ValueError:
    """Return the error about sizes that are no numbers of float64."""
    return ValueError(
        f"the weights ‖y‖^{exponent:g} of the costs leave the range of float64. Choose a smaller exponent, or "
        "scale all costs to norms nearer 1."
    )


def _as_scale(scale: Any, n_rows: int) -> FloatArray:
    scale = as_array(scale, name="scale")
    if scale.shape not in ((), (n_rows,)):
        raise ValueError(f"scale must be a number or have one entry per row, ({n_rows},); got {scale.shape}.")
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        raise ValueError("scale must be positive and finite in every row, or the direction of the costs is lost.")
    return scale
