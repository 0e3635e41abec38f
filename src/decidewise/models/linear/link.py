"""The link between a linear predictor and a prediction: the identity, or the logarithm for positive costs."""

from __future__ import annotations

from typing import Literal

import numpy as np

from decidewise.kit.checks import FloatArray

Link = Literal["identity", "log"]

#: Keeps predictions, and sums of thousands of them, positive and finite: the largest float is about exp(709).
LARGEST_EXPONENT = 700.0
# exp(700) is 1e304. With means closer to it than this, the predictions of some rows would be clipped.
_SMALLEST_MEAN, _LARGEST_MEAN = 1e-302, 1e302


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
