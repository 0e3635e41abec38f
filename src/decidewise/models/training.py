"""The steps of a training: a linear predictor, a prepared target, and Adam."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from decidewise.checks import FloatArray, all_finite
from decidewise.losses import Loss, Target
from decidewise.models.adam import Adam

Link = Literal["identity", "log"]

# exp(40) is 2e17: further out a log-linear prediction has no use, and its gradient would overflow.
_LARGEST_EXPONENT = 40.0


def respond(link: Link, predictor: FloatArray) -> FloatArray:
    """Return the prediction of a linear predictor, element by element."""
    if link == "identity":
        return predictor
    return np.exp(np.clip(predictor, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))


class Training:
    """The state of a training: parameters `(p + 1, d)`, the optimiser, and the data in batches.

    Parameters
    ----------
    parameters : ndarray of shape (p + 1, d)
        Moved in place; the intercepts are in the first row.
    design : ndarray of shape (n, p + 1)
        The features behind a column of ones.
    target : Target of n rows
    """

    def __init__(
        self,
        parameters: FloatArray,
        design: FloatArray,
        target: Target,
        loss: Loss,
        *,
        link: Link,
        batch_size: int,
        learning_rate: float,
        rng: np.random.Generator,
    ) -> None:
        self.parameters = parameters
        self.design, self.target, self.loss = design, target, loss
        self.link, self.batch_size, self.rng = link, batch_size, rng
        self.adam = Adam(parameters, learning_rate)

    def epoch(self) -> Iterator[float]:
        """Take one step a batch, in a new order; yield the mean loss so far after each."""
        order = self.rng.permutation(len(self.design))
        design, target = self.design[order], self.target[order]
        total = 0.0
        for first in range(0, len(order), self.batch_size):
            rows = slice(first, first + self.batch_size)
            total += float(self._step(design[rows], target[rows]).sum())
            yield total / min(first + self.batch_size, len(order))

    def _step(self, design: FloatArray, target: Target) -> FloatArray:
        prediction = respond(self.link, design @ self.parameters)
        if not all_finite(prediction):
            return np.full(len(design), np.nan)
        values, gradient = self.loss.value_and_grad_unchecked(prediction, target, self.rng)
        if self.link == "log":
            gradient = gradient * prediction
        self.adam.step(design.T @ gradient, len(design))
        return values
