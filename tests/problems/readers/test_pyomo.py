"""Models of Pyomo against its own answers."""

import numpy as np
import pytest

from decidewise.problems import from_pyomo
from decidewise.testing.requirements import pickled

pyo = pytest.importorskip("pyomo.environ")


def plan():
    model = pyo.ConcreteModel()
    model.price = pyo.Param(range(3), mutable=True, initialize=1.0)
    model.make = pyo.Var(range(3), bounds=(0, 2))
    model.crews = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.rest = pyo.Var(initialize=1.0)
    model.rest.fix()
    model.work = pyo.Constraint(expr=pyo.quicksum((k + 1) * model.make[k] for k in range(3)) <= 2 * model.crews)
    model.least = pyo.Constraint(expr=(1, model.crews, 4))
    model.equal = pyo.Constraint(expr=model.make[0] - model.make[1] == model.rest - 1)
    income = pyo.quicksum(model.price[k] * model.make[k] for k in range(3))
    model.profit = pyo.Objective(expr=income - 1.5 * model.crews + 5, sense=pyo.maximize)
    return model


def test_decisions_are_worth_what_pyomo_says():
    model = plan()
    problem = from_pyomo(model, model.make)
    costs = np.random.default_rng(0).uniform(0, 4, size=(6, 3))

    lifted = pickled(problem).minimize_lifted(np.column_stack([-costs, np.ones(6)]))

    assert problem.sense == "max"
    assert problem.constraint_names == ["work", "least", "equal"]  # one for a constraint with two sides
    solver = pyo.SolverFactory("appsi_highs")
    solver.highs_options = {"presolve": "off"}
    for row, values in zip(costs, lifted, strict=True):
        for k in range(3):
            model.price[k] = row[k]
        solver.solve(model)
        assert row @ values[:-1] - values[-1] == pytest.approx(pyo.value(model.profit), abs=1e-6)
    expected = problem.solve(costs)
    for variables in ("make*", [model.make[k] for k in range(3)], ["make[0]", "make[1]", "make[2]"]):
        np.testing.assert_array_equal(from_pyomo(model, variables).solve(costs), expected)


def test_what_is_refused():
    model = plan()
    with pytest.raises(ValueError, match=r"the variable 'rest' is in no constraint .* or it is fixed"):
        from_pyomo(model, [model.rest])
    model.curved = pyo.Constraint(expr=model.make[0] ** 2 <= 1)
    with pytest.raises(ValueError, match="cannot be written as a linear program"):
        from_pyomo(model)
    model.profit.deactivate()
    with pytest.raises(ValueError, match="must have one active objective; it has 0"):
        from_pyomo(model)
    with pytest.raises(TypeError, match="needs a Pyomo model; got str"):
        from_pyomo("model")
