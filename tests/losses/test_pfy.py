from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from decidewise.losses import Pfy
from decidewise.problems import ShortestPath, TopK


def given(noise):
    """Return what stands for a generator that draws this noise."""
    return SimpleNamespace(standard_normal=lambda shape: noise)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def test_on_the_simplex_it_is_a_mean_of_minima(rng):
    costs, prediction = rng.normal(size=(2, 20, 5))
    noise = rng.normal(size=(3, 20, 5))
    perturbed = prediction + 0.7 * noise
    best = costs.argmin(axis=1)
    loss = Pfy(n_samples=3, sigma=0.7)

    values, gradient = loss.evaluate(prediction, loss.prepare(TopK(5, 1, sense="min"), costs), given(noise))

    np.testing.assert_allclose(values, prediction[range(20), best] - perturbed.min(axis=2).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(gradient, np.eye(5)[best] - np.eye(5)[perturbed.argmin(axis=2)].mean(axis=0))


def test_for_given_noise_it_is_convex(rng):
    problem, loss = ShortestPath(3, 3), Pfy(n_samples=4)
    costs, here, there = rng.normal(size=(3, 100, problem.n_costs))
    noise = rng.normal(size=(4, 100, problem.n_costs))
    target = loss.prepare(problem, costs)

    value_here, gradient = loss.evaluate(here, target, given(noise))
    value_there, _ = loss.evaluate(there, target, given(noise))

    assert (value_there >= value_here + ((there - here) * gradient).sum(axis=1) - 1e-12).all()


def test_symmetric_noise_can_only_add_to_the_unperturbed_loss(rng):
    # The minimum is concave, so by Jensen its mean over noise of mean zero is at most the minimum at the prediction.
    problem, loss = ShortestPath(3, 3), Pfy(n_samples=6)
    costs, prediction = rng.normal(size=(2, 100, problem.n_costs))
    half = rng.normal(size=(3, 100, problem.n_costs))
    target = loss.prepare(problem, costs)
    unperturbed = (prediction * (target.decisions - problem.solve(prediction))).sum(axis=1)

    values, _ = loss.evaluate(prediction, target, given(np.concatenate([half, -half])))

    assert (unperturbed >= -1e-12).all()
    assert (values >= unperturbed - 1e-12).all()


def test_expected_gradient_of_two_items_is_a_normal_probability(rng):
    prediction, sigma, n = np.array([0.3, -0.2]), 0.8, 20_000
    first = norm.cdf((prediction[1] - prediction[0]) / (sigma * np.sqrt(2)))  # how often the first item is cheaper
    loss = Pfy(n_samples=1, sigma=sigma)
    target = loss.prepare(TopK(2, 1, sense="min"), np.tile([1.0, 2.0], (n, 1)))

    _, gradient = loss.value_and_grad(np.tile(prediction, (n, 1)), target, rng)

    error = gradient.std(axis=0) / np.sqrt(n)
    assert (np.abs(gradient.mean(axis=0) - [1 - first, first - 1]) < 5 * error).all()


def test_gradient_has_mean_zero_where_the_decisions_come_from_the_smoothed_solver(rng):
    problem, loss, n = ShortestPath(3, 3), Pfy(n_samples=2, sigma=0.5), 5_000
    truth = rng.normal(size=problem.n_costs)
    prediction = np.tile(truth, (n, 1))
    decisions = problem.solve(truth + 0.5 * rng.normal(size=(n, problem.n_costs)))
    target = replace(loss.prepare(problem, prediction), decisions=decisions)

    _, gradient = loss.value_and_grad(prediction, target, rng)
    _, elsewhere = loss.value_and_grad(-prediction, target, rng)

    assert (np.abs(gradient.mean(axis=0)) <= 5 * gradient.std(axis=0) / np.sqrt(n)).all()
    assert (np.abs(elsewhere.mean(axis=0)) > 5 * elsewhere.std(axis=0) / np.sqrt(n)).any()


@pytest.mark.parametrize("parameters", [{"n_samples": 0}, {"n_samples": 1.5}, {"sigma": 0.0}, {"sigma": np.inf}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        Pfy(**parameters)
