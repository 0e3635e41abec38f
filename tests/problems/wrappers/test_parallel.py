import pickle

import joblib
import numpy as np
import pytest

from decidewise.kit.errors import SolverError
from decidewise.problems import CachedProblem, CountedProblem, ParallelProblem, Problem, ShortestPath, TopK


@pytest.fixture
def threads():
    with joblib.parallel_config(backend="threading"):
        yield


class Records(Problem):
    """Takes the cheapest item, refuses rows that start with -1, and notes the size of each batch."""

    n_costs = 3

    def __init__(self):
        super().__init__()
        self.batches = []

    def minimize(self, costs):
        self.batches.append(len(costs))
        for row in np.flatnonzero(costs[:, 0] == -1):
            raise SolverError("refused", row=int(row))
        return np.eye(3)[costs.argmin(axis=1)]


@pytest.mark.parametrize("sense", ["min", "max"])
def test_processes_give_the_same_answers_in_the_same_order(sense):
    inner = ShortestPath(4, 4, sense=sense)
    costs = np.random.default_rng(0).normal(size=(101, inner.n_costs))

    np.testing.assert_array_equal(ParallelProblem(inner, n_jobs=2).solve(costs), inner.solve(costs))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("n_rows", "n_jobs", "batches"), [(7, 4, [7]), (15, 4, [15]), (16, 4, [8, 8]), (24, 2, [12, 12]), (50, 4, 4)]
)
def test_blocks_are_large_enough(n_rows, n_jobs, batches):
    inner = Records()
    costs = np.random.default_rng(0).uniform(size=(n_rows, 3))

    decisions = ParallelProblem(inner, n_jobs, rows_per_job=8).solve(costs)

    np.testing.assert_array_equal(decisions, np.eye(3)[costs.argmin(axis=1)])
    assert sum(inner.batches) == n_rows
    assert inner.batches == batches or len(inner.batches) == batches


@pytest.mark.usefixtures("threads")
def test_an_error_names_the_row_of_the_batch():
    costs = np.ones((40, 3))
    costs[33, 0] = -1

    with pytest.raises(SolverError, match="row 33: refused") as error:
        ParallelProblem(Records(), 2).solve(costs)

    assert error.value.row == 33


def test_a_solver_error_comes_back_from_a_process_whole():
    error = pickle.loads(pickle.dumps(SolverError("infeasible", row=3)))  # noqa: S301

    assert str(error) == "row 3: infeasible"
    assert error.row == 3
    assert str(error.at(7)) == "row 7: infeasible"


@pytest.mark.parametrize("inner", [CountedProblem(TopK(3, 1)), CachedProblem(TopK(3, 1), 0.5, 0)])
def test_state_goes_outside(inner):
    name = type(inner).__name__
    with pytest.raises(
        ValueError, match=rf"{name} keeps state, which workers would lose\. Write {name}\(ParallelProblem"
    ):
        ParallelProblem(inner, 2)

    counted = CountedProblem(ParallelProblem(TopK(3, 1), 2))
    counted.solve(np.ones((3, 3)))
    assert counted.n_solves == 3


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, True])
def test_n_jobs_is_checked(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be"):
        ParallelProblem(TopK(3, 1), n_jobs)
