"""Semi-continuous variables, indicators and ordered sets, against Gurobi, which has them; also through its files."""

import numpy as np
import pytest

from decidewise import InputError
from decidewise.problems import from_gurobi, read_problem

LP = "max\n value: x + y\nst\n sum: x + y <= 3\n{more}\nbounds\n x <= 2\n{bounds}\n{sections}\nend\n"


def random_model(gurobipy, environment, seed, *, equal):
    """A model in which every kind of switch binds now and then."""
    rng = np.random.default_rng(seed)
    model = gurobipy.Model(env=environment)
    x = [model.addVar(lb=rng.choice([-1.0, 0.0]), ub=rng.uniform(1, 3), name=f"x{k}") for k in range(6)]
    x += [model.addVar(lb=1.0, ub=2.5, vtype="S", name="s0"), model.addVar(lb=1.0, ub=3.0, vtype="N", name="s1")]
    on = [model.addVar(vtype="B", name=f"on{k}") for k in range(2)]
    for row in range(2):
        model.addConstr(gurobipy.quicksum(rng.uniform(0.2, 1) * v for v in x) <= 5, name=f"cap{row}")
    model.addConstr(on[0] + on[1] == 1, name="either")
    model.addSOS(1, x[:3], [3.0, 1.0, 2.0])
    model.addSOS(2, x[2:6])
    model.addGenConstrIndicator(on[0], 1, x[0] + 2 * x[3] - x[6] <= 1.5, name="if_on")
    model.addGenConstrIndicator(on[0], 0, x[4] + x[7] >= 2.5, name="if_off")
    if equal:
        model.addGenConstrIndicator(on[1], 1, x[1] + x[5] - x[6] == 0.25, name="if_equal")
    model.ModelSense = -1
    model.update()
    return model, x + on


@pytest.mark.parametrize("seed", range(4))
def test_a_gurobi_model_and_its_files(seed, tmp_path):
    gurobipy = pytest.importorskip("gurobipy")
    with gurobipy.Env(params={"OutputFlag": 0}) as environment:
        model, variables = random_model(gurobipy, environment, seed, equal=seed % 2 == 1)
        model.write(str(tmp_path / "model.lp"))
        problems = [from_gurobi(model, variables), read_problem(tmp_path / "model.lp")]
        if seed % 2 == 0:
            model.write(str(tmp_path / "model.mps"))
            problems.append(read_problem(tmp_path / "model.mps"))
        rows = np.random.default_rng(seed).normal(0.5, 1.0, size=(8, 10))
        names = [v.VarName for v in variables]
        for row in rows:
            model.setObjective(gurobipy.quicksum(c * v for c, v in zip(row, variables, strict=True)), -1)
            model.optimize()
            for problem in problems:
                order = [names.index(name) for name in problem.names[:10]]
                assert problem.n_costs == 10
                assert row[order] @ problem.solve(row[order]) == pytest.approx(model.ObjVal, abs=1e-6)


def test_what_has_no_bounds_or_no_name_is_refused(tmp_path):
    def read(more="", bounds=" y <= 2", sections=""):
        (tmp_path / "plan.lp").write_text(LP.format(more=more, bounds=bounds, sections=sections))
        return read_problem(tmp_path / "plan.lp", costs=["x", "y"])

    np.testing.assert_array_equal(read(" z = 0 -> x <= 1", " y <= 3", "bin\n z").solve([3.0, 2.0]), [2, 1])
    np.testing.assert_array_equal(
        read(" z = 0 -> x <= 1\n off: z <= 0", " y <= 3", "bin\n z").solve([3.0, 2.0]), [1, 2]
    )
    with pytest.raises(
        InputError, match=r"plan.lp: variable 'y' is semi-continuous, in a special ordered set or in an ind"
    ):
        read(bounds=" -inf <= y <= 2", sections="sos\n s: S1:: x:1 y:2")
    with pytest.raises(
        InputError, match=r"variable .y. is .* it has none on one side. Give it a lower and an upper bound"
    ):
        read(" i: z = 1 -> y >= 1", " -inf <= y", "bin\n z")
    with pytest.raises(InputError, match=r"plan.lp: there is no variable 'w'"):
        read(sections="sos\n s: S1:: x:1 w:2")


def test_added_variables_have_no_costs(tmp_path):
    (tmp_path / "plan.lp").write_text(LP.format(more="", bounds=" 1 <= y <= 2", sections="semi\n y"))
    problem = read_problem(tmp_path / "plan.lp")
    assert (problem.n_costs, problem.names) == (2, ["x", "y", "y on"])
    assert read_problem(tmp_path / "plan.lp", costs="*").n_costs == 2
    assert read_problem(tmp_path / "plan.lp", costs=[[1.0, -1.0]]).n_costs == 1
    np.testing.assert_array_equal(problem.solve([[2.0, 1.0], [2.0, -1.0]]), [[2, 1], [2, 0]])
    assert "sum" in problem.constraint_names
