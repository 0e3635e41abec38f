from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from decidewise.losses import Dpo
from decidewise.problems import Ball, TopK


def given(noise):
    """Return what stands for a generator that draws this noise."""
    return SimpleNamespace(standard_normal=lambda shape: noise)


@pytest.fixture
def rng():
    return np.random.default_rng(13)


def many(loss, problem, prediction, costs, rng):
    """Return values and gradients of many draws of the noise on one sample."""
    n = 20_000
    target = loss.prepare(problem, np.tile(costs, (n, 1)))
    return loss.value_and_grad(np.tile(prediction, (n, 1)), target, rng)


def assert_mean(draws, expected):
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) < 5 * error).all()


@pytest.mark.parametrize("loss", [Dpo(5, 0.8), Dpo(5, 0.8, variance_reduction=False), Dpo(1, 0.8)], ids=repr)
def test_it_is_unbiased_on_two_items(loss, rng):
    prediction, costs = np.array([0.3, -0.2]), np.array([1.0, 3.0])
    scale = 0.8 * np.sqrt(2)
    gap = (prediction[1] - prediction[0]) / scale
    first = norm.cdf(gap)  # how often the first item is cheaper
    slope = (costs[0] - costs[1]) * norm.pdf(gap) / scale

    values, gradient = many(loss, TopK(2, 1, sense="min"), prediction, costs, rng)

    assert_mean(values, costs @ [first, 1 - first] - 1.0)
    assert_mean(gradient, [-slope, slope])


def test_it_is_unbiased_on_an_interval(rng):
    # The decision is minus the sign of the perturbed cost, of mean 1 - 2 Φ(p/σ).
    prediction, cost, sigma = 0.4, -2.0, 0.6

    values, gradient = many(Dpo(3, sigma), Ball(1), [prediction], [cost], rng)

    assert_mean(values, cost * (1 - 2 * norm.cdf(prediction / sigma)) - cost)
    assert_mean(gradient, [-2 * cost * norm.pdf(prediction / sigma) / sigma])


def test_a_maximisation_is_unbiased_too(rng):
    prediction, costs = np.array([0.3, -0.2]), np.array([1.0, 3.0])
    gap = (prediction[0] - prediction[1]) / np.sqrt(2)
    slope = (costs[1] - costs[0]) * norm.pdf(gap) / np.sqrt(2)  # of the regret, in the prediction of the first item

    _, gradient = many(Dpo(5), TopK(2, 1), prediction, costs, rng)

    assert_mean(gradient, [slope, -slope])


def test_the_baseline_is_the_mean_of_the_others(rng):
    costs, prediction = rng.normal(size=(2, 10, 4))
    noise = rng.normal(size=(3, 10, 4))
    chosen = (prediction + 0.5 * noise).argmin(axis=2)
    reward = costs[np.arange(10), chosen]
    others = np.stack([np.delete(reward, s, axis=0).mean(axis=0) for s in range(3)])
    loss = Dpo(3, 0.5)

    values, gradient = loss.evaluate(prediction, loss.prepare(TopK(4, 1, sense="min"), costs), given(noise))

    np.testing.assert_allclose(values, reward.mean(axis=0) - costs.min(axis=1))
    np.testing.assert_allclose(gradient, ((reward - others)[:, :, None] * noise).mean(axis=0) / 0.5, atol=1e-12)


def test_the_baseline_takes_a_common_cost_out_of_the_variance(rng):
    prediction, costs = np.array([0.3, -0.2]), np.array([101.0, 103.0])
    problem = TopK(2, 1, sense="min")

    _, reduced = many(Dpo(5), problem, prediction, costs, rng)
    _, plain = many(Dpo(5, variance_reduction=False), problem, prediction, costs, rng)

    assert (reduced.std(axis=0) < plain.std(axis=0) / 10).all()


@pytest.mark.parametrize("parameters", [{"n_samples": 0}, {"n_samples": True}, {"sigma": -1.0}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        Dpo(**parameters)
