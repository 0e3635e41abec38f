"""Models of gurobipy against Gurobi's own answers; the wheel's licence is enough for these."""

import numpy as np
import pytest

from decidewise.problems import from_gurobi
from decidewise.testing.requirements import pickled

gurobipy = pytest.importorskip("gurobipy")
GRB = gurobipy.GRB


@pytest.fixture(scope="module")
def environment():
    with gurobipy.Env(params={"OutputFlag": 0}) as environment:
        yield environment


@pytest.fixture
def plan(environment):
    """Six products, two of them in whole numbers, and a stock with a known cost."""
    model = gurobipy.Model(env=environment)
    kinds = [GRB.INTEGER, GRB.CONTINUOUS, GRB.CONTINUOUS, GRB.INTEGER, GRB.CONTINUOUS, GRB.CONTINUOUS]
    products = model.addVars(6, ub=4.5, obj=1.0, vtype=kinds, name="product")
    stock = model.addVar(lb=-GRB.INFINITY, obj=-0.7, name="stock")
    rng = np.random.default_rng(0)
    for _ in range(3):
        model.addConstr(gurobipy.quicksum(w * products[k] for k, w in enumerate(rng.uniform(1, 4, 6))) <= 20)
    model.addConstr(products.sum() - stock == 2)
    model.addConstr(products.sum() >= 3)
    model.ModelSense = GRB.MAXIMIZE
    model.ObjCon = 5.0
    return model, products, stock


@pytest.mark.parametrize("solver", ["highs", "gurobi"])
def test_decisions_are_worth_what_gurobi_says(plan, solver):
    model, products, _ = plan
    problem = from_gurobi(model, products, solver=solver)
    costs = np.random.default_rng(1).normal(size=(10, 6)) + 0.5

    lifted = pickled(problem).minimize_lifted(np.column_stack([-costs, np.ones(10)]))

    assert problem.sense == "max"
    np.testing.assert_allclose(problem.solve(costs), lifted[:, :-1], atol=1e-7)
    for row, values in zip(costs, lifted, strict=True):
        model.setAttr("Obj", list(products.values()), row.tolist())
        model.optimize()
        assert -(-row @ values[:-1] + values[-1]) == pytest.approx(model.ObjVal, abs=1e-6)
    assert model.getAttr("Obj", list(products.values())) == pytest.approx(costs[-1])  # the model is left as it is


def test_all_ways_to_name_variables(plan):
    model, products, stock = plan
    costs = np.random.default_rng(1).normal(size=6)
    expected = from_gurobi(model, products).solve(costs)
    for variables in ("product*", list(products.values()), [f"product[{k}]" for k in range(6)], range(6)):
        np.testing.assert_array_equal(from_gurobi(model, variables).solve(costs), expected)
    assert from_gurobi(model, stock).n_costs == 1
    assert from_gurobi(model).n_costs == 7
    matrix = model.addMVar((2, 2), ub=1.0)
    assert from_gurobi(model, matrix).n_costs == 4


def test_what_is_refused(environment):
    other = gurobipy.Model(env=environment)
    strange = other.addVar()
    other.addGenConstrAbs(other.addVar(), strange)
    with pytest.raises(ValueError, match="the Gurobi model has general constraints"):
        from_gurobi(other)
    with pytest.raises(TypeError, match=r"needs a gurobipy.Model; got str"):
        from_gurobi("model.mps")


def test_variables_of_another_model_and_names_that_are_not_there(plan, environment):
    model, *_ = plan
    other = gurobipy.Model(env=environment)
    strange = other.addVar()
    for _ in range(2):  # before it has a place in its own model, and after
        with pytest.raises(ValueError, match="not part of the model"):
            from_gurobi(model, [strange])
        other.update()
    with pytest.raises(ValueError, match=r"there is no variable 'produkt\[0\]'; the nearest .* 'product\[0\]'"):
        from_gurobi(model, ["produkt[0]"])
