"""The average over the steps of a training."""

from __future__ import annotations

from decidewise.kit.checks import FloatArray


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
