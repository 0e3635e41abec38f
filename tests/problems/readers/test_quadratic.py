"""Each reader takes a quadratic objective over as a known part, to the same program.

Three amounts of 0 to 2, that add up to 3 at most, are worth `costs·w - ½ (w₀² + w₀w₁ + w₁²)`.
"""

import numpy as np
import pytest

from decidewise.problems import (
    ConicProgram,
    LinearProgram,
    QuadraticProgram,
    from_cvxpy,
    from_gurobi,
    from_linopy,
    from_pyomo,
    read_problem,
)

Q = np.array([[-1.0, -0.5, 0.0], [-0.5, -1.0, 0.0], [0.0, 0.0, 0.0]])
PLAN = QuadraticProgram(Q, [[1.0, 1.0, 1.0]], [3.0], upper=2, sense="max")
COSTS = np.random.default_rng(0).normal(size=(10, 3))
MPS = """NAME plan
OBJSENSE
    MAX
ROWS
 N  value
 L  sum
COLUMNS
    x0  sum  1
    x1  sum  1
    x2  sum  1
RHS
    RHS  sum  3
BOUNDS
 UP B  x0  2
 UP B  x1  2
 UP B  x2  2
{}ENDATA
"""
QUADOBJ = "QUADOBJ\n    x0  x0  -1\n    x0  x1  -0.5\n    x1  x1  -1\n"
LP = "max\n value: 0 x0{}\nst\n sum: x0 + x1 + x2 <= 3{}\nbounds\n x0 <= 2\n x1 <= 2\n x2 <= 2\nend\n"


def check(problem, offset=0.0):
    assert type(problem) is QuadraticProgram
    np.testing.assert_allclose(problem.solve(COSTS), PLAN.solve(COSTS), atol=1e-9)
    expected, costs = PLAN.lifted, np.column_stack([COSTS, -np.ones(10)])
    known = problem.lifted.solve(costs)[:, -1]
    np.testing.assert_allclose(known, expected.solve(costs)[:, -1] - offset, atol=1e-9)


def read(folder, name, text):
    (folder / name).write_text(text)
    return read_problem(folder / name)


@pytest.mark.parametrize(
    "section",
    [
        QUADOBJ,
        QUADOBJ.replace("x0  x1", "x1  x0"),
        "QMATRIX\n    x0  x0  -1\n    x0  x1  -0.5\n    x1  x0  -0.5\n    x1  x1  -1\n",
    ],
    ids=["lower", "upper", "matrix"],
)
def test_mps(tmp_path, section):
    check(read(tmp_path, "plan.mps", MPS.format(section)))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (QUADOBJ + "    x1  x0  -0.5\n", "line 21: the entry of 'x1' and 'x0' is already there"),
        (QUADOBJ.replace("x1  x1", "x1  x7"), "line 20: a square of variable 'x7', which has no column"),
        (QUADOBJ.replace("-0.5", "-0,5"), "line 19: '-0,5' is not a number"),
        (QUADOBJ.replace("-0.5", "-0.5 x2 3"), "HiGHS would leave out a part of these 5 words"),
        (QUADOBJ.replace("QUADOBJ", "QMATRIX"), "not symmetric"),
        (QUADOBJ.replace("-", ""), "plan.mps: quadratic must be negative semidefinite .* largest eigenvalue is 1.5"),
    ],
)
def test_mistakes_in_mps(tmp_path, section, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "plan.mps", MPS.format(section))


def test_lp(tmp_path):
    check(read(tmp_path, "plan.lp", LP.format(" + [ - x0^2 - x0 * x1\n - x1 ^ 2 ] / 2", "")))
    for objective, constraint, message in (
        (" + [ - x0^2 ]", "", r"line 2: the quadratic term of the objective must end in \] / 2"),
        (" + [ - x0^2 ] / 2 + x0", "", "line 2: 'x0' is in the objective twice"),
        ("", "\n q: [ x0^2 ] <= 3", r"quadratic terms in constraints \(line 5\)"),
        (" + [ x0^2 ] / 2", "", "largest eigenvalue is 1"),
    ):
        with pytest.raises(ValueError, match=message):
            read(tmp_path, "plan.lp", LP.format(objective, constraint))
    with pytest.raises(ValueError, match="the objective is quadratic, and some variables are in whole numbers"):
        read(tmp_path, "plan.lp", LP.format(" + [ - x0^2 ] / 2", "").replace("end", "gen\n x1\nend"))


