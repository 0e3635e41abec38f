import numpy as np
import pytest

from decidewise.losses import Aimle, Imle
from decidewise.problems import Ball, ShortestPath, TopK


@pytest.fixture
def rng():
    return np.random.default_rng(19)


def test_the_first_batch_is_imle_with_a_step_relative_to_the_prediction(rng):
    problem = ShortestPath(3, 3)
    costs, prediction = rng.uniform(size=(2, 30, problem.n_costs))
    adaptive = Aimle(sigma=0.1)
    fixed = Imle(sigma=0.1, lambd=np.sqrt((prediction**2).sum() / (costs**2).sum()))

    actual = adaptive.value_and_grad(prediction, adaptive.prepare(problem, costs), np.random.default_rng(0))
    expected = fixed.value_and_grad(prediction, fixed.prepare(problem, costs), np.random.default_rng(0))

    np.testing.assert_allclose(actual[0], expected[0])
    np.testing.assert_allclose(actual[1], expected[1], atol=1e-12)
    assert np.count_nonzero(actual[1]) > 0


def test_the_step_grows_while_gradients_are_sparse(rng):
    loss, problem = Aimle(sigma=1e-3), TopK(3, 1, sense="min")
    target = loss.prepare(problem, [[1.0, 2.0, 4.0]])

    for _ in range(3):
        _, gradient = loss.value_and_grad([[3.0, 1.0, 4.0]], target, rng)  # a step of 1 changes no decision

    np.testing.assert_array_equal(gradient, 0)
    assert target.step.alpha == pytest.approx(1.003)
    assert target.step.density == pytest.approx(0.9**3)


def test_the_step_shrinks_while_gradients_are_dense_but_never_vanishes(rng):
    loss, problem = Aimle(rate=0.3), Ball(4)  # on a ball every entry of a decision changes
    costs, prediction = rng.normal(size=(2, 10, 4))
    target = loss.prepare(problem, costs)

    alphas = []
    for _ in range(5):
        _, gradient = loss.value_and_grad(prediction, target, rng)
        alphas.append(target.step.alpha)

    np.testing.assert_allclose(alphas, [0.7, 0.4, 0.3, 0.3, 0.3])
    assert np.count_nonzero(gradient) == gradient.size


def test_it_settles_at_one_entry_a_sample(rng):
    loss, problem = Aimle(n_samples=5, rate=0.02), ShortestPath(3, 3)
    costs, prediction = rng.uniform(size=(2, 20, problem.n_costs))
    target = loss.prepare(problem, costs)

    densities, alphas = [], []
    for _ in range(300):
        loss.value_and_grad(prediction, target, rng)
        densities.append(target.step.density)
        alphas.append(target.step.alpha)

    assert abs(np.mean(densities[150:]) - 1.0) < 0.1
    assert np.ptp(alphas[150:]) < 0.5


def test_batches_of_one_training_share_the_step_and_trainings_do_not(rng):
    loss, problem = Aimle(), ShortestPath(3, 3)
    costs = rng.uniform(size=(8, problem.n_costs))
    first, second = loss.prepare(problem, costs), loss.prepare(problem, costs)

    loss.value_and_grad(costs[:4], first[:4], rng)
    loss.value_and_grad(costs[4:], first[4:], rng)

    assert first.step.alpha != 1.0
    assert second.step.alpha == 1.0


@pytest.mark.parametrize(("prediction", "costs"), [(0.0, 1.0), (1.0, 0.0)])
def test_without_a_scale_there_is_no_gradient(prediction, costs, rng):
    loss = Aimle()
    target = loss.prepare(TopK(3, 1), np.full((2, 3), costs))

    values, gradient = loss.value_and_grad(np.full((2, 3), prediction), target, rng)

    np.testing.assert_allclose(values, 0, atol=1e-12)
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("parameters", [{"n_samples": 0}, {"sigma": 0.0}, {"kappa": np.nan}, {"rate": 0.0}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        Aimle(**parameters)
