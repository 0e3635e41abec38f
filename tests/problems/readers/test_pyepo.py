"""Models that only look like those of PyEPO; the real ones are met in tests/peers."""

import pickle
from copy import copy
from time import sleep

import numpy as np
import pytest
from joblib import parallel_config

from decidewise import SolverError
from decidewise.problems import ParallelProblem, from_pyepo


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
        ((1.0, 0.0), r"failed: its decision has the shape \(\) for costs of shape \(3,\)"),
        ((np.zeros(5), 0.0), r"failed: its decision has the shape \(5,\) for costs of shape \(3,\)"),
        ((np.zeros((1, 3)), 0.0), r"failed: its decision has the shape \(1, 3\) for costs of shape \(3,\)"),
        ((None, None), "failed: its decision must be an array of real numbers"),
        ((["1", "0", "0"], 0.0), "failed: its decision must be an array of real numbers"),
        (([np.nan, 0.0, 0.0], 0.0), r"failed: its decision is \[nan +0\. +0\.\], which is not finite"),
        (np.zeros(3), "failed: too many values to unpack"),
    ],
)
def test_an_answer_that_is_no_decision_is_an_error_of_its_row(answer, message):
    class Wrong(Cheapest):
        def solve(self):
            return answer if self.costs[0] > 1 else super().solve()

    with pytest.raises(SolverError, match=f"row 1: Wrong {message}"):
        from_pyepo(Wrong()).solve([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])


def test_threads_do_not_take_the_costs_of_each_other():
    class Slow(Cheapest):
        def setObj(self, costs):
            super().setObj(costs)
            sleep(0.002)

    costs = np.random.default_rng(0).uniform(size=(40, 3))
    with parallel_config(backend="threading"):
        decisions = ParallelProblem(from_pyepo(Slow()), n_jobs=2, rows_per_job=5).solve(costs)
    np.testing.assert_array_equal(decisions, from_pyepo(Cheapest()).solve(costs))


def test_a_row_that_fails_leaves_the_others():
    class Picky(Cheapest):
        def solve(self):
            if self.costs[0] > 2:
                raise RuntimeError("no")
            return super().solve()

    problem = from_pyepo(Picky(), on_error="nan")
    np.testing.assert_array_equal(problem.solve([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]]), [[np.nan] * 3, [1, 0, 0]])
    with pytest.raises(SolverError, match="row 0: Picky failed: no"):
        from_pyepo(Picky()).solve([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    with pytest.raises(ValueError, match="on_error must be"):
        from_pyepo(Picky(), on_error="ignore")


def test_what_cannot_be_pickled_says_why():
    with pytest.raises(TypeError, match="Cheapest cannot be pickled: it has no method to_spec, as PyEPO's models have"):
        pickle.dumps(from_pyepo(Cheapest()))
