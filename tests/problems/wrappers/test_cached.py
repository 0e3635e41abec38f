import pickle

import numpy as np
import pytest

from decidewise.kit.errors import SolverError
from decidewise.problems import CachedProblem, CountedProblem, Problem, ShortestPath, TopK


@pytest.fixture
def costs():
    return np.random.default_rng(1).normal(size=(400, 12))


class Refuses(Problem):
    """Solves positive costs only."""

    n_costs = 2

    def minimize(self, costs):
        for row in np.flatnonzero((costs <= 0).any(axis=1)):
            raise SolverError("not positive", row=int(row))
        return np.zeros_like(costs)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_with_ratio_one_it_is_the_problem_inside(costs, sense):
    inner = ShortestPath(3, 3, sense=sense)
    problem = CachedProblem(inner, 1.0, 0)

    for _ in range(3):
        np.testing.assert_array_equal(problem.solve(costs), inner.solve(costs))


@pytest.mark.parametrize("sense", ["min", "max"])
def test_with_ratio_zero_the_first_batch_is_solved_and_the_rest_looked_up(costs, sense):
    counted = CountedProblem(ShortestPath(3, 3, sense=sense))
    problem = CachedProblem(counted, 0.0, 0)
    first = problem.solve(costs[:3])
    pool = np.array(sorted({tuple(decision) for decision in first}))

    answers = problem.solve(costs)

    assert counted.n_solves == 3
    np.testing.assert_array_equal(first, counted.problem.solve(costs[:3]))
    scores = costs @ pool.T
    np.testing.assert_array_equal(answers, pool[scores.argmin(axis=1) if sense == "min" else scores.argmax(axis=1)])


def test_each_row_is_drawn(costs):
    """Two batches in three would be all or nothing if the draw were one a batch."""
    counted = CountedProblem(TopK(12, 3))
    problem = CachedProblem(counted, 0.3, 0)
    problem.solve(costs[0])

    solved = []
    for _ in range(50):
        before = counted.n_solves
        problem.solve(costs[:100])
        solved.append(counted.n_solves - before)

    assert np.mean(solved) == pytest.approx(30, abs=3)
    assert 1 < np.std(solved) < 10


def test_every_answer_is_solved_or_the_best_known(costs):
    inner = ShortestPath(3, 3)
    problem = CachedProblem(inner, 0.3, 0)
    for batch in np.split(costs, 20):
        answers = problem.solve(batch)
        values, best_known = (batch * answers).sum(axis=1), (batch @ problem.pool.T).min(axis=1)
        np.testing.assert_allclose(values, best_known, atol=1e-12)


def test_the_pool_holds_each_decision_once(costs):
    problem = CachedProblem(ShortestPath(3, 3), 0.5, 0)
    assert problem.pool.shape == (0, 12)

    for batch in np.split(costs, 20):
        problem.solve(batch)

    assert len(problem.pool) == len(np.unique(problem.pool, axis=0)) == 6  # the paths of a 3 by 3 grid
    with pytest.raises(ValueError, match="read-only"):
        problem.pool[0] = 0.0


def test_the_same_seed_gives_the_same_answers(costs):
    problems = [CachedProblem(TopK(12, 5), 0.2, rng) for rng in (3, 3, np.random.default_rng(3), 4)]
    answers = [np.vstack([problem.solve(batch) for batch in np.split(costs, 20)]) for problem in problems]

    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
    assert (answers[0] != answers[3]).any()


def test_a_pickle_goes_on_where_it_was(costs):
    problem = CachedProblem(TopK(12, 5), 0.2, 3)
    problem.solve(costs[:20])
    twin = pickle.loads(pickle.dumps(problem))  # noqa: S301

    np.testing.assert_array_equal(twin.pool, problem.pool)
    for batch in np.split(costs, 20):
        np.testing.assert_array_equal(twin.solve(batch), problem.solve(batch))


def test_an_error_names_the_row_of_the_batch():
    problem = CachedProblem(Refuses(), 0.5, 0)
    problem.solve([1.0, 1.0])
    costs = np.ones((100, 2))
    costs[60:] = -1.0

    with pytest.raises(SolverError, match="not positive") as error:
        problem.solve(costs)

    drawn = np.random.default_rng(0).random(101)[1:] < 0.5
    assert error.value.row == 60 + np.flatnonzero(drawn[60:])[0]


@pytest.mark.parametrize("solve_ratio", [-0.1, 1.1, np.nan])
def test_the_ratio_is_checked(solve_ratio):
    with pytest.raises(ValueError, match="solve_ratio must be a number at least 0 and at most 1"):
        CachedProblem(TopK(3, 1), solve_ratio, 0)
