import numpy as np
import pytest

from decidewise.losses import LtrListwise, LtrPairwise, LtrPointwise
from decidewise.problems import ShortestPath, TopK

PROBLEM = ShortestPath(3, 3)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def prediction(rng):
    return rng.normal(size=(30, PROBLEM.n_costs))


@pytest.fixture
def costs(rng):
    return rng.normal(size=(30, PROBLEM.n_costs))


@pytest.fixture
def pool(costs):
    return np.unique(PROBLEM.solve(costs), axis=0)


def evaluate(loss, prediction, costs, problem=PROBLEM):
    return loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))


def test_pointwise_is_the_mean_square_over_the_pool(prediction, costs, pool):
    values, _ = evaluate(LtrPointwise(), prediction, costs)

    for i in range(30):
        np.testing.assert_allclose(values[i], np.mean([((prediction[i] - costs[i]) @ v) ** 2 for v in pool]))


@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_pairwise_is_the_mean_hinge_over_the_others(prediction, costs, pool, margin):
    values, gradient = evaluate(LtrPairwise(margin), prediction, costs)

    for i in range(30):
        best = np.argmin(pool @ costs[i])
        pairs = [pool[best] - v for j, v in enumerate(pool) if j != best]
        hinges = [max(0.0, margin + prediction[i] @ pair) for pair in pairs]
        np.testing.assert_allclose(values[i], np.mean(hinges), atol=1e-14)
        expected = np.mean([pair * (margin + prediction[i] @ pair > 0) for pair in pairs], axis=0)
        np.testing.assert_allclose(gradient[i], expected, atol=1e-14)


def test_pairwise_with_one_decision_in_the_pool_is_zero():
    values, gradient = evaluate(LtrPairwise(0.5), [[1.0, 2.0]], [[2.0, 1.0]], TopK(2, 1))

    assert not values.any()
    assert not gradient.any()


@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
def test_listwise_is_a_cross_entropy(prediction, costs, pool, temperature):
    values, _ = evaluate(LtrListwise(temperature), prediction, costs)

    for i in range(30):
        true, predicted = (np.exp(-(pool @ c) / temperature) for c in (costs[i], prediction[i]))
        np.testing.assert_allclose(values[i], -np.sum(true / true.sum() * np.log(predicted / predicted.sum())))


def test_listwise_stays_finite_where_exponentials_do_not(costs):
    values, gradient = evaluate(LtrListwise(1e-3), 1e4 * costs, 1e4 * costs)

    np.testing.assert_allclose(values, 0.0, atol=1e-12)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


@pytest.mark.parametrize("loss", [LtrPointwise(), LtrPairwise(), LtrListwise()], ids=lambda loss: type(loss).__name__)
def test_the_true_costs_are_a_minimum(loss, prediction, costs):
    best, gradient = evaluate(loss, costs, costs)
    values, _ = evaluate(loss, prediction, costs)

    assert np.all(best <= values)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


@pytest.mark.parametrize("loss", [LtrPairwise(), LtrListwise()], ids=lambda loss: type(loss).__name__)
def test_only_differences_of_the_pool_count(loss, rng):
    prediction, costs = rng.normal(size=(2, 30, 6))  # all decisions of TopK have as many items

    values, gradient = evaluate(loss, prediction, costs, TopK(6, 2))
    shifted, _ = evaluate(loss, prediction + 3.0, costs, TopK(6, 2))

    np.testing.assert_allclose(shifted, values, atol=1e-12)
    np.testing.assert_allclose(gradient.sum(axis=1), 0.0, atol=1e-12)


def test_parameters_are_checked():
    for margin in (-0.1, np.inf, np.nan):
        with pytest.raises(ValueError, match="margin must be a number at least 0"):
            LtrPairwise(margin)
    for temperature in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="temperature must be a number above 0"):
            LtrListwise(temperature)
