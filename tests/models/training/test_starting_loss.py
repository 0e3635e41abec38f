"""The result of training is drawn back to its start as far as the losses of the rows do not speak against it."""

import numpy as np
import pytest

from decidewise.models.training.loop import Budget, StartingLoss
from decidewise.problems import Ball


class Line:
    """A training of one parameter, whose losses at `x` are `slope * (1 - x)` plus noise of the rows times `x - 1`."""

    def __init__(self, slope, noise):
        self.slope, self.noise, self.target = slope, noise, None
        self.result, self.design = np.zeros((1, 1)), np.ones((400, 1))
        self.asked = []

    def losses(self, parameters, target, order, seed):
        self.asked.append(float(parameters[0, 0]))
        noise = np.random.default_rng(7).normal(size=400)
        noise = (noise - noise.mean()) / noise.std()
        yield (1 - self.asked[-1]) * (self.slope + self.noise * noise)[order]


def drawn_back(training):
    budget = Budget(Ball(1), None, np.inf)
    start = StartingLoss(training, budget, np.random.default_rng(0), draw_back=True)
    result = np.ones((1, 1))
    kept = start.drawn_back(result, start.values_at(result))
    assert (budget.problem.limit, budget.deadline) == (budget.max_solves, np.inf)
    return float(kept[0, 0])


@pytest.mark.parametrize(
    ("standard_errors", "share", "asked"),
    # The difference at any point of this line has the same standard errors, so it is proven everywhere or nowhere.
    [(2.9, 0.25, [0, 1, 0.5, 0.25]), (3.1, 1.0, [0, 1, 0.5, 0.75])],
)
def test_three_standard_errors_keep_the_result(standard_errors, share, asked):
    training = Line(standard_errors / np.sqrt(399), 1.0)
    assert drawn_back(training) == share
    assert training.asked == asked


def test_what_lies_between_is_found():
    for higher, share in [({0.25}, 0.5), ({0.25, 0.5}, 0.75), (set(), 0.25), ({0.25, 0.5, 0.75}, 1.0)]:

        class Steps(Line):
            def losses(self, parameters, target, order, seed, higher=higher):
                yield np.full(len(order), 1.0 * (float(parameters[0, 0]) in higher)) + 1e-9 * (order % 2)

        assert drawn_back(Steps(0.0, 0.0)) == share
