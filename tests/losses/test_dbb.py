import numpy as np
import pytest

from decidewise.evaluate import decision_regret
from decidewise.losses import Dbb, Pg
from decidewise.problems import Ball, ShortestPath, TopK


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def evaluate(loss, problem, prediction, costs):
    return loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))


def test_on_the_simplex_it_compares_two_items(rng):
    costs, prediction = rng.normal(size=(2, 50, 5))
    chosen, shifted = prediction.argmin(axis=1), (prediction + 2.0 * costs).argmin(axis=1)

    values, gradient = evaluate(Dbb(lambd=2.0), TopK(5, 1, sense="min"), prediction, costs)

    np.testing.assert_allclose(values, costs[range(50), chosen] - costs.min(axis=1))
    np.testing.assert_allclose(gradient, (np.eye(5)[shifted] - np.eye(5)[chosen]) / 2.0)


@pytest.mark.parametrize("problem", [ShortestPath(3, 3), TopK(6, 2), Ball(4)])
def test_the_value_is_the_regret(problem, rng):
    costs, prediction = rng.normal(size=(2, 50, problem.n_costs))

    values, _ = evaluate(Dbb(), problem, prediction, costs)

    np.testing.assert_allclose(values, decision_regret(problem, prediction, costs), atol=1e-12)


@pytest.mark.parametrize("problem", [ShortestPath(3, 3), TopK(6, 2), Ball(4)])
def test_the_surrogate_is_the_gradient_of_a_forward_difference(problem, rng):
    costs, prediction = rng.normal(size=(2, 50, problem.n_costs))

    _, gradient = evaluate(Dbb(lambd=0.5), problem, prediction, costs)
    _, forward = evaluate(Pg(h=0.5, mode="forward"), problem, prediction, costs)

    np.testing.assert_allclose(gradient, forward, atol=1e-14)


@pytest.mark.parametrize("lambd", [0.0, -1.0, np.nan, "10"])
def test_lambd_is_checked(lambd):
    with pytest.raises(ValueError, match="lambd"):
        Dbb(lambd=lambd)
