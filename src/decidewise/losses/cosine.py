"""The norm-weighted cosine: WISE without the length of the prediction.

`‖c‖ (1 - cos(p, c))` is the part of WISE that depends on the direction of the prediction alone: with the best length
for each direction, WISE is `‖c‖ (1 - cos²(p, c))` where the cosine is positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.scaling import norms
from decidewise.losses.base import Loss, namespace_of
from decidewise.losses.parts.target import ValueAndGrad, row_dot
from decidewise.losses.wise import WiseTarget
from decidewise.measure import polar


def cosine(prediction: Any, costs: Any) -> Any:
    """Return `‖c‖ (1 - cos(p, c))` of each row; for torch and jax arrays it is differentiable.

    Parameters
    ----------
    prediction, costs : arrays of shape (..., d)
        Both from NumPy, both from torch or both from jax. A row in which either is zero has the value `‖c‖`.

    Returns
    -------
    values : array of shape (...)

    Examples
    --------
    >>> cosine(np.array([[30.0, 40.0], [-3.0, -4.0]]), np.array([[3.0, 4.0], [3.0, 4.0]]))
    array([ 0., 10.])
    """
    xp = namespace_of(prediction, costs)
    norm, direction = polar(costs, xp)
    largest = xp.max(xp.abs(prediction), axis=-1, keepdims=True)
    is_zero = largest == 0
    scaled = prediction / xp.where(is_zero, xp.ones_like(largest), largest)
    squares = xp.sum(scaled * scaled, axis=-1, keepdims=True)
    # A square root of zero would have no gradient, not even one times zero.
    length = xp.sqrt(xp.where(is_zero, xp.ones_like(squares), squares))
    predicted = xp.where(is_zero, xp.zeros_like(scaled), scaled / length)
    return norm[..., 0] * (1 - xp.sum(predicted * direction, axis=-1))


@dataclass(frozen=True)
class Cosine(Loss):
    """The loss `‖c‖ (1 - cos(p, c))`; it needs no solver.

    Notes
    -----
    The gradient is `‖c‖ (cos(p, c) p̂ - ĉ) / ‖p‖`, and 0 at `p = 0`. For a given `x` the expected value is least where
    `p` has the direction of `E[c | x]`, so the loss is Fisher consistent. It is not convex in `p`, and predictions have
    any length: train with a small rate, or start at WISE.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Cosine()
    >>> target = loss.prepare(TopK(2, 1), [[3.0, 4.0]])
    >>> loss.value_and_grad([[2.0, 0.0]], target, np.random.default_rng(0))
    (array([2.]), array([[-0., -2.]]))
    """

    gradient = "subgradient"
    target_type = WiseTarget
    solves = False
    directions = True
    native = staticmethod(cosine)

    def evaluate(self, prediction: FloatArray, target: WiseTarget, rng: np.random.Generator) -> ValueAndGrad:
        length = norms(prediction)[:, None]
        predicted = np.divide(prediction, length, out=np.zeros_like(prediction), where=length > 0)
        agreement = row_dot(predicted, target.directions)
        slope = agreement[:, None] * predicted - target.directions
        weights = np.divide(target.norms, length, out=np.zeros_like(length), where=length > 0)
        return target.norms[:, 0] * (1 - agreement), weights * slope
