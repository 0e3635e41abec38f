"""Adam with its usual constants (Kingma & Ba, 2015), as one compiled pass, and the average over its steps."""

from __future__ import annotations

import numpy as np

from decidewise.checks import FloatArray
from decidewise.runtime.kernels import kernel


class Adam:
    """Moves an array of parameters against its gradients, in place."""

    def __init__(self, parameters: FloatArray, learning_rate: float) -> None:
        self.parameters = parameters
        self.learning_rate = learning_rate
        self.mean = np.zeros_like(parameters)
        self.square = np.zeros_like(parameters)
        self.steps = 0

    def step(self, gradient: FloatArray, n_rows: int) -> None:
        """Take one step along the mean gradient; `gradient` is the sum over `n_rows` rows."""
        self.steps += 1
        _step(self.parameters, gradient, n_rows, self.mean, self.square, self.steps, self.learning_rate)


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


@kernel(error_model="numpy")  # a check for division by zero would prevent vector instructions
def _step(  # pragma: no cover - compiled
    parameters: FloatArray,
    gradient: FloatArray,
    n_rows: int,
    mean: FloatArray,
    square: FloatArray,
    step: int,
    rate: float,
) -> None:
    beta1, beta2, eps = 0.9, 0.999, 1e-8
    size = rate / (1.0 - beta1**step)
    correction = 1.0 / np.sqrt(1.0 - beta2**step)
    for i in range(parameters.shape[0]):
        for j in range(parameters.shape[1]):
            g = gradient[i, j] / n_rows
            mean[i, j] = beta1 * mean[i, j] + (1.0 - beta1) * g
            square[i, j] = beta2 * square[i, j] + (1.0 - beta2) * g * g
            parameters[i, j] -= size * mean[i, j] / (np.sqrt(square[i, j]) * correction + eps)
