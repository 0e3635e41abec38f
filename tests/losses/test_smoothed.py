"""SCE, PEAR and QPTL: the three losses that stand on the projection of RFY and RFWO."""

import numpy as np
import pytest

from decidewise.losses import Pear, Qptl, Rfwo, Rfy, Sce
from decidewise.problems import Assignment, Knapsack, ShortestPath, TopK
from decidewise.solvers.highs import Solver
from decidewise.solvers.program import Program

PROBLEMS = [ShortestPath(3, 3), TopK(6, 2), Assignment(3), Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0]], [12.0])]
on_every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)


def draw(problem, n=40):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, problem.n_costs)), rng.normal(size=(n, problem.n_costs))


def evaluate(loss, problem, prediction, costs):
    return loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))


@on_every_problem
@pytest.mark.parametrize("loss", [Sce(0.5), Pear(0.5, injection=0.0), Qptl(0.5)], ids=lambda loss: type(loss).__name__)
def test_gradients_equal_finite_differences(loss, problem):
    prediction, costs = draw(problem)
    direction, step = np.random.default_rng(1).normal(size=prediction.shape), 1e-6

    _, gradient = evaluate(loss, problem, prediction, costs)
    ahead, behind = (evaluate(loss, problem, prediction + h * direction, costs)[0] for h in (step, -step))

    np.testing.assert_allclose((gradient * direction).sum(axis=1), (ahead - behind) / (2 * step), atol=1e-5)
    assert np.abs(gradient).max() > 0.01


@on_every_problem
def test_sce_adds_two_regrets(problem):
    prediction, costs = draw(problem)
    sign = -1 if problem.sense == "max" else 1

    values, gradient = evaluate(Sce(1e-6), problem, prediction, costs)

    ours, theirs = problem.solve(prediction), problem.solve(costs)
    expected = sign * ((costs * (ours - theirs)).sum(axis=1) + (prediction * (theirs - ours)).sum(axis=1))
    np.testing.assert_allclose(values, expected, atol=1e-4)
    assert np.all(values >= -1e-4)
    np.testing.assert_allclose(gradient, sign * (theirs - ours), atol=1e-9)  # at a vertex, where that of RFWO is zero


@on_every_problem
def test_pear_is_least_at_the_costs_and_injects_the_part_across_the_face(problem):
    prediction, costs = draw(problem)
    plain, injected = Pear(0.5, injection=0.0), Pear(0.5, injection=0.3)

    values, along = evaluate(plain, problem, prediction, costs)
    at_costs, slope = evaluate(plain, problem, costs, costs)
    _, mixed = evaluate(injected, problem, prediction, costs)

    assert np.all(values >= -1e-12)
    np.testing.assert_allclose(at_costs, 0.0, atol=1e-12)
    np.testing.assert_allclose(slope, 0.0, atol=1e-9)
    across = (prediction - costs) / 0.5 - along
    np.testing.assert_allclose((along * across).sum(axis=1), 0.0, atol=1e-8)
    lengths = np.linalg.norm(along, axis=1), np.linalg.norm(across, axis=1)
    share = 0.3 * lengths[0] / (lengths[1] + 1e-6)
    np.testing.assert_allclose(mixed, along + share[:, None] * across, atol=1e-9)


@pytest.mark.parametrize("problem", PROBLEMS[:3], ids=lambda problem: type(problem).__name__)
def test_qptl_is_rfwo_where_the_relaxation_has_integer_vertices(problem):
    prediction, costs = draw(problem)

    for ours, theirs in zip(
        evaluate(Qptl(0.5), problem, prediction, costs), evaluate(Rfwo(0.5), problem, prediction, costs), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)


def test_qptl_solves_the_relaxation_of_a_knapsack():
    problem = PROBLEMS[3]
    prediction, costs = draw(problem)

    target = Qptl(0.5).prepare(problem, costs)
    values, _ = Qptl(0.5).value_and_grad(prediction, target, None)
    of_hull, _ = evaluate(Rfwo(0.5), problem, prediction, costs)

    np.testing.assert_allclose(target.decisions, Solver(Program.of(problem.polyhedron)).minimize(-costs), atol=1e-9)
    assert np.all(values >= -1e-9)
    assert np.abs(values - of_hull).max() > 0.01


@pytest.mark.parametrize("loss", [Sce, Pear, Qptl, Rfy, Rfwo])
@pytest.mark.parametrize("parameters", [{"lambd": -1.0}, {"max_iter": 1.5}, {"tol": 0.0}])
def test_parameters_are_checked(loss, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        loss(**parameters)
    with pytest.raises(ValueError, match="injection"):
        Pear(injection=-0.1)
