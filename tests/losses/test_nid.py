import numpy as np
import pytest

from decidewise.evaluate import decision_regret
from decidewise.losses import Nid
from decidewise.problems import Ball, ShortestPath, TopK


@pytest.mark.parametrize("problem", [ShortestPath(3, 3), TopK(6, 2), Ball(4)])
def test_a_long_step_against_the_gradient_removes_the_regret(problem):
    costs, prediction = np.random.default_rng(2).normal(size=(2, 50, problem.n_costs))
    loss = Nid()

    values, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))

    np.testing.assert_allclose(values, decision_regret(problem, prediction, costs), atol=1e-12)
    assert values.max() > 0.1
    np.testing.assert_allclose(decision_regret(problem, prediction - 1e6 * gradient, costs), 0, atol=1e-9)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_gradient_is_minus_the_costs_in_either_sense(sense):
    costs = np.array([[1.0, -2.0, 4.0]])
    loss = Nid()

    _, gradient = loss.value_and_grad([[0.0, 1.0, 2.0]], loss.prepare(TopK(3, 1, sense=sense), costs), None)

    np.testing.assert_array_equal(gradient, -costs)
