import numpy as np
import pytest

from decidewise.kit.errors import SolverError
from decidewise.losses import Rfy
from decidewise.problems import Assignment, Ball, Knapsack, ShortestPath, TopK

PROBLEMS = [ShortestPath(3, 3), TopK(6, 2), Assignment(3), Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0]], [12.0]), Ball(4)]
on_every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def evaluate(loss, problem, prediction, costs):
    return loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))


def sparsemax(scores):
    """Project on the simplex by sorting."""
    ordered = np.sort(scores)[::-1]
    thresholds = (np.cumsum(ordered) - 1) / np.arange(1, len(scores) + 1)
    return np.maximum(scores - thresholds[np.flatnonzero(ordered > thresholds)[-1]], 0)


@pytest.mark.parametrize("lambd", [0.3, 1.0, 4.0])
def test_on_the_simplex_it_is_the_loss_of_sparsemax(rng, lambd):
    prediction, costs = rng.normal(size=(2, 40, 5))
    smoothed = np.array([sparsemax(-row / lambd) for row in prediction])
    optimal = np.eye(5)[costs.argmin(axis=1)]

    values, gradient = evaluate(Rfy(lambd), TopK(5, 1, sense="min"), prediction, costs)

    objective = [(prediction * z).sum(axis=1) + lambd / 2 * (z**2).sum(axis=1) for z in (optimal, smoothed)]
    np.testing.assert_allclose(values, objective[0] - objective[1], atol=1e-12)
    np.testing.assert_allclose(gradient, optimal - smoothed, atol=1e-12)


@on_every_problem
def test_it_is_a_fenchel_young_loss(problem, rng):
    """Convex, at least the squared distance of the decisions, and zero where they agree."""
    lambd = 0.5
    costs, here, there = rng.normal(size=(3, 60, problem.n_costs))
    optimal = problem.solve(costs)
    sign = -1 if problem.sense == "max" else 1

    values, gradient = evaluate(Rfy(lambd), problem, here, costs)
    elsewhere, _ = evaluate(Rfy(lambd), problem, there, costs)
    zero, no_gradient = evaluate(Rfy(lambd), problem, -sign * lambd * optimal, costs)

    assert np.all(values >= lambd / 2 * (gradient**2).sum(axis=1) - 1e-12)
    assert np.all(elsewhere >= values + (gradient * (there - here)).sum(axis=1) - 1e-12)
    np.testing.assert_allclose(zero, 0.0, atol=1e-12)
    np.testing.assert_allclose(no_gradient, 0.0, atol=1e-12)


@on_every_problem
def test_with_little_regularisation_it_is_the_suboptimality_under_the_prediction(problem, rng):
    prediction, costs = rng.normal(size=(2, 60, problem.n_costs))
    sign = -1 if problem.sense == "max" else 1
    lost = sign * (prediction * (problem.solve(costs) - problem.solve(prediction))).sum(axis=1)

    values, _ = evaluate(Rfy(1e-6), problem, prediction, costs)

    np.testing.assert_allclose(values, lost, atol=1e-5)


def test_too_few_steps_are_an_error():
    with pytest.raises(SolverError, match="Raise max_iter, tol or lambd"):
        evaluate(Rfy(max_iter=1), ShortestPath(3, 3), np.zeros((1, 12)), np.ones((1, 12)))


@pytest.mark.parametrize("parameters", [{"lambd": 0.0}, {"max_iter": 0}, {"tol": -1.0}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        Rfy(**parameters)
