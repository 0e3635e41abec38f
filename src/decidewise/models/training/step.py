"""The steps of training a linear predictor by Adam on a prepared target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass

import numpy as np

from decidewise.kit.checks import FloatArray, IndexArray, all_finite
from decidewise.losses import Loss, Target
from decidewise.losses.parts.adam import Adam
from decidewise.models.linear.link import Link, linear_predictor, respond
from decidewise.models.linear.per_item import PerItem


@dataclass
class Training:
    """The state of a training: parameters `(p + 1, d)`, the optimiser, and the data in batches.

    Parameters
    ----------
    parameters : ndarray of shape (p + 1, d)
        Changed in place; the intercepts are in the first row. With features per item, those of each item, of which some
        or all stay the same for all items, as `per_item` says.
    averages : bool
        Whether the result is the average over the steps, not the parameters after the last one.
    design : ndarray of shape (n, p + 1) or (n, d, q + 1)
        A column of ones, then the features.
    target : Target of n rows
        Replaced if the loss refreshes it.
    rng, label_rng : numpy.random.Generator
        The first is for the order of the rows and for the loss, the second for labels, as passed to `loss.prepare`.
    """

    parameters: FloatArray
    design: FloatArray
    target: Target
    loss: Loss
    _: KW_ONLY
    link: Link
    per_item: PerItem
    batch_size: int
    learning_rate: float
    averages: bool
    rng: np.random.Generator
    label_rng: np.random.Generator

    def __post_init__(self) -> None:
        self.adam = Adam(self.parameters, self.learning_rate)
        self.average = Average(self.parameters) if self.averages else None

    @property
    def result(self) -> FloatArray:
        """The parameters that training has found so far; they change in place with the next step."""
        return self.parameters if self.average is None else self.average.parameters

    def epoch(self) -> Iterator[float]:
        """Take one step per batch, with the rows in a new order; yield the mean loss so far after each."""
        order = self.rng.permutation(len(self.design))
        design, target = self.design[order], self.target[order]
        total = 0.0
        for rows in self._batches(len(order)):
            total += float(self._step(design[rows], target[rows]).sum())
            yield total / min(rows.stop, len(order))

    def refresh_is_due(self, n_epochs: int) -> bool:
        """Whether the loss refreshes its target after that many epochs."""
        every = self.loss.refresh_every
        return every is not None and n_epochs > 0 and n_epochs % every == 0

    def refresh(self) -> None:
        """Let the loss refresh the target, given the present predictions of all rows."""
        prediction = self._predict(self.parameters, self.design)
        if all_finite(prediction):  # if not, the loss of the next step is NaN, which stops training
            self.target = self.loss.refreshed(prediction, self.target, self.label_rng)

    def losses(self, parameters: FloatArray, target: Target, order: IndexArray, seed: int) -> Iterator[FloatArray]:
        """Evaluate the losses of parameters, without taking steps; yield those of one batch after the other.

        The rows are taken in the given order. The random numbers come from the seed, so that two sets of parameters are
        compared with the same numbers.
        """
        rng = np.random.default_rng(seed)
        for rows in self._batches(len(order)):
            values, _, _ = self._evaluate(parameters, self.design[order[rows]], target[order[rows]], rng)
            yield values

    def _batches(self, n_rows: int) -> Iterator[slice]:
        return (slice(first, first + self.batch_size) for first in range(0, n_rows, self.batch_size))

    def _step(self, design: FloatArray, target: Target) -> FloatArray:
        values, gradient, prediction = self._evaluate(self.parameters, design, target, self.rng)
        if gradient is None:
            return values
        if self.link == "log":
            gradient = gradient * prediction
        self.adam.step(self._of_parameters(design, gradient), len(design))
        if self.average is not None:
            self.average.add(self.parameters)
        return values

    def _predict(self, parameters: FloatArray, design: FloatArray) -> FloatArray:
        """Return predictions (b, d) for rows of the design."""
        if design.ndim == 2:
            return respond(self.link, design @ parameters)
        shared = self.per_item == "none"
        return respond(self.link, linear_predictor(design, parameters[:, 0] if shared else parameters.T, 0.0))

    def _of_parameters(self, design: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient in the parameters (p + 1, d), given that in the linear predictor (b, d).

        The gradient of a parameter that items share is the sum over items. It is repeated for each item, so that all
        items take the same steps.
        """
        if design.ndim == 2:
            return design.T @ gradient
        if self.per_item == "none":
            total = gradient.ravel() @ design.reshape(-1, design.shape[2])
            return np.repeat(total[:, None], gradient.shape[1], axis=1)
        result = np.einsum("njk,nj->kj", design, gradient)
        if self.per_item == "intercept":
            result[1:] = result[1:].sum(axis=1, keepdims=True)
        return result

    def _evaluate(
        self, parameters: FloatArray, design: FloatArray, target: Target, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray | None, FloatArray]:
        """Return the losses (b,), their gradient (b, d) in the prediction, and the prediction (b, d).

        If the prediction is not finite, the losses are NaN and the gradient is None.
        """
        prediction = self._predict(parameters, design)
        if not all_finite(prediction):
            return np.full(len(design), np.nan), None, prediction
        return *self.loss.value_and_grad_unchecked(prediction, target, rng), prediction


class Average:
    """The weighted mean of the parameters after each step, in which the weights of old steps decay as a power.

    Steps of a constant size end in a cloud around the minimum, and the mean is near its centre. After t steps the last
    one has the weight 9 / (t + 8), so that the first ones, still on the way, soon count for nothing, however many steps
    there will be.

    Parameters
    ----------
    start : ndarray
        The parameters before the first step, which have no weight.

    References
    ----------
    Shamir and Zhang, "Stochastic gradient descent for non-smooth optimization", ICML 2013.
    """

    _DECAY = 8

    def __init__(self, start: FloatArray) -> None:
        self.parameters = start.copy()
        self.steps = 0

    def add(self, parameters: FloatArray) -> None:
        """Take in the parameters after one more step."""
        self.steps += 1
        self.parameters += (self._DECAY + 1) / (self.steps + self._DECAY) * (parameters - self.parameters)
