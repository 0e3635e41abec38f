import numpy as np
import pytest

from decidewise.losses import IntOpt
from decidewise.losses.intopt import Barrier
from decidewise.problems import Assignment, Knapsack, LinearProgram, ShortestPath, TopK

PROBLEMS = [ShortestPath(3, 3), TopK(6, 2), Assignment(3), Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0]], [12.0])]
on_every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)


def evaluate(loss, problem, prediction, costs):
    return loss.value_and_grad(prediction, loss.prepare(problem, costs), None)


@on_every_problem
@pytest.mark.parametrize("mu", [0.01, 0.1, 2.0])
def test_the_gradient_equals_finite_differences(problem, mu):
    prediction, costs, direction = np.random.default_rng(0).normal(size=(3, 30, problem.n_costs))
    step = 1e-6

    _, gradient = evaluate(IntOpt(mu), problem, prediction, costs)
    ahead, behind = (evaluate(IntOpt(mu), problem, prediction + h * direction, costs)[0] for h in (step, -step))

    np.testing.assert_allclose((gradient * direction).sum(axis=1), (ahead - behind) / (2 * step), atol=1e-5)
    assert np.all(np.abs(gradient).max(axis=1) > 1e-6)  # it never vanishes


@on_every_problem
def test_a_small_barrier_leads_to_the_optimum_of_the_relaxation(problem):
    prediction, costs = np.random.default_rng(0).normal(size=(2, 30, problem.n_costs))
    sign = -1 if problem.sense == "max" else 1
    best = problem.minimize_relaxation(sign * prediction)

    points, _ = Barrier(problem.polyhedron).minimize(sign * prediction, mu=1e-7, vectors=costs)

    np.testing.assert_allclose(points, best, atol=1e-4)


@on_every_problem
def test_points_are_stationary_and_inside(problem):
    prediction = np.random.default_rng(0).normal(size=(30, problem.n_costs)) * np.logspace(-3, 3, 30)[:, None]
    barrier = Barrier(problem.polyhedron)

    points, _ = barrier.minimize(prediction, mu=0.1, vectors=prediction)

    rows, limits = barrier.slacks
    slacks = limits - points @ rows.T
    assert np.all(slacks > 0)
    slope = (prediction + 0.1 * (1 / slacks) @ rows) @ barrier.directions
    np.testing.assert_allclose(slope / np.linalg.norm(prediction, axis=1, keepdims=True), 0.0, atol=1e-6)


def test_a_region_without_interior_is_refused_before_training():
    flat = LinearProgram([[1.0, 1.0], [-1.0, -1.0]], [1.0, -1.0], upper=1)  # an equality as two inequalities

    with pytest.raises(ValueError, match=r"no point at which all inequalities and bounds are slack.*equality"):
        IntOpt().prepare(flat, [[1.0, 2.0]])
    with pytest.raises(ValueError, match="mu"):
        IntOpt(0.0)
