"""Functions as problems: CP-SAT row by row, a batch, and what goes wrong."""

from time import sleep

import numpy as np
import pytest
from joblib import parallel_config

from decidewise import SolverError
from decidewise.problems import Knapsack, ParallelProblem, from_function
from decidewise.testing import check_problem
from decidewise.testing.requirements import pickled

WEIGHTS, CAPACITY = np.array([3, 4, 5, 8, 2, 6]), 13


def pack(values):
    """Solve a knapsack by CP-SAT."""
    from ortools.sat.python import cp_model  # noqa: PLC0415

    model = cp_model.CpModel()
    items = [model.new_bool_var(f"item {i}") for i in range(len(values))]
    model.add(sum(int(weight) * item for weight, item in zip(WEIGHTS, items, strict=True)) <= CAPACITY)
    model.maximize(cp_model.LinearExpr.weighted_sum(items, values))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return [solver.value(item) for item in items]


def largest(values):
    return values == values.max(axis=1, keepdims=True)


def unlucky(costs):
    if costs[0] < 0:
        raise RuntimeError("no luck")
    return costs[:2] if costs[0] > 5 else costs


def test_cp_sat_packs_as_our_knapsack_does():
    pytest.importorskip("ortools")
    problem = from_function(pack, 6, sense="max", is_integer=True)
    costs = np.random.default_rng(0).uniform(1, 9, size=(12, 6))
    expected = Knapsack(WEIGHTS[None], [CAPACITY]).solve(costs)
    np.testing.assert_array_equal(problem.solve(costs), expected)
    np.testing.assert_array_equal(pickled(problem).solve(costs[0]), expected[0])


def test_what_others_can_import_runs_in_other_processes():
    problem = from_function(np.sign, 3, sense="max", batch=True)
    costs = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_array_equal(ParallelProblem(problem, n_jobs=2, rows_per_job=5).solve(costs), np.sign(costs))


def test_a_batch_in_one_call():
    problem = from_function(largest, 4, sense="max", batch=True, is_integer=True)
    check_problem(problem, costs=np.random.default_rng(0).normal(size=(30, 4)), tolerance=0.0)


def test_a_row_that_fails():
    problem = from_function(unlucky, 3, sense="min")
    with pytest.raises(SolverError, match="row 1: unlucky failed: no luck"):
        problem.solve([[1.0, 1.0, 1.0], [-1.0, 1.0, 1.0]])
    with pytest.raises(
        SolverError, match=r"row 0: unlucky failed: its decision has the shape \(2,\) for costs of shape"
    ):
        problem.solve([[9.0, 1.0, 1.0]])
    patient = from_function(unlucky, 3, sense="min", on_error="nan")
    np.testing.assert_array_equal(patient.solve([[-1.0, 1.0, 1.0], [1.0, 2.0, 3.0]]), [[np.nan] * 3, [1, 2, 3]])


def test_bad_arguments():
    with pytest.raises(TypeError, match="needs a function from costs to a decision; got 3 of type int"):
        from_function(3, 3, sense="min")
    with pytest.raises(ValueError, match="n_costs must be at least 1"):
        from_function(unlucky, 0, sense="min")


def test_threads_do_not_take_the_costs_of_each_other():
    """A function often keeps a model, of which the objective is set before it is solved."""
    kept = {}

    def cheapest(costs):
        kept["costs"] = costs
        sleep(0.002)
        return np.eye(3)[kept["costs"].argmin()]

    costs = np.random.default_rng(0).uniform(size=(40, 3))
    with parallel_config(backend="threading"):
        decisions = ParallelProblem(from_function(cheapest, 3, sense="min"), n_jobs=2, rows_per_job=5).solve(costs)
    np.testing.assert_array_equal(decisions, np.eye(3)[costs.argmin(axis=1)])
