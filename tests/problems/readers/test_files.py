"""Files of the kinds that tools write, and of the kinds that go wrong."""

import gzip
import warnings

import numpy as np
import pytest

from decidewise.problems import read_problem
from decidewise.testing.requirements import pickled

PLAN = """NAME          PLAN
OBJSENSE
    MAX
ROWS
 N  VALUE
 N  REMARK
 L  WORK
 G  LEAST
 E  BALANCE
COLUMNS
    M1        'MARKER'   'INTORG'
    price_a   VALUE      1.0        WORK       2.0
    price_a   REMARK     9.0
    M2        'MARKER'   'INTEND'
    price_b   VALUE      1.0        WORK       1.0
    price_b   LEAST      1.0        BALANCE    1.0
    stock     VALUE     -0.5        BALANCE   -1.0
RHS
    RHS       WORK       10.0       LEAST      1.0
    RHS       VALUE     -7.0
RANGES
    RNG       WORK       6.0
BOUNDS
 UP BND       price_a    4.0
 UP BND       price_b    5.0
 MI BND       stock
ENDATA
"""


def written(tmp_path, text, name="plan.mps"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["plan.mps", "PLAN.MPS", "plan.mps.gz"])
def test_an_mps_file(tmp_path, name):
    """Sense, constant, a free row, a range, whole numbers and a variable without a lower bound."""
    problem = read_problem(written(tmp_path, PLAN, name), costs="price_*")

    assert problem.sense == "max"
    assert problem.names == ["price_a", "price_b", "stock"]
    # 4 <= 2a + b <= 10, b >= 1, stock = b, a whole: by hand
    np.testing.assert_allclose(problem.solve([[3.0, 1.0], [-1.0, -2.0], [1.0, 0.9]]), [[4, 2], [2, 1], [4, 2]])
    solution = problem.solution([3.0, 1.0])
    assert solution["stock"] == pytest.approx(2.0)
    lifted = problem.minimize_lifted(np.array([[-3.0, -1.0, 1.0]]))
    assert lifted[0, -1] == pytest.approx(-(7.0 - 0.5 * 2.0))
    twin = pickled(problem)
    np.testing.assert_array_equal(twin.solve([1.0, 0.9]), problem.solve([1.0, 0.9]))


def test_an_lp_file_and_the_sense_that_is_asked_for(tmp_path):
    text = "maximize\n obj: 3 x + 2 y + 5\nsubject to\n c1: x + y <= 4\nbounds\n x <= 3\n y <= 2\nend\n"
    path = written(tmp_path, text, "plan.lp")
    np.testing.assert_allclose(read_problem(path).solve([1.0, 2.0]), [2, 2])
    np.testing.assert_allclose(read_problem(path, sense="min").solve([1.0, 2.0]), [0, 0])


