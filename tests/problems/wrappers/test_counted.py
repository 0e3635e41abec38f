import pickle
from time import perf_counter

import numpy as np
import pytest

from decidewise.kit.batches import time_limit
from decidewise.kit.errors import SolveLimitReached, TimeLimitReached
from decidewise.problems import Ball, CountedProblem, ShortestPath, TopK


def test_rows_are_counted_and_answers_unchanged():
    inner = TopK(5, 2)
    problem = CountedProblem(inner)
    costs = np.random.default_rng(0).normal(size=(7, 5))

    np.testing.assert_array_equal(problem.solve(costs), inner.solve(costs))
    problem.solve(costs[0])

    assert problem.n_solves == 8
    assert problem.seconds > 0
    assert problem.problem is inner


def test_a_failing_batch_counts(monkeypatch):
    inner = TopK(5, 2)
    problem = CountedProblem(inner)
    monkeypatch.setattr(inner, "minimize", lambda costs: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        problem.solve(np.ones((3, 5)))

    assert problem.n_solves == 3


def test_a_bad_batch_does_not():
    problem = CountedProblem(TopK(5, 2))

    with pytest.raises(ValueError, match="CountedProblem needs 5 columns"):
        problem.solve(np.ones((3, 4)))

    assert problem.n_solves == 0


def test_no_row_is_solved_beyond_a_limit_of_rows_or_of_time():
    problem = CountedProblem(TopK(5, 2))
    problem.limit = 4
    problem.solve(np.ones((3, 5)))

    with pytest.raises(SolveLimitReached, match="2 rows more than 3 exceed the limit of 4"):
        problem.solve(np.ones((2, 5)))
    with time_limit(perf_counter() - 1), pytest.raises(TimeLimitReached):
        problem.solve(np.ones((1, 5)))

    assert problem.n_solves == 3
    problem.solve(np.ones((1, 5)))
    assert problem.n_solves == 4


@pytest.mark.parametrize("inner", [ShortestPath(3, 3), TopK(5, 2), Ball(3)], ids=lambda p: type(p).__name__)
def test_it_describes_the_problem_inside(inner):
    problem = CountedProblem(inner)

    assert (problem.sense, problem.n_costs, problem.is_integer) == (inner.sense, inner.n_costs, inner.is_integer)
    assert (problem.polyhedron is None) == (inner.polyhedron is None)


def test_it_can_be_pickled():
    problem = CountedProblem(TopK(5, 2))
    problem.solve(np.ones((3, 5)))

    twin = pickle.loads(pickle.dumps(problem))  # noqa: S301
    twin.solve(np.ones(5))

    assert (twin.n_solves, problem.n_solves) == (4, 3)
