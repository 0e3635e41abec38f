"""Compare the result of training with its start, by their losses over the training rows."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from decidewise.kit.batches import time_limit
from decidewise.kit.checks import FloatArray
from decidewise.models.training.budget import Budget
from decidewise.models.training.step import Training

# The share of the remaining solver calls and seconds that one evaluation of the loss may take.
_SHARE_OF_ONE = 0.05
# A loss is proven to be higher if the mean difference exceeds this many of its standard errors. One or two do not
# prove much here: the result of training was fitted to these rows.
_STANDARD_ERRORS = 3.0
_HALF, _QUARTER = 0.5, 0.25


class StartingLoss:
    """The loss of the starting parameters over the training rows, to compare with that of the last ones.

    All losses use the target at the start of training, even if the loss refreshes its target later. If solver calls or
    seconds are limited, evaluating the start takes about a twentieth of those left at most, on a random part of the
    rows if necessary, and the same amount is reserved for each evaluation at the end.

    Parameters
    ----------
    draw_back : bool
        Whether `drawn_back` will be called, for which two more evaluations are reserved.
    """

    def __init__(self, training: Training, budget: Budget, rng: np.random.Generator, *, draw_back: bool) -> None:
        self.training, self.budget, self.seed = training, budget, int(rng.integers(2**32))
        self.start = training.result.copy()
        self.target = training.target
        self.order = rng.permutation(len(training.design))
        calls, begin = budget.n_solves, perf_counter()
        last_call = calls + _SHARE_OF_ONE * (budget.max_solves - calls)
        last_second = begin + _SHARE_OF_ONE * (budget.deadline - begin)
        values = []
        for some in training.losses(self.start, self.target, self.order, self.seed):
            values.append(some)
            if budget.n_solves > last_call or perf_counter() > last_second:
                break
        self.values = np.concatenate(values)
        self.loss = float(self.values.mean())
        self.order = self.order[: len(self.values)]
        n_evaluations = 3 if draw_back else 1
        self._calls, self._seconds = budget.n_solves - calls, perf_counter() - begin
        budget.set_aside(n_evaluations * self._calls, n_evaluations * self._seconds)

    def values_at(self, parameters: FloatArray) -> FloatArray:
        """Return the losses of other parameters, on the same rows with the same random numbers."""
        self.budget.set_aside(-self._calls, -self._seconds)
        with time_limit(self.budget.deadline):
            return np.concatenate(list(self.training.losses(parameters, self.target, self.order, self.seed)))

    def drawn_back(self, result: FloatArray, values: FloatArray) -> FloatArray:
        """Return parameters between the start and the result of training, which has these losses.

        A loss that sees decisions has more variance than the fit at the start, so that its minimum on few rows is
        noisy. Of the points a quarter, a half and three quarters of the way, and the result itself, this is the nearest
        to the start whose mean loss is not proven to be higher than that of the result. With many rows, a difference
        that matters is proven, and the result stays as it is.
        """

        def at(share: float) -> FloatArray:
            return self.start + share * (result - self.start)

        share = 1 - _QUARTER if _is_higher(self.values_at(at(_HALF)), values) else _QUARTER
        if _is_higher(self.values_at(at(share)), values):
            share += _QUARTER
        return at(share)


def _is_higher(values: FloatArray, others: FloatArray) -> bool:
    """Whether some losses are proven to be higher than others of the same rows, by the mean of the differences."""
    differences = values - others
    error = float(differences.std()) / np.sqrt(max(1, len(differences) - 1))
    return bool(differences.mean() > _STANDARD_ERRORS * error)
