"""Gurobi, SCIP and CP-SAT against HiGHS and against enumeration, and what is said where one cannot solve."""

from itertools import combinations, product

import numpy as np
import pytest

from decidewise.kit import lazy
from decidewise.kit.errors import InfeasibleError, SolverError
from decidewise.problems import ConicProgram, LinearProgram, Quadratic, QuadraticProgram, from_cvxpy
from decidewise.solvers.others import OTHERS
from decidewise.testing.requirements import pickled

for module in ("gurobipy", "pyscipopt", "ortools"):
    pytest.importorskip(module)
RNG = np.random.default_rng(0)
WEIGHTS = RNG.integers(1, 9, size=(3, 8)).astype(float)
ROOM = WEIGHTS.sum(axis=1) // 2
WHOLE = {"A_ub": WEIGHTS, "b_ub": ROOM, "upper": 3, "sense": "max", "integrality": 1}
COVARIANCE = np.cov(RNG.normal(size=(5, 12)) + RNG.normal(size=12))


@pytest.mark.parametrize("solver", OTHERS)
def test_values_are_those_of_highs_also_by_row_and_after_pickling(solver):
    problem, highs = pickled(LinearProgram(**WHOLE, solver=solver)), LinearProgram(**WHOLE, solver="highs")
    costs = RNG.normal(size=(6, 8)) + 1.0
    decisions = problem.solve(costs)
    np.testing.assert_allclose((costs * decisions).sum(axis=1), (costs * highs.solve(costs)).sum(axis=1), rtol=1e-9)
    np.testing.assert_array_equal(decisions, decisions.round())
    np.testing.assert_array_equal(problem.solve(costs[::-1]), decisions[::-1])
    rooms = ROOM - np.arange(6)[:, None]
    by_row = [one.by_row(b_ub=rooms).solve(costs) for one in (problem, highs)]
    np.testing.assert_allclose(*[(costs * one).sum(axis=1) for one in by_row], rtol=1e-9)


@pytest.mark.parametrize("solver", ["gurobi", "scip"])
def test_mixed_programs_have_the_values_of_highs(solver):
    mixed = {**WHOLE, "integrality": [1, 0] * 4, "lower": -1}
    costs = RNG.normal(size=(5, 8))
    values = [(costs * LinearProgram(**mixed, solver=one).solve(costs)).sum(axis=1) for one in (solver, "highs")]
    np.testing.assert_allclose(*values, rtol=1e-7)


@pytest.mark.parametrize("solver", ["gurobi", "scip"])
def test_squares_in_whole_numbers_are_the_best_of_all(solver):
    root = RNG.normal(size=(4, 4))
    problem = QuadraticProgram(root @ root.T, upper=2, integrality=1, solver=solver)
    points = np.array([*product(range(3), repeat=4)], dtype=float)
    costs = 3 * RNG.normal(size=(4, 4))
    values = costs @ points.T + ((points @ root) ** 2).sum(axis=1) / 2
    np.testing.assert_array_equal(problem.solve(costs), points[values.argmin(axis=1)])
    assert problem.is_integer


@pytest.mark.parametrize("solver", ["gurobi", "scip"])
def test_a_portfolio_of_at_most_two_assets_is_the_best_of_all_pairs(solver):
    cp = pytest.importorskip("cvxpy")
    value, share, held = cp.Parameter(5), cp.Variable(5, nonneg=True), cp.Variable(5, boolean=True)
    limits = [cp.sum(share) <= 1, share <= held, cp.sum(held) <= 2, cp.quad_form(share, COVARIANCE) <= 0.5]
    costs = RNG.normal(size=(3, 5)) + 1.0
    found = from_cvxpy(cp.Problem(cp.Maximize(value @ share), limits), value, solver=solver).solve(costs)
    pairs = [np.isin(np.arange(5), pair).astype(float) for pair in combinations(range(5), 2)]
    region = {"A_ub": np.ones((1, 5)), "b_ub": [1.0], "cones": Quadratic(COVARIANCE, r=0.5), "sense": "max"}
    best = np.max([(costs * ConicProgram(**region, upper=pair).solve(costs)).sum(axis=1) for pair in pairs], axis=0)
    np.testing.assert_allclose((costs * found).sum(axis=1), best, rtol=1e-5)
    assert ((found > 1e-6).sum(axis=1) <= 2).all()


def test_what_cannot_be_solved_is_said(monkeypatch):
    for arguments, message in (
        ({"integrality": [1] * 7 + [0]}, "CP-SAT cannot take the program: some variables are not in whole numbers"),
        ({"upper": np.inf}, "some variables have no bounds"),
        ({"A_ub": WEIGHTS / 3}, "factors that are not whole numbers; multiply them"),
        ({"solver": "cplex"}, "solver must be one of 'highs', 'gurobi', 'scip', 'cp-sat'; got 'cplex'"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearProgram(**{**WHOLE, "solver": "cp-sat", **arguments})
    with pytest.raises(ValueError, match=r'the region has cones, and some variables .* Pass solver="scip" or "gurobi"'):
        ConicProgram(cones=Quadratic(COVARIANCE, r=0.5), integrality=1)
    for solver in OTHERS:
        with pytest.raises(InfeasibleError, match=r"row 0: .* ended with status 'infeasible'. No decision keeps all"):
            LinearProgram([[1.0], [-1.0]], [[2.0, -3.0]], upper=9, integrality=1, solver=solver).solve([[1.0]])
        nan = LinearProgram([[1.0]], [[2.0], [-3.0]], upper=9, integrality=1, solver=solver, on_error="nan")
        np.testing.assert_array_equal(nan.solve([[-1.0], [-1.0]]), [[2.0], [np.nan]])
    large = LinearProgram(upper=np.ones(2_001), solver="gurobi")  # beyond the licence of the wheel
    with pytest.raises(SolverError, match=r"Gurobi does not solve it: .* It may need a licence"):
        large.solve(np.ones(2_001))
    monkeypatch.setattr(lazy, "find_spec", lambda module: None)
    for solver in OTHERS:
        with pytest.raises(ImportError, match=f'solver="{solver}" needs .*: pip install "decidewise.{solver}.'):
            LinearProgram(**WHOLE, solver=solver)
