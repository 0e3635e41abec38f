import numpy as np
import pytest

from decidewise.evaluate import decision_regret
from decidewise.losses import SpoPlus
from decidewise.problems import Ball, ShortestPath, TopK

PROBLEMS = [ShortestPath(3, 3), TopK(6, 2), TopK(5, 1, sense="min"), Ball(4)]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def spo_plus(problem, prediction, costs):
    loss = SpoPlus()
    return loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))


def test_on_the_simplex_it_is_a_difference_of_minima(rng):
    costs, prediction = rng.normal(size=(2, 50, 5))
    best = costs.argmin(axis=1)
    expected = 2 * prediction[range(50), best] - costs.min(axis=1) - (2 * prediction - costs).min(axis=1)

    values, gradient = spo_plus(TopK(5, 1, sense="min"), prediction, costs)

    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_array_equal(gradient, 2 * (np.eye(5)[best] - np.eye(5)[(2 * prediction - costs).argmin(axis=1)]))


def test_on_the_unit_ball_it_is_a_difference_of_norms(rng):
    costs, prediction = rng.normal(size=(2, 50, 4))
    norms = np.linalg.norm(costs, axis=1)
    along = np.einsum("ij,ij->i", prediction, costs) / norms
    expected = np.linalg.norm(2 * prediction - costs, axis=1) + norms - 2 * along

    values, _ = spo_plus(Ball(4), prediction, costs)

    np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_it_bounds_the_regret_and_vanishes_at_the_truth(problem, rng):
    costs, prediction = rng.normal(size=(2, 200, problem.n_costs))

    values, _ = spo_plus(problem, prediction, costs)
    at_truth, gradient = spo_plus(problem, costs, costs)

    assert (values >= decision_regret(problem, prediction, costs) - 1e-12).all()
    np.testing.assert_allclose(at_truth, 0, atol=1e-12)
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_it_is_convex_with_the_gradient_as_a_subgradient(problem, rng):
    costs, here, there = rng.normal(size=(3, 200, problem.n_costs))

    value_here, gradient = spo_plus(problem, here, costs)
    value_there, _ = spo_plus(problem, there, costs)

    assert (value_there >= value_here + ((there - here) * gradient).sum(axis=1) - 1e-12).all()
