import numpy as np
import pytest

from decidewise.losses import Cmap
from decidewise.problems import ShortestPath, TopK


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_value_is_the_maximum_over_the_pool(rng):
    problem = ShortestPath(3, 3)
    prediction, costs = rng.normal(size=(2, 30, problem.n_costs))
    optimal = problem.solve(costs)

    values, gradient = Cmap().value_and_grad(prediction, Cmap().prepare(problem, costs), rng)

    for i in range(30):
        margins = [prediction[i] @ (optimal[i] - v) for v in optimal]
        np.testing.assert_allclose(values[i], max(margins), atol=1e-14)
        np.testing.assert_array_equal(gradient[i], optimal[i] - optimal[np.argmax(margins)])


def test_with_every_vertex_in_the_pool_it_is_the_suboptimality_under_the_prediction(rng):
    problem = TopK(5, 2)
    prediction, costs = rng.normal(size=(2, 500, 5))
    target = Cmap().prepare(problem, costs)

    values, _ = Cmap().value_and_grad(prediction, target, rng)

    assert len(target.pool) == 10
    best = np.sort(prediction, axis=1)[:, -2:].sum(axis=1)
    np.testing.assert_allclose(values, best - (prediction * problem.solve(costs)).sum(axis=1), atol=1e-14)
    np.testing.assert_allclose(Cmap().value_and_grad(costs, target, rng)[0], 0.0, atol=1e-14)


def test_it_lies_above_its_tangents(rng):
    costs, here, there = rng.normal(size=(3, 200, 12))
    target = Cmap().prepare(ShortestPath(3, 3), costs)

    values, gradient = Cmap().value_and_grad(here, target, rng)
    elsewhere, _ = Cmap().value_and_grad(there, target, rng)

    assert np.all(values >= 0)
    assert np.all(elsewhere >= values + (gradient * (there - here)).sum(axis=1) - 1e-12)
