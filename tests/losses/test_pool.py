import numpy as np
import pytest

from decidewise.losses import Nce
from decidewise.losses.parts.pool import Pool
from decidewise.problems import Ball, ShortestPath, TopK


@pytest.mark.parametrize("problem", [ShortestPath(3, 3), TopK(5, 2), Ball(3)], ids=lambda p: type(p).__name__)
def test_the_pool_is_the_set_of_optimal_decisions(problem):
    costs = np.random.default_rng(0).normal(size=(40, problem.n_costs))

    target = Nce().prepare(problem, costs)

    np.testing.assert_array_equal(target.decisions, problem.solve(costs))
    assert len(target.pool) == len({decision.tobytes() for decision in target.decisions})
    assert {decision.tobytes() for decision in target.pool.decisions} == {row.tobytes() for row in target.decisions}


def test_batches_share_one_pool():
    target = Nce().prepare(TopK(5, 2), np.random.default_rng(0).normal(size=(40, 5)))

    batch = target[np.array([3, 1])]

    assert batch.pool is target.pool
    assert len(batch) == 2


def test_mean_and_objectives():
    decisions = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    pool = Pool(decisions)

    np.testing.assert_allclose(pool.mean, [2 / 3, 2 / 3])
    np.testing.assert_allclose(pool.objectives(np.array([[2.0, 3.0]])), [[2.0, 3.0, 5.0]])
