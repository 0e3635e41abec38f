"""A small network fitted by Adam: what learnt losses approximate regrets with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.parts.adam import Adam

_LAYERS, _BATCH = 3, 64


@dataclass(frozen=True)
class SmallNetwork:
    """The network `softplus(W₃ tanh(W₂ tanh(W₁ x + b₁) + b₂) + b₃)`, whose k outputs are positive and smooth.

    Attributes
    ----------
    parameters : tuple of ndarray
        `W₁` (p, h), `b₁` (h,), `W₂` (h, h), `b₂` (h,), `W₃` (h, k) and `b₃` (k,).
    rising : bool
        Whether the weights are kept at zero or above, so that no output falls where an input grows.
    """

    parameters: tuple[FloatArray, ...]
    rising: bool = False

    @classmethod
    def drawn(
        cls, n_inputs: int, n_hidden: int, rng: np.random.Generator, *, n_outputs: int = 1, rising: bool = False
    ) -> SmallNetwork:
        """Return a network with random weights, of a size that keeps the size of what passes through.

        A rising one expects inputs that are one on average.
        """
        sizes = (n_inputs, n_hidden, n_hidden, n_outputs)
        parameters: list[FloatArray] = []
        for inputs, outputs in pairwise(sizes):
            weights, shifts = rng.normal(scale=inputs**-0.5, size=(inputs, outputs)), np.zeros(outputs)
            if rising:
                weights = np.abs(weights) * inputs**-0.5  # they do not cancel: their sum must stay of size one
                shifts = shifts if parameters else -weights.sum(axis=0)
            parameters += [weights, shifts]
        return cls(tuple(parameters), rising)

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the outputs (n, k) for inputs (n, p)."""
        return _softplus(self._forward(X)[-1])

    def value_and_slope(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of the outputs (n,) for inputs (n, p), and their gradients in the inputs (n, p)."""
        signals = self._forward(X)
        _, slope = self._backward(signals, np.ones_like(signals[-1]))
        return _softplus(signals[-1]).sum(axis=1), slope

    def fitted(
        self,
        X: FloatArray,
        y: FloatArray,
        rng: np.random.Generator,
        *,
        n_steps: int,
        factors: FloatArray | None = None,
        learning_rate: float = 1e-3,
    ) -> SmallNetwork:
        """Return the network after steps of Adam on the mean squared error at inputs (n, p) and targets (n,).

        What should equal the target is the sum of the outputs, each times its factor (n, k), by default 1.
        """
        factors = np.ones((len(X), 1)) if factors is None else factors
        network = replace(self, parameters=tuple(parameter.copy() for parameter in self.parameters))
        optimizers = [Adam(parameter, learning_rate) for parameter in network.parameters]
        for _ in range(n_steps):
            rows = rng.integers(len(X), size=min(_BATCH, len(X)))
            signals = network._forward(X[rows])
            error = (factors[rows] * _softplus(signals[-1])).sum(axis=1) - y[rows]
            gradients, _ = network._backward(signals, factors[rows] * (2 * error)[:, None])
            for k, gradient in enumerate(gradients):
                optimizers[k].step(gradient, len(rows))
                if self.rising and k % 2 == 0:
                    np.maximum(network.parameters[k], 0, out=network.parameters[k])
        return network

    def _forward(self, X: FloatArray) -> list[FloatArray]:
        """Return the inputs of each layer, and the output of the last before `softplus`."""
        signals = [X]
        for k in range(_LAYERS):
            linear = signals[-1] @ self.parameters[2 * k] + self.parameters[2 * k + 1]
            signals.append(linear if k == _LAYERS - 1 else np.tanh(linear))
        return signals

    def _backward(self, signals: list[FloatArray], upstream: FloatArray) -> tuple[list[FloatArray], FloatArray]:
        """Return the gradients in the parameters and in the inputs, given that in the outputs (n, k)."""
        gradient = upstream / (1 + np.exp(-np.clip(signals[-1], -700, 700)))
        gradients: list[FloatArray] = []
        for k in reversed(range(_LAYERS)):
            gradients = [signals[k].T @ gradient, gradient.sum(axis=0), *gradients]
            gradient = gradient @ self.parameters[2 * k].T
            if k > 0:
                gradient = gradient * (1 - signals[k] ** 2)
        return gradients, gradient


def _softplus(x: FloatArray) -> FloatArray:
    return np.logaddexp(0.0, x)
