"""The problems of the field: a truth that misleads every line through the values, and a listed integer program."""

import numpy as np
import pytest

from decidewise.evaluate import normalized_regret
from decidewise.models import DecisionRegressor, GeneralizedLinear, WiseRegressor
from decidewise.problems import LinearProgram
from decidewise_bench.field.problems import ListedProgram, make_covering, make_cubic_top_k


def share_of_the_optimum(model, train, test):
    return 1 - normalized_regret(test.problem, model.fit(train.X, train.costs).predict(test.X), test.costs) / 100


def test_on_the_cubic_lines_through_the_values_point_the_wrong_way():
    train, test = make_cubic_top_k(700, seed=0).split(200)
    for model in (GeneralizedLinear(), WiseRegressor()):
        assert share_of_the_optimum(model, train, test) == pytest.approx(-0.96, abs=0.02)
    decided = DecisionRegressor(train.problem, "spo+", epochs=10, init="torch", learning_rate=0.1, random_state=0)
    assert share_of_the_optimum(decided, train, test) == pytest.approx(0.96, abs=0.01)


def test_listed_decisions_are_those_of_the_solver():
    problem = make_covering(5, degree=4, seed=0).problem
    region = problem.polyhedron
    solver = LinearProgram(A_ub=region.A_ub, b_ub=region.b_ub, upper=1.0, integrality=np.ones(problem.n_costs))
    costs = np.random.default_rng(0).normal(0.3, 1.0, (30, problem.n_costs))  # of both signs
    np.testing.assert_array_equal(problem.solve(costs), solver.solve(costs).round())
    relaxed = problem.minimize_relaxation(np.abs(costs))
    np.testing.assert_allclose(relaxed, solver.minimize_relaxation(np.abs(costs)))
    assert (np.abs(relaxed - relaxed.round()) > 1e-6).any()  # so that the relaxation is another problem


def test_too_many_decisions_to_list():
    with pytest.raises(ValueError, match=r"at most 12 variables can be listed; got 13\. Use LinearProgram"):
        ListedProgram(np.ones((1, 13)), np.ones(1))


def test_an_instance_is_shared_by_all_trials():
    one, other = (make_covering(4, degree=2, seed=seed) for seed in (1, 2))
    costs = np.random.default_rng(0).uniform(1, 2, (20, 10))
    np.testing.assert_array_equal(one.problem.solve(costs), other.problem.solve(costs))
    assert not np.array_equal(one.costs, other.costs)
