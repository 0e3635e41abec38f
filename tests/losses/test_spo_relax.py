import pickle

import numpy as np
import pytest

from decidewise.losses import SpoPlus, SpoRelax
from decidewise.problems import Assignment, Knapsack, LinearProgram, ShortestPath, TopK, TravellingSalesman
from decidewise.solvers.highs import Solver
from decidewise.solvers.program import Program

WEIGHTS = np.random.default_rng(0).integers(1, 9, size=(2, 8)).astype(float)


def knapsack():
    return Knapsack(WEIGHTS, 0.4 * WEIGHTS.sum(axis=1))


def program():
    return LinearProgram(WEIGHTS, 0.4 * WEIGHTS.sum(axis=1), upper=1.0, integrality=np.ones(8), sense="max")


def evaluate(loss, problem, prediction, costs):
    return loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))


def draw(problem, n=60, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 2.0, size=(2, n, problem.n_costs))


@pytest.mark.parametrize("problem", [ShortestPath(3, 4), TopK(6, 2), Assignment(3)], ids=lambda p: type(p).__name__)
def test_where_the_relaxation_has_integer_vertices_it_is_spo_plus(problem):
    prediction, costs = draw(problem)
    for ours, theirs in zip(
        *(evaluate(loss, problem, prediction, costs) for loss in (SpoRelax(), SpoPlus())), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_it_is_spo_plus_of_the_relaxation_as_a_linear_program_and_bounds_its_regret():
    prediction, costs = draw(knapsack())
    relaxed = LinearProgram(WEIGHTS, 0.4 * WEIGHTS.sum(axis=1), upper=1.0, sense="max")
    values, gradient = evaluate(SpoRelax(), knapsack(), prediction, costs)
    expected = evaluate(SpoPlus(), relaxed, prediction, costs)
    np.testing.assert_allclose(values, expected[0], atol=1e-9)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-9)
    regret = (costs * (relaxed.solve(costs) - relaxed.solve(prediction))).sum(axis=1)
    assert (values >= regret - 1e-9).all()
    assert not np.allclose(values, evaluate(SpoPlus(), knapsack(), prediction, costs)[0])


@pytest.mark.parametrize(
    "build", [knapsack, program, lambda: TravellingSalesman(6)], ids=["knapsack", "program", "tours"]
)
def test_warm_starts_do_not_change_answers(build):
    """A problem that has solved other rows answers to the last bit as a new one does, in any order and after a copy."""
    used, rng = build(), np.random.default_rng(1)
    costs = rng.normal(size=(40, used.n_costs))
    costs[::5] = rng.integers(0, 3, size=(8, used.n_costs))  # with ties
    used.minimize_relaxation(rng.normal(size=(100, used.n_costs)))
    fresh = build().minimize_relaxation(costs)
    np.testing.assert_array_equal(used.minimize_relaxation(costs), fresh)
    np.testing.assert_array_equal(used.minimize_relaxation(costs[::-1]), fresh[::-1])
    np.testing.assert_array_equal([used.minimize_relaxation(row[None])[0] for row in costs], fresh)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(used)).minimize_relaxation(costs), fresh)  # noqa: S301
    np.testing.assert_array_equal(Solver(Program.of(used.polyhedron)).minimize(costs), fresh)