def test_costs_by_name_in_any_order(tmp_path):
    path = written(tmp_path, PLAN)
    forth = read_problem(path, costs=["price_a", "price_b"])
    back = read_problem(path, costs=["price_b", "price_a"])
    np.testing.assert_array_equal(forth.solve([3.0, 1.0]), back.solve([1.0, 3.0])[::-1])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "plan.mps",
            PLAN.replace(" MI BND       stock", " UP BND       stock     -1.0"),
            "variable stock has the upper",
        ),
        ("plan.mps", "garbage\n1 2 3\n", "HiGHS cannot read plan.mps.* Is it a complete MPS file"),
        ("plan.mps", PLAN[:300], "HiGHS cannot read plan.mps"),
        ("plan.mps", PLAN.replace("price_a ", "price a "), "HiGHS cannot read plan.mps"),
        ("plan.mps", "", "HiGHS cannot read plan.mps. Is it a complete MPS file"),
        ("plan.mps", PLAN.replace("WORK       10.0", "WORK       10,5"), "plan.mps, line 19: '10,5' is not a number"),
        ("plan.mps", PLAN.replace("WORK       10.0", "WORK       ten"), "plan.mps, line 19: 'ten' is not a number"),
        ("plan.mps", PLAN.replace("WORK       2.0", "WORK       NaN"), "plan.mps, line 12: 'NaN' is not a number"),
        ("plan.mps", PLAN.replace("price_b    5.0", "price_b    5.0x"), "plan.mps, line 25: '5.0x' is not a number"),
        (
            "plan.mps",
            PLAN.replace("BND       price_b", "BND       prize_b"),
            "line 25: a bound of variable 'prize_b', which has no column; the nearest of 3 names .*'price_b'",
        ),
        ("plan.mps", PLAN.replace("MAX", "LARGEST"), "plan.mps, line 3: the sense must be MAX or MIN; got 'LARGEST'"),
        (
            "plan.mps",
            PLAN.replace("RHS\n    RHS", "    price_b   WORK   1.0\nRHS\n    RHS"),
            "line 18: variable 'price_b' is already there",
        ),
        ("plan.mps", PLAN.replace("WORK       10.0", "WORK       -9.0"), "plan.mps: the region is empty"),
        (
            "plan.mps",
            PLAN.replace("stock ", "name  ").replace("  stock", "  name"),
            "plan.mps, line 17: HiGHS takes the name 'name' as that of a section. Rename it",
        ),
        ("plan.mps", PLAN.replace("RNG ", "NAME"), "line 22: HiGHS takes the name 'NAME' as that of a section"),
        (
            "plan.mps",
            PLAN.replace("COLUMNS", "columns").replace("WORK       2.0", "WORK       NaN"),
            "plan.mps, line 12: 'NaN' is not a number",
        ),
        (
            "plan.mps",
            "NAME P\nROWS\n N cost\n L  a b\nCOLUMNS\n x  a  1.0  cost  1.0\nRHS\n s  a  4.0\nENDATA\n",
            "HiGHS cannot read plan.mps: a name has spaces, .* ignored. Write names without spaces",
        ),
        ("plan.lp", "this is not\nan lp file 12 ~~ >>\n", "plan.lp must start with the sense .*; got 'this'"),
        ("plan.lp", "", "plan.lp must start with the sense .*; got nothing"),
        ("plan.lp", "x + y\nst\n x + y >= 3\nend\n", "must start with the sense of its objective"),
        ("plan.lp", "max\n?!)))(\n", "plan.lp does not end with the word End. Is it complete"),
        ("plan.lp", "min x st x + y >= 3 bounds x <= 2\n", "plan.lp does not end with the word End"),
        ("plan.lp", "min\n x + 2 x\nst\n c1: x >= 3\nend\n", "line 2: 'x' is in the objective twice"),
        ("plan.lp", "min\n 2 (x + y)\nst\n c1: x + y >= 3\nend\n", "line 2: '\\(x' has a parenthesis"),
        ("plan.lp", "min x\nst\n c1: x >= 1\n c2: 2 (x + y) >= 3\nend\n", "line 4: '\\(x' has a parenthesis"),
        ("plan.lp", "min\n x\nst\n c1: y <= 2\n x + y - 1 >= 3\nend\n", "line 5: the number 1 is on the left"),
        ("plan.lp", "min\n x\nst\n \\ twice\n 4 + 2 x >= 3\nend\n", "line 5: the number 4 is on the left"),
        ("plan.lp", "min\n x\nst\n c1: 1 <= x + y <= 3\nend\n", "line 4: the number 1 .* as two constraints"),
        ("plan.lp", "min\n obj: x\nst\n c: nan x + y >= 3\nend\n", "plan.lp has NaN"),
        (
            "plan.mps",
            PLAN.replace("price_b   VALUE      1.0", "price_b   VALUE      nan"),
            "plan.mps, line 15: 'nan' is not a number",
        ),
        (
            "plan.mps",
            "*SENSE:Maximize\n" + PLAN.replace("OBJSENSE\n    MAX\n", ""),
            "only in a comment that it maximises",
        ),
        ("plan.lp", "max\n obj: x[0] + x[1]\nst\n c1: x[0] + x[1] <= 4\nend\n", r"names such as x\[0\].*Write an .mps"),
        ("plan.txt", PLAN, r"'plan.txt' must end in .mps, .lp"),
        ("plan.mps", PLAN.replace("price_a", "a").replace("price_b", "b"), "no variable matches costs='price_"),
    ],
)
def test_what_is_refused_in_a_sentence(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        read_problem(written(tmp_path, text, name), costs="price_*" if "price_*" in message or ".mps" in name else None)


def test_a_file_that_is_not_there_and_one_that_cannot_be_unpacked(tmp_path):
    with pytest.raises(ValueError, match=r"there is no file 'nowhere.mps'"):
        read_problem("nowhere.mps")
    broken, packed = tmp_path / "plan.mps.gz", gzip.compress(PLAN.encode())
    for content in (packed[:60], PLAN.encode(), packed[:40] + b"\xff" * 9 + packed[49:], packed[:-4] + b"1234"):
        broken.write_bytes(content)
        with pytest.raises(ValueError, match=r"plan.mps.gz cannot be unpacked"):
            read_problem(broken)
    (tmp_path / "latin.mps").write_bytes(PLAN.replace("stock", "stück").encode("latin1"))
    with pytest.raises(ValueError, match=r"latin.mps is not written in UTF-8"):
        read_problem(tmp_path / "latin.mps")


def test_files_that_look_strange_are_read(tmp_path):
    """Comments, exponents of Fortran, names of sections as names, no names of sets, letters beyond ASCII."""
    expected = read_problem(written(tmp_path, PLAN), costs="price_*").solve([3.0, 1.0])
    odd = PLAN.replace("VALUE", "ROWS").replace("stock", "größe").replace("LEAST", "BOUNDS")
    odd = odd.replace("10.0 ", "1.0D1").replace("BND ", "   ").replace("5.0\n", "5.0 $ at most\n* nothing here\n")
    problem = read_problem(written(tmp_path, odd), costs="price_*")
    np.testing.assert_array_equal(problem.solve([3.0, 1.0]), expected)
    assert "größe" in problem.names


def test_comments_at_the_end_of_lines(tmp_path):
    expected = read_problem(written(tmp_path, PLAN), costs="price_*").solve([3.0, 1.0])
    for mark in ("$", "*"):
        odd = PLAN.replace("\n L  WORK", f" {mark}\n L  WORK {mark}hours").replace("2.0\n", f"2.0 {mark} of 5\n")
        odd = odd.replace("RHS\n", f"RHS {mark}sides\n").replace("6.0\n", f"6.0  {mark}\n")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            problem = read_problem(written(tmp_path, odd), costs="price_*")
        np.testing.assert_array_equal(problem.solve([3.0, 1.0]), expected)
    named = PLAN.replace("WORK", "$WORK").replace("BND", "*BND")  # no comments, but names
    problem = read_problem(written(tmp_path, named), costs="price_*")
    np.testing.assert_array_equal(problem.solve([3.0, 1.0]), expected)


@pytest.mark.parametrize(
    "text",
    [
        "min obj: 2 x + 3y + 5 st c1: 2x + 1e0 y + 0 >= +4 c2: x - y >= -Inf 003: x <= 1.5e+00 bounds y <= 9 end",
        "\\ two\nMINIMIZE\n\n 2 x\n + 3 y + 5\nSubject  To\n 2 x\n + y >= 4\n x <= 1.5\nBound\n y <= 9\nEND\n\\ done",
    ],
)
def test_lp_files_that_look_strange_are_read(tmp_path, text):
    problem = read_problem(written(tmp_path, text, "plan.lp"), costs=["x"])
    np.testing.assert_allclose(problem.solve([2.0]), [1.5])  # and y = 1, since 2x + y >= 4
    assert problem.minimize_lifted(np.array([[2.0, 1.0]]))[0, -1] == pytest.approx(3.0 + 5.0)


def test_what_highs_repairs_is_a_warning_in_its_words(tmp_path):
    path = written(tmp_path, PLAN.replace("RHS       VALUE     -7.0", "RHS       NOWHERE   -7.0"))
    with pytest.warns(UserWarning, match=r"plan.mps: HiGHS says: .*NOWHERE"):
        read_problem(path, costs="price_*")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # on what comes with PuLP 4
def test_pulp(tmp_path):
    pulp = pytest.importorskip("pulp")
    model = pulp.LpProblem("plan", pulp.LpMaximize)
    a, b = pulp.LpVariable("price_a", 0, 3), pulp.LpVariable("price_b", 0, 3)
    model += a + 2 * b
    model += a + b <= 4
    model.writeMPS(str(tmp_path / "plan.mps"))
    model.writeLP(str(tmp_path / "plan.lp"))
    with pytest.raises(ValueError, match="Pass sense='max'"):
        read_problem(tmp_path / "plan.mps")
    for name, sense in (("plan.mps", "max"), ("plan.lp", None)):
        np.testing.assert_allclose(read_problem(tmp_path / name, sense=sense).solve([1.0, 2.0]), [1, 3])


def by_gurobi(path):
    gurobipy = pytest.importorskip("gurobipy")
    with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.Model(env=environment) as model:
        x = model.addVars(3, ub=[4.0, 5.0, gurobipy.GRB.INFINITY], obj=1.0, vtype=["I", "C", "C"], name="x")
        y = model.addVar(lb=-gurobipy.GRB.INFINITY, obj=-0.5, name="y")
        model.addConstr(2 * x[0] + x[1] + x[2] <= 10)
        model.addRange(x[0] + x[1], 1, 7)
        model.addConstr(x[2] - y == 1)
        model.ModelSense = gurobipy.GRB.MAXIMIZE
        model.ObjCon = 3.0
        model.write(str(path))


def by_pyomo(path):
    pyo = pytest.importorskip("pyomo.environ")
    model = pyo.ConcreteModel()
    upper, kinds = (4, 5, None), (pyo.Integers, pyo.Reals, pyo.Reals)
    model.x = pyo.Var(range(3), bounds=lambda _, k: (0, upper[k]), domain=lambda _, k: kinds[k])
    model.y = pyo.Var()
    model.work = pyo.Constraint(expr=2 * model.x[0] + model.x[1] + model.x[2] <= 10)
    model.sum = pyo.Constraint(expr=(1, model.x[0] + model.x[1], 7))
    model.equal = pyo.Constraint(expr=model.x[2] - model.y == 1)
    income = model.x[0] + model.x[1] + model.x[2] - 0.5 * model.y + 3
    model.value = pyo.Objective(expr=income, sense=pyo.maximize)
    model.write(str(path), io_options={"symbolic_solver_labels": True})


def by_ortools(path):
    linear_solver = pytest.importorskip("ortools.linear_solver.pywraplp")
    solver = linear_solver.Solver.CreateSolver("SCIP")
    x = [solver.IntVar(0, 4, "x_0"), solver.NumVar(0, 5, "x_1"), solver.NumVar(0, solver.infinity(), "x_2")]
    y = solver.NumVar(-solver.infinity(), solver.infinity(), "y")
    solver.Add(2 * x[0] + x[1] + x[2] <= 10)
    solver.Add(linear_solver.SumArray([x[0], x[1]]) <= 7)
    solver.Add(linear_solver.SumArray([x[0], x[1]]) >= 1)
    solver.Add(x[2] - y == 1)
    solver.Maximize(x[0] + x[1] + x[2] - 0.5 * y + 3)
    path.write_text(solver.ExportModelAsMpsFormat(fixed_format=False, obfuscate=False))


@pytest.mark.parametrize("writer", [by_gurobi, by_pyomo, by_ortools])
def test_mps_files_of_other_tools(tmp_path, writer):
    """The same program by each; its best plan for the values (5, 2, 1) and -0.5 per y, by hand."""
    writer(tmp_path / "plan.mps")
    problem = read_problem(tmp_path / "plan.mps", costs="x*")
    assert (problem.n_costs, problem.sense, problem.has_known) == (3, "max", True)
    np.testing.assert_allclose(problem.solve([5.0, 2.0, 1.0]), [4, 2, 0], atol=1e-8)
    np.testing.assert_allclose(problem.solve([-1.0, -1.0, 3.0]), [0, 1, 9], atol=1e-8)
    lifted = problem.minimize_lifted(np.array([[-5.0, -2.0, -1.0, 1.0]]))
    assert lifted[0, -1] == pytest.approx(-(3.0 - 0.5 * -1.0))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_come_back_as_highs_wrote_them(tmp_path, seed):
    import highspy  # noqa: PLC0415
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    n, m = 6, 4
    A = rng.integers(-3, 4, size=(m, n)) * rng.uniform(0.5, 2.0, size=(m, n))
    inside = rng.integers(0, 3, size=n)
    low, high = A @ inside - rng.uniform(0, 3, size=m), A @ inside + rng.uniform(0, 3, size=m)
    low[0], high[1] = -np.inf, np.inf
    low[2] = high[2] = A[2] @ inside
    lower, upper = inside - rng.integers(0, 3, size=n).astype(float), inside + rng.integers(0, 4, size=n).astype(float)
    whole = rng.integers(0, 2, size=n)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for j in range(n):
        solver.addVar(lower[j], upper[j])
        solver.passColName(j, f"x{j}")
        if whole[j]:
            solver.changeColIntegrality(j, highspy.HighsVarType.kInteger)
    for i in range(m):
        solver.addRow(low[i], high[i], n, np.arange(n), A[i])
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize if seed % 2 else highspy.ObjSense.kMinimize)
    solver.writeModel(str(tmp_path / "plan.mps"))

    problem = read_problem(tmp_path / "plan.mps")
    assert problem.sense == ("max" if seed % 2 else "min")
    for costs in rng.normal(size=(5, n)):
        sign = -1.0 if seed % 2 else 1.0
        best = milp(
            sign * costs, integrality=whole, bounds=Bounds(lower, upper), constraints=LinearConstraint(A, low, high)
        )
        assert costs @ problem.solve(costs) == pytest.approx(sign * best.fun, abs=1e-6)
