"""What every reader promises: its problem keeps the contract, and is cloned and run in parallel like any other.

Functions decide ties as they like, and can be pickled if they can be imported: see test_function.py.
"""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone

from decidewise import DecisionRegressor
from decidewise.problems import (
    LinearProgram,
    ParallelProblem,
    from_cvxpy,
    from_gurobi,
    from_linopy,
    from_pyomo,
    read_problem,
)
from decidewise.testing import check_problem
from decidewise.testing.requirements import pickled

WEIGHTS, ROOM = np.array([[2.0, 3.0, 1.0, 2.0], [1.0, 1.0, 2.0, 3.0]]), np.array([4.0, 4.0])
PLAN = """max
 obj: 0 x_1 + 0 x_2 + 0 x_3 + 0 x_4
subject to
 first: 2 x_1 + 3 x_2 + x_3 + 2 x_4 <= 4
 second: x_1 + x_2 + 2 x_3 + 3 x_4 <= 4
bounds
 x_1 <= 1
 x_2 <= 1
 x_3 <= 1
 x_4 <= 1
end
"""


def plan_in_lp(folder):
    (folder / "plan.lp").write_text(PLAN)
    return read_problem(folder / "plan.lp", costs="x_*")


def plan_in_mps(folder):
    import highspy  # noqa: PLC0415

    (folder / "plan.lp").write_text(PLAN)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(folder / "plan.lp"))
    solver.writeModel(str(folder / "plan.mps"))
    return read_problem(folder / "plan.mps", costs="x_*")


def plan_in_toml(folder):
    text = f'kind = "linear_program"\nA_ub = {WEIGHTS.tolist()}\nb_ub = {ROOM.tolist()}\nupper = 1\nsense = "max"\n'
    (folder / "plan.toml").write_text(text)
    return read_problem(folder / "plan.toml")


def plan_of_cvxpy(_):
    cp = pytest.importorskip("cvxpy")
    value, plan = cp.Parameter(4), cp.Variable(4, nonneg=True)
    return from_cvxpy(cp.Problem(cp.Maximize(value @ plan), [plan <= 1, WEIGHTS @ plan <= ROOM]), value)


def plan_of_gurobi(_, solver="highs"):
    gurobipy = pytest.importorskip("gurobipy")
    with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.Model(env=environment) as model:
        plan = model.addMVar(4, ub=1.0)
        model.addConstr(WEIGHTS @ plan <= ROOM)
        model.ModelSense = gurobipy.GRB.MAXIMIZE
        model.update()
        return from_gurobi(model, plan, solver=solver)


def plan_of_pyomo(_):
    pyo = pytest.importorskip("pyomo.environ")
    model = pyo.ConcreteModel()
    model.plan = pyo.Var(range(4), bounds=(0, 1))
    model.use = pyo.ConstraintList()
    for weights, room in zip(WEIGHTS.tolist(), ROOM, strict=True):
        model.use.add(pyo.quicksum(w * model.plan[k] for k, w in enumerate(weights)) <= room)
    model.value = pyo.Objective(expr=pyo.quicksum(model.plan[k] for k in range(4)), sense=pyo.maximize)
    return from_pyomo(model, model.plan)


def plan_of_linopy(_):
    linopy, pd = pytest.importorskip("linopy"), pytest.importorskip("pandas")
    model = linopy.Model()
    plan = model.add_variables(lower=0, upper=1, coords=[pd.RangeIndex(4, name="item")], name="plan")
    for weights, room in zip(WEIGHTS, ROOM, strict=True):
        model.add_constraints((plan * weights).sum() <= room)
    model.add_objective((plan * 1.0).sum(), sense="max")
    return from_linopy(model, plan)


READERS = {
    "lp": plan_in_lp,
    "mps": plan_in_mps,
    "toml": plan_in_toml,
    "cvxpy": plan_of_cvxpy,
    "gurobi": plan_of_gurobi,
    "gurobi by gurobi": lambda folder: plan_of_gurobi(folder, "gurobi"),
    "pyomo": plan_of_pyomo,
    "linopy": plan_of_linopy,
}


@pytest.fixture(params=READERS)
def problem(request, tmp_path):
    return READERS[request.param](tmp_path)


def test_the_contract(problem):
    check_problem(problem)


def test_decisions_do_not_depend_on_the_row_before_nor_on_who_solves(problem):
    """A pickle, the problem of a clone, threads and processes decide as the problem does, in any order."""
    rng = np.random.default_rng(0)
    costs = rng.uniform(0, 4, size=(40, 4)).round(1)  # with ties
    decisions = problem.solve(costs)
    values = [LinearProgram(WEIGHTS, ROOM, upper=1, sense="max").solve(row) @ row for row in costs]
    np.testing.assert_allclose((costs * decisions).sum(axis=1), values, atol=1e-8)
    order = rng.permutation(40)
    np.testing.assert_allclose(problem.solve(costs[order]), decisions[order], atol=1e-12)
    cloned = clone(DecisionRegressor(problem, "spo+")).problem
    parallel = ParallelProblem(pickled(problem), n_jobs=2, rows_per_job=5)
    np.testing.assert_allclose(cloned.solve(costs), decisions, atol=1e-12)
    np.testing.assert_allclose(parallel.solve(costs), decisions, atol=1e-12)
    with parallel_config(backend="threading"):
        np.testing.assert_allclose(parallel.solve(costs), decisions, atol=1e-12)


@pytest.mark.parametrize("reader", ["lp", "mps", "gurobi", "pyomo", "linopy"])
def test_right_hand_sides_by_row_go_by_the_names_of_constraints(reader, tmp_path):
    """The name that the tool gives a constraint selects its right-hand side, and leaves the other as it is."""
    problem = READERS[reader](tmp_path)
    costs = np.random.default_rng(1).uniform(1, 4, size=(6, 4))
    sides = np.linspace(0.5, 4.0, 6)
    assert len(problem.constraint_names) == 2
    for constraint, name in enumerate(problem.constraint_names):
        rooms = np.tile(ROOM, (6, 1))
        rooms[:, constraint] = sides

        decisions = problem.by_row(sides={name: sides}).solve(costs)

        for row, room, decision in zip(costs, rooms, decisions, strict=True):
            expected = LinearProgram(WEIGHTS, room, upper=1, sense="max").solve(row)
            np.testing.assert_allclose(decision, expected, atol=1e-8)
    with pytest.raises(ValueError, match="no such constraint"):
        problem.by_row(sides={"no such constraint": sides})
