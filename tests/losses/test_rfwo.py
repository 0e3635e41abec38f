import numpy as np
import pytest

from decidewise.losses import Rfwo
from decidewise.problems import Assignment, Knapsack, ShortestPath, TopK

PROBLEMS = [ShortestPath(3, 3), TopK(6, 2), Assignment(3), Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0]], [12.0])]
on_every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def evaluate(loss, problem, prediction, costs):
    return loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))


@pytest.mark.parametrize("lambd", [0.5, 2.0])
def test_on_the_simplex_items_of_the_support_trade_places(rng, lambd):
    prediction, costs = rng.normal(size=(2, 40, 5))

    values, gradient = evaluate(Rfwo(lambd), TopK(5, 1, sense="min"), prediction, costs)

    for i in range(40):
        order = np.argsort(prediction[i])
        scores = -prediction[i][order] / lambd
        sizes = np.arange(1, 6)
        size = sizes[scores > (np.cumsum(scores) - 1) / sizes][-1]
        support = order[:size]
        weights = scores[:size] - (scores[:size].sum() - 1) / size
        expected = np.zeros(5)
        expected[support] = -(costs[i, support] - costs[i, support].mean()) / lambd
        np.testing.assert_allclose(values[i], weights @ costs[i, support] - costs[i].min(), atol=1e-12)
        np.testing.assert_allclose(gradient[i], expected, atol=1e-10)


@on_every_problem
@pytest.mark.parametrize("lambd", [0.3, 1.0, 5.0])
def test_the_gradient_equals_finite_differences(problem, lambd, rng):
    prediction, costs, direction = rng.normal(size=(3, 60, problem.n_costs))
    step = 1e-6

    _, gradient = evaluate(Rfwo(lambd), problem, prediction, costs)
    ahead, behind = (evaluate(Rfwo(lambd), problem, prediction + h * direction, costs)[0] for h in (step, -step))

    np.testing.assert_allclose((gradient * direction).sum(axis=1), (ahead - behind) / (2 * step), atol=1e-6)
    assert np.abs(gradient).max() > 0.01


@on_every_problem
def test_the_value_is_a_regret_and_tends_to_that_of_the_decision(problem, rng):
    prediction, costs = rng.normal(size=(2, 60, problem.n_costs))
    sign = -1 if problem.sense == "max" else 1
    regret = sign * (costs * (problem.solve(prediction) - problem.solve(costs))).sum(axis=1)

    smooth, _ = evaluate(Rfwo(), problem, prediction, costs)
    sharp, gradient = evaluate(Rfwo(), problem, 1e5 * prediction, costs)

    assert np.all(smooth >= -1e-12)
    np.testing.assert_allclose(sharp, regret, atol=1e-10)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-10)


@pytest.mark.parametrize("parameters", [{"lambd": -1.0}, {"max_iter": 1.5}, {"tol": 0.0}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        Rfwo(**parameters)
