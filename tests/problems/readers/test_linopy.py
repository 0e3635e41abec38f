"""Models of linopy against HiGHS as linopy calls it."""

import numpy as np
import pytest

from decidewise.problems import from_linopy
from decidewise.testing.requirements import pickled

linopy = pytest.importorskip("linopy")
pd = pytest.importorskip("pandas")


def plan():
    model = linopy.Model()
    make = model.add_variables(lower=0, upper=2, coords=[pd.RangeIndex(3, name="hour")], name="make")
    crews = model.add_variables(lower=0, upper=4, name="crews")
    model.add_constraints((make * [1.0, 2.0, 3.0]).sum() - 2 * crews <= 0)
    model.add_constraints(make.sum() >= 1)
    model.add_objective((make * 1.0).sum() - 0.7 * crews, sense="max")
    return model, make, crews


def test_decisions_are_worth_what_highs_says():
    model, make, crews = plan()
    problem = from_linopy(model, make)
    costs = np.random.default_rng(0).uniform(0, 4, size=(6, 3))

    lifted = pickled(problem).minimize_lifted(np.column_stack([-costs, np.ones(6)]))

    assert problem.sense == "max"
    assert problem.names == ["make[0]", "make[1]", "make[2]", "crews"]
    for row, values in zip(costs, lifted, strict=True):
        model.add_objective((make * row).sum() - 0.7 * crews, sense="max", overwrite=True)
        solver = model.to_highspy()
        solver.setOptionValue("output_flag", False)
        solver.run()
        assert row @ values[:-1] - values[-1] == pytest.approx(solver.getInfo().objective_function_value, abs=1e-6)
    np.testing.assert_array_equal(from_linopy(model, "make*").solve(costs), problem.solve(costs))


def test_what_is_refused():
    model, make, _ = plan()
    make.attrs["long_name"] = "what is made in an hour"  # a note, which changes nothing
    assert from_linopy(model).n_costs == 4
    with pytest.raises(TypeError, match=r"needs a linopy.Model; got str"):
        from_linopy("model")