def test_toml(tmp_path):
    text = f'kind = "quadratic_program"\nquadratic = {Q.tolist()}\nA_ub = [[1, 1, 1]]\nb_ub = [3]\nsense = "max"\n'
    check(read(tmp_path, "plan.toml", text + "upper = 2\n"))
    (tmp_path / "plan.mps").write_text(MPS.format(QUADOBJ))
    check(read(tmp_path, "file.toml", 'kind = "file"\npath = "plan.mps"\n'))


class TestCvxpy:
    cp = pytest.importorskip("cvxpy")

    def test_forms_and_squares(self):
        cp = self.cp
        c, w, root = cp.Parameter(3), cp.Variable(3), np.linalg.cholesky(-Q[:2, :2]).T
        limits = [w >= 0, w <= 2, cp.sum(w) <= 3]
        for wear in (cp.quad_form(w, -Q, assume_PSD=True) / 2, cp.sum_squares(root @ w[:2]) / 2):
            check(from_cvxpy(cp.Problem(cp.Maximize(c @ w - wear + 4), limits), c), offset=4.0)
        shifted = from_cvxpy(cp.Problem(cp.Maximize(c @ (w + 1) - cp.quad_form(w, -Q, assume_PSD=True) / 2), limits), c)
        np.testing.assert_allclose(shifted.solve(COSTS), PLAN.solve(COSTS) + 1, atol=1e-9)

    def test_among_cones_it_is_one(self):
        cp = self.cp
        c, w = cp.Parameter(3), cp.Variable(3)
        model = cp.Problem(cp.Maximize(c @ w - cp.sum_squares(w)), [cp.norm(w) <= 1, w >= 0])
        problem = from_cvxpy(model, c)
        assert type(problem) is ConicProgram
        c.value = COSTS[0]
        model.solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(problem.solve(COSTS[0]), w.value, atol=1e-4)

    def test_what_is_refused(self):
        cp = self.cp
        c, w, whole = cp.Parameter(3, name="c"), cp.Variable(3), cp.Variable(3, integer=True)
        for squares in (cp.sum_squares(w - c), cp.sum_squares(cp.multiply(c, w))):
            with pytest.raises(ValueError, match="the objective is not linear in the parameter 'c'"):
                from_cvxpy(cp.Problem(cp.Minimize(c @ w + squares), [w >= 0]), c)
        with pytest.raises(ValueError, match="has cones or squares, and some variables are in whole numbers"):
            from_cvxpy(cp.Problem(cp.Minimize(c @ whole + cp.sum_squares(whole)), [whole >= 0, whole <= 2]), c)


def test_gurobi():
    gurobipy = pytest.importorskip("gurobipy")
    with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.Model(env=environment) as model:
        w = model.addMVar(3, ub=2.0)
        model.addConstr(w.sum() <= 3)
        model.setObjective(w @ Q @ w / 2 + 4, gurobipy.GRB.MAXIMIZE)
        check(from_gurobi(model, w), offset=4.0)
        np.testing.assert_allclose(from_gurobi(model, w, solver="gurobi").solve(COSTS), PLAN.solve(COSTS), atol=1e-3)


def test_linopy():
    linopy, pd = pytest.importorskip("linopy"), pytest.importorskip("pandas")
    model = linopy.Model()
    a, b, c = (model.add_variables(lower=0, upper=2, name=name) for name in "abc")
    model.add_constraints(a + b + c <= 3)
    model.add_objective(-0.5 * a * a - 0.5 * a * b - 0.5 * b * b, sense="max")
    check(from_linopy(model, [a, b, c]))
    assert pd is not None  # which linopy needs


def test_pyomo():
    pyo = pytest.importorskip("pyomo.environ")
    model = pyo.ConcreteModel()
    model.w = pyo.Var(range(3), bounds=(0, 2))
    model.sum = pyo.Constraint(expr=sum(model.w.values()) <= 3)
    wear = model.w[0] ** 2 + model.w[0] * model.w[1] + model.w[1] ** 2
    model.value = pyo.Objective(expr=4 - wear / 2, sense=pyo.maximize)
    check(from_pyomo(model, model.w), offset=4.0)
    assert str(model.value.expr) == str(4 - wear / 2)  # the model stays as it is
    model.rest = pyo.Var(bounds=(0, 1))
    model.value.set_value(4 - wear / 2 - model.rest**2 + 3 * model.rest)  # in the objective alone
    assert from_pyomo(model, model.w).solution(COSTS[0])["rest"] == pytest.approx(1.0)


def test_a_form_of_zeros_is_linear(tmp_path):
    problem = read(tmp_path, "plan.mps", MPS.format("QUADOBJ\n    x0  x0  0\n"))
    assert type(problem) is LinearProgram
