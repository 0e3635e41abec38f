"""Adam with its usual constants (Kingma & Ba, 2015), as one compiled pass: for models and for learnt losses."""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.kernels import kernel


class Adam:
    """Moves a vector or a matrix of parameters against its gradients, in place."""

    def __init__(self, parameters: FloatArray, learning_rate: float) -> None:
        self.parameters = np.atleast_2d(parameters)
        self.learning_rate = learning_rate
        self.mean = np.zeros_like(self.parameters)
        self.square = np.zeros_like(self.parameters)
        self.steps = 0

    def step(self, gradient: FloatArray, n_rows: int) -> None:
        """Take one step along the mean gradient; `gradient` is the sum over `n_rows` rows."""
        self.steps += 1
        gradient = np.atleast_2d(gradient)
        _step(self.parameters, gradient, n_rows, self.mean, self.square, self.steps, self.learning_rate)


@kernel(error_model="numpy")  # a check for division by zero would prevent vector instructions
def _step(parameters, gradient, n_rows, mean, square, step, rate):  # type: ignore[no-untyped-def]
    beta1, beta2, eps = 0.9, 0.999, 1e-8
    size = rate / (1.0 - beta1**step)
    correction = 1.0 / np.sqrt(1.0 - beta2**step)
    for i in range(parameters.shape[0]):
        for j in range(parameters.shape[1]):
            g = gradient[i, j] / n_rows
            mean[i, j] = beta1 * mean[i, j] + (1.0 - beta1) * g
            square[i, j] = beta2 * square[i, j] + (1.0 - beta2) * g * g
            parameters[i, j] -= size * mean[i, j] / (np.sqrt(square[i, j]) * correction + eps)
