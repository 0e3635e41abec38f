"""Models that only look like those of PyEPO; the real ones are met in tests/peers."""

import pickle
from copy import copy

import numpy as np
import pytest

from decidewise import SolverError
from decidewise.problems import from_pyepo


class Cheapest:
    """Choose the cheapest of three."""

    modelSense, num_cost, copy = 1, 3, copy  # noqa: N815

    def setObj(self, costs):
        self.costs = costs

    def solve(self):
        return np.eye(3)[self.costs.argmin()], self.costs.min()


def test_minimal_models_work_in_both_senses():
    class Dearest(Cheapest):
        modelSense = -1  # noqa: N815

        def solve(self):
            return list(np.eye(3)[self.costs.argmax()]), self.costs.max()

    costs = [[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]]
    np.testing.assert_array_equal(from_pyepo(Cheapest()).solve(costs), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(from_pyepo(Dearest()).solve(costs), [[1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((1.0, 0.0), r"failed: its decision has the shape \(\) for 3 costs"),
        ((np.zeros(5), 0.0), r"failed: its decision has the shape \(5,\) for 3 costs"),
        ((np.zeros((1, 3)), 0.0), r"failed: its decision has the shape \(1, 3\) for 3 costs"),
        ((None, None), "failed: its decision must be an array of real numbers"),
        ((["1", "0", "0"], 0.0), "failed: its decision must be an array of real numbers"),
        (([np.nan, 0.0, 0.0], 0.0), r"returned \[nan +0\. +0\.\]"),
        (np.zeros(3), "failed: too many values to unpack"),
    ],
)
def test_an_answer_that_is_no_decision_is_an_error_of_its_row(answer, message):
    class Wrong(Cheapest):
        def solve(self):
            return answer if self.costs[0] > 1 else super().solve()

    with pytest.raises(SolverError, match=f"row 1: Wrong {message}"):
        from_pyepo(Wrong()).solve([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])


def test_what_cannot_be_pickled_says_why():
    with pytest.raises(TypeError, match="Cheapest cannot be pickled: it has no method to_spec, as PyEPO's models have"):
        pickle.dumps(from_pyepo(Cheapest()))
