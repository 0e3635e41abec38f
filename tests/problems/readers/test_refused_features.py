"""Each reader refuses, in words, every feature of its tool that it does not translate, and takes over its neighbours.

The plan is that of three amounts of 0 to 2 that add up to 3 at most; worth 3, 2 and 1 a piece, the best is (2, 1, 0).
"""

from functools import cache

import numpy as np
import pytest

from decidewise.problems import from_cvxpy, from_gurobi, from_linopy, from_pyomo, read_problem

WORTH = [3.0, 2.0, 1.0]


def cases(features):
    return pytest.mark.parametrize(("feature", "outcome"), features.values(), ids=list(features))


def check(read, outcome):
    """Check that a model is refused in such words, or that the best plan is this one."""
    if isinstance(outcome, str):
        with pytest.raises((ValueError, TypeError), match=outcome):
            read()
    else:
        np.testing.assert_allclose(read().solve(WORTH), outcome, atol=1e-6)


MPS = """NAME plan
OBJSENSE
    MAX
ROWS
 N  value
 L  sum
 G  least
COLUMNS
    x0  value  1  sum  1
    x1  value  1  sum  1
    x2  value  1  sum  1
    x2  least  1
RHS
    RHS  sum  3
BOUNDS
 UP B  x0  2
 UP B  x1  2
 UP B  x2  2
ENDATA
"""


def also(lines, before="ENDATA"):
    return MPS.replace(before, f"{lines}\n{before}")


@cases(
    {
        "plan": (MPS, [2, 1, 0]),
        "sos": (also("SOS\n S1 s\n    x0 1\n    x1 2"), [2, 0, 1]),
        "sos1": (also("SOS1\n    s  x0:1  x1:2"), "special ordered sets"),
        "sets": (also("SETS\n S1 s\n    s  x0  1"), "special ordered sets"),
        "indicator": (also("INDICATORS\n IF  sum  x0  1  2"), r"indicator constraints \(line 20\)"),
        "general": (also("GENCONS\n MAX  g\n    x0\n    x1"), "general constraints"),
        "pieces": (also("PWLOBJ\n    x0  0  0\n    x0  1  5"), "piecewise linear costs"),
        "cones": (also("CSECTION  k  0.0  QUAD\n    x0\n    x1"), "cones"),
        "quadratic objective": (also("QUADOBJ\n    x0  x0  -1"), [1, 2, 0]),
        "quadratic matrix": (also("QMATRIX\n    x0  x0  -4"), [0.5, 2, 0.5]),
        "quadratic section": (also("QSECTION  value\n    x0  x0  1"), "quadratic terms"),
        "quadratic constraint": (also("QCMATRIX  sum\n    x0  x0  1"), "quadratic terms"),
        "scenarios": (also("SCENARIOS 2\n NAME 0\n COLUMNS\n    x0  value  2"), "several scenarios"),
        "user cuts": (also("USERCUTS\n L  cut", "COLUMNS"), "user cuts"),
        "objectives": (MPS.replace("N  value", "N  value  1  1  1e-06  0"), "several objectives"),
        "no such section": (also("BRANCH\n UP  x0  1"), "a section BRANCH"),
        "semi-continuous": (MPS.replace("UP B  x0  2", "LO B  x0  1.5\n SC B  x0  1.8"), [1.8, 1.2, 0]),
        "semi-integer": (MPS.replace("UP B  x0  2", "SI B  x0  1"), [1, 2, 0]),
        "negative bound": (MPS.replace("x0  2", "x0  -2"), "x0 has the upper bound -2 and no lower one"),
        "minus infinity": (MPS.replace(" UP B  x0  2", " MI B  x0\n UP B  x0  -2"), [-2, 2, 2]),
        "range": (also("RANGES\n    R  sum  1", "BOUNDS").replace("UP B  x0  2", "UP B  x0  0"), [0, 2, 1]),
        "range of an equation": (also("RANGES\n    R  sum  -2", "BOUNDS").replace(" L  sum", " E  sum"), [2, 1, 0]),
        "lazy": (also("LAZYCONS\n L  lazy", "COLUMNS").replace("x0  value  1", "x0  lazy  1"), [0, 2, 1]),
        "free row": (also(" N  remark", "COLUMNS").replace("x0  value  1", "x0  remark  9"), [2, 1, 0]),
        "three entries": (MPS.replace("x2  value  1", "x2  value  1  least  1"), "leave out a part of these 7 words"),
        "half an entry": (MPS.replace("x0  value  1  sum  1", "x0  value  1  sum"), "line 9: HiGHS would leave out"),
        "three sides": (MPS.replace("sum  3", "least  0  value  0  sum  3"), "leave out a part of these 7 words"),
        "smallest": (MPS.replace("MAX", "MIN"), [0, 0, 0]),
    }
)
def test_mps(tmp_path, feature, outcome):
    (tmp_path / "plan.mps").write_text(feature)
    check(lambda: read_problem(tmp_path / "plan.mps"), outcome)


LP = "max\n value: x0 + x1 + x2\nst\n sum: x0 + x1 + x2 <= 3\nbounds\n x0 <= 2\n x1 <= 2\n x2 <= 2\nend\n"


@cases(
    {
        "plan": (LP, [2, 1, 0]),
        "sos": (LP.replace("end", "sos\n s: S1:: x0:1 x1:2\nend"), [2, 0, 1]),
        "indicator": (LP.replace("bounds", " i: x1 = 2 -> x0 <= 1\nbounds"), "indicator constraints"),
        "general": (LP.replace("end", "General Constraints\n g: x2 = MAX ( x0 , x1 )\nend"), "general constraints"),
        "pieces": (LP.replace("end", "PWLObj\n x0: (0,0) (1,5)\nend"), "piecewise linear costs"),
        "quadratic objective": (LP.replace("x2\nst", "x2 + [ - 4 x0^2 ] / 2\nst"), [0.5, 2, 0.5]),
        "quadratic constraint": (
            LP.replace("bounds", " q: [ x0 * x1 ] <= 1\nbounds"),
            r"quadratic terms in constraints \(line 5\)",
        ),
        "scenarios": (LP.replace("end", "Scenario 1\nMaximize\n 2 x0\nend"), "several scenarios"),
        "lazy": (LP.replace("bounds", "Lazy Constraints\n l: x0 <= 1\nbounds"), "lazy constraints"),
        "user cuts": (LP.replace("bounds", "User Cuts\n l: x0 <= 1\nbounds"), "user cuts"),
        "objectives": (LP.replace("max", "max multi-objectives"), "several objectives"),
        "semi-continuous": (
            LP.replace("x0 <= 2", "1.5 <= x0 <= 1.8").replace("end", "semi-continuous\n x0\nend"),
            [1.8, 1.2, 0],
        ),
        "semi-integer": (LP.replace("end", "gen\n x0\nsemi\n x0\nend"), [2, 1, 0]),
        "negative bound": (LP.replace("x0 <= 2", "x0 <= -2"), "x0 has the upper bound -2 and no lower one"),
        "minus infinity": (LP.replace(" x0 <= 2", " -inf <= x0 <= -2"), [-2, 2, 2]),
        "scenario as a name": (LP.replace("sum:", "scenario:"), [2, 1, 0]),
    }
)
def test_lp(tmp_path, feature, outcome):
    (tmp_path / "plan.lp").write_text(feature)
    check(lambda: read_problem(tmp_path / "plan.lp"), outcome)


@cache
def quiet():
    gurobipy = pytest.importorskip("gurobipy")
    return gurobipy.Env(params={"OutputFlag": 0})


def scenarios(model, x):
    model.NumScenarios = 2
    model.update()
    model.Params.ScenarioNumber = 1
    x[0].ScenNObj = 5.0


def lazy(model, x):
    model.update()
    model.addConstr(x[0] <= 1).Lazy = 1


def removed(model, x):
    sets = model.addSOS(1, x)
    model.update()
    model.remove(sets)


@cases(
    {
        "plan": (lambda model, x: None, [2, 1, 0]),
        "sos": (lambda model, x: model.addSOS(1, x), [2, 0, 0]),
        "removed sos": (removed, [2, 1, 0]),
        "indicator": (
            lambda model, x: model.addGenConstrIndicator(model.addVar(lb=1, vtype="B"), 1, x[0] <= 1),
            [1, 2, 0],
        ),
        "abs": (lambda model, x: model.addGenConstrAbs(model.addVar(), x[0]), "general constraints"),
        "max": (lambda model, x: model.addGenConstrMax(model.addVar(), x), "general constraints"),
        "and": (
            lambda model, x: model.addGenConstrAnd(model.addVar(vtype="B"), list(model.addVars(2, vtype="B").values())),
            "general constraints",
        ),
        "pieces": (
            lambda model, x: model.addGenConstrPWL(x[0], model.addVar(), [0, 1, 2], [0, 1, 5]),
            "general constraints",
        ),
        "nonlinear": (lambda model, x: model.addGenConstrExp(x[0], model.addVar()), "general constraints"),
        "norm": (lambda model, x: model.addGenConstrNorm(model.addVar(), x, 2.0), "general constraints"),
        "pieces of costs": (lambda model, x: model.setPWLObj(x[0], [0, 1, 2], [0, 1, 5]), "piecewise linear costs"),
        "quadratic objective": (lambda model, x: model.setObjective(-2 * x[0] * x[0], -1), [0.5, 2, 0.5]),
        "quadratic constraint": (lambda model, x: model.addConstr(x[0] * x[0] <= 1), "quadratic constraints"),
        "semi-continuous": (lambda model, x: x[0].setAttr("LB", 1.5) or x[0].setAttr("VType", "S"), [2, 1, 0]),
        "semi-integer": (lambda model, x: x[0].setAttr("UB", 1.5) or x[0].setAttr("VType", "N"), [1, 2, 0]),
        "objectives": (
            lambda model, x: [model.setObjectiveN(x[k], k, priority=k) for k in range(2)],
            "several objectives",
        ),
        "one of objectives": (lambda model, x: model.setObjectiveN(x[0], 0, weight=-1), "several objectives"),
        "scenarios": (scenarios, "several scenarios"),
        "lazy": (lazy, [1, 2, 0]),
        "start": (lambda model, x: setattr(x[0], "Start", 1.0), [2, 1, 0]),
        "range": (lambda model, x: model.addRange(x[0] + x[1], 1, 2), [2, 0, 1]),
        "no side": (lambda model, x: model.addConstr(x[0] + x[1] <= float("inf")), [2, 1, 0]),
        "binary": (lambda model, x: x[0].setAttr("VType", "B"), [1, 2, 0]),  # whose bound of 2 says nothing
    }
)
def test_gurobi(feature, outcome):
    model = pytest.importorskip("gurobipy").Model(env=quiet())
    x = [model.addVar(ub=2.0) for _ in range(3)]
    model.addConstr(sum(x) <= 3)
    model.ModelSense = -1
    feature(model, x)
    check(lambda: from_gurobi(model, x), outcome)


def pyomo_domain(domain):
    def feature(pyo, model):
        model.z = pyo.Var(domain=domain(pyo))
        model.link = pyo.Constraint(expr=model.x[0] == model.z)

    return feature


def pyomo_part(build):
    def feature(pyo, model):
        model.part = build(pyo, model)

    return feature


def without(feature):
    def deactivated(pyo, model):
        feature(pyo, model)
        model.part.deactivate()

    return deactivated


def disjunction(pyo, model):
    from pyomo.gdp import Disjunct, Disjunction  # noqa: PLC0415

    model.ways = Disjunct([0, 1])
    for k in range(2):
        model.ways[k].none = pyo.Constraint(expr=model.x[k] <= 0)
    model.either = Disjunction(expr=[model.ways[0], model.ways[1]])


def transformed_disjunction(pyo, model):
    disjunction(pyo, model)
    pyo.TransformationFactory("gdp.bigm").apply_to(model, bigM=10)


def complementarity(pyo, model):
    from pyomo.mpec import Complementarity, complements  # noqa: PLC0415

    return Complementarity(expr=complements(model.x[0] >= 0, model.x[1] >= 0))


def derivative(pyo, model):
    from pyomo.dae import ContinuousSet, DerivativeVar  # noqa: PLC0415

    model.time = ContinuousSet(bounds=(0, 1))
    model.level = pyo.Var(model.time, bounds=(0, 1))
    model.rate = DerivativeVar(model.level)
    model.part = pyo.Constraint(model.time, rule=lambda model, t: model.rate[t] == model.x[0])


def discretized(pyo, model):
    derivative(pyo, model)
    pyo.TransformationFactory("dae.finite_difference").apply_to(model, nfe=2)
    model.start = pyo.Constraint(expr=model.level[0] == 0)


def logical(pyo, model):
    model.flags = pyo.BooleanVar([0, 1])
    return pyo.LogicalConstraint(expr=model.flags[0].implies(model.flags[1]))


def arc(pyo, model):
    from pyomo.network import Arc, Port  # noqa: PLC0415

    model.ports = Port([0, 1])
    for k in range(2):
        model.ports[k].add(model.x[k], "flow")
    return Arc(source=model.ports[0], destination=model.ports[1])


def pieces(pyo, model):
    model.y = pyo.Var()
    return pyo.Piecewise(
        model.y, model.x[0], pw_pts=[0, 1, 2], f_rule=[0, 1, 5], pw_constr_type="EQ", pw_repn="SOS2"
    )  # fmt: skip


def param(pyo, model):
    model.room = pyo.Param(mutable=True, initialize=9.0)
    model.half = pyo.Expression(expr=model.x[0] + model.x[0])
    model.part = pyo.Constraint(expr=model.half <= model.room)
    model.room = 2.0


def block(pyo, model):
    model.part = pyo.Block()
    model.part.none = pyo.Constraint(expr=model.x[0] <= 0)


QUADRATIC = pyomo_part(lambda pyo, model: pyo.Constraint(expr=model.x[0] ** 2 <= 1))
SOS = pyomo_part(lambda pyo, model: pyo.SOSConstraint(var=model.x, sos=1))


@cases(
    {
        "plan": (lambda pyo, model: None, [2, 1, 0]),
        "sos": (SOS, [2, 0, 0]),
        "sos off": (without(SOS), [2, 1, 0]),
        "pieces": (pyomo_part(pieces), [2, 1, 0]),
        "disjunction": (disjunction, "Disjunct.*let one of Pyomo's transformations do so"),
        "transformed disjunction": (transformed_disjunction, [2, 0, 1]),
        "logical": (pyomo_part(logical), "LogicalConstraint"),
        "complementarity": (pyomo_part(complementarity), "Complementarity"),
        "arc": (pyomo_part(arc), "Arc"),
        "derivative": (derivative, "the Pyomo model has a ContinuousSet, time, without a discretization"),
        "discretized": (discretized, [1, 2, 0]),
        "quadratic objective": (
            lambda pyo, model: model.value.set_value(-2 * model.x[0] ** 2),
            [0.5, 2, 0.5],
        ),
        "quadratic constraint": (QUADRATIC, r"constraint \(part\) contains nonlinear terms"),
        "quadratic constraint off": (without(QUADRATIC), [2, 1, 0]),
        "nonlinear": (pyomo_part(lambda pyo, model: pyo.Constraint(expr=pyo.exp(model.x[0]) <= 2)), "nonlinear terms"),
        "if": (
            pyomo_part(lambda pyo, model: pyo.Constraint(expr=pyo.Expr_if(model.x[0] >= 1, 1, 0) <= 0)),
            "nonlinear terms",
        ),
        "objectives": (pyomo_part(lambda pyo, model: pyo.Objective(expr=model.x[0])), "one active objective; it has 2"),
        "some numbers": (pyomo_domain(lambda pyo: pyo.Set(initialize=[0, 3, 7])), r"of the domain \{0, 3, 7\}"),
        "every second": (pyomo_domain(lambda pyo: pyo.RangeSet(0, 8, 4)), r"of the domain \[0:8:4\]"),
        "semi-continuous": (
            pyomo_domain(lambda pyo: pyo.RangeSet(0, 0, 0) | pyo.RangeSet(1.5, 1.8, 0)),
            r"of the domain \[0\] \| \[1.5..1.8\]",
        ),
        "a range of reals": (pyomo_domain(lambda pyo: pyo.RangeSet(0.5, 1.5, 0)), [1.5, 1.5, 0]),
        "a range of whole numbers": (pyomo_domain(lambda pyo: pyo.RangeSet(0, 1)), [1, 2, 0]),
        "binary": (pyomo_domain(lambda pyo: pyo.Boolean), [1, 2, 0]),
        "parameter and expression": (param, [1, 2, 0]),
        "block": (block, [0, 2, 1]),
        "block off": (without(block), [2, 1, 0]),
    }
)
def test_pyomo(feature, outcome):
    pyo = pytest.importorskip("pyomo.environ")
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), bounds=(0, 2))
    model.sum = pyo.Constraint(expr=sum(model.x.values()) <= 3)
    model.value = pyo.Objective(expr=sum(model.x.values()), sense=pyo.maximize)
    feature(pyo, model)
    check(lambda: from_pyomo(model, model.x), outcome)


def test_kernel_and_abstract_models_of_pyomo():
    pyo, kernel = pytest.importorskip("pyomo.environ"), pytest.importorskip("pyomo.kernel")
    with pytest.raises(TypeError, match=r"a model of pyomo.environ, not of pyomo.kernel; got block"):
        from_pyomo(kernel.block())
    with pytest.raises(ValueError, match="the Pyomo model is abstract"):
        from_pyomo(pyo.AbstractModel())


def switch(model, x):
    model.add_indicator_constraints(model.add_variables(binary=True, name="on"), 1, x.sum() <= 1)
    model.add_constraints(model.variables["on"] >= 1)


def linopy_pieces(method):
    def feature(model, x):
        y = model.add_variables(lower=0, upper=1, name="y")
        model.add_piecewise_formulation((x.sel(item=0), [0, 1, 2]), (y, [0, 1, 5]), method=method)

    return feature


def reformulated(model, x):
    model.add_sos_constraints(x, 1, "item")
    model.apply_sos_reformulation()


def linopy_bound(**options):
    def feature(model, x):
        z = model.add_variables(name="z", **options)
        model.add_constraints(x.sel(item=0) - z == 0)
        return z

    return feature


@cases(
    {
        "plan": (lambda model, x: None, [2, 1, 0]),
        "sos": (lambda model, x: model.add_sos_constraints(x, 1, "item"), [2, 0, 0]),
        "reformulated sos": (reformulated, [2, 0, 0]),
        "indicator": (switch, [1, 0, 0]),
        "pieces by sos": (linopy_pieces("sos2"), [1, 2, 0]),
        "pieces by binaries": (linopy_pieces("incremental"), [1, 2, 0]),
        "semi-continuous": (linopy_bound(lower=1, upper=1.5, semi_continuous=True), [1.5, 1.5, 0]),
        "quadratic objective": (
            lambda model, x: model.add_objective((-1 * x * x).sum(), overwrite=True, sense="max"),
            [1.5, 1, 0.5],
        ),
        "scaled variable": (linopy_bound(lower=0, upper=1.5, scaling=10.0), "has scaling factors"),
        "scaled constraint": (lambda model, x: model.add_constraints(x.sum() >= 1, scaling=5.0), "has scaling factors"),
        "scaled objective": (
            lambda model, x: model.add_objective(x.sum(), overwrite=True, scaling=10.0),
            "has scaling factors",
        ),
        "binary": (linopy_bound(binary=True), [1, 2, 0]),
        "fixed": (lambda model, x: linopy_bound(lower=0, upper=5)(model, x).fix(0.5), [0.5, 2, 0.5]),
        "relaxed": (lambda model, x: linopy_bound(lower=0, upper=1.5, integer=True)(model, x).relax(), [1.5, 1.5, 0]),
        "solved before": (lambda model, x: model.solve("highs", output_flag=False), [2, 1, 0]),
    }
)
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of linopy, on interfaces that may change
def test_linopy(feature, outcome):
    linopy, pd = pytest.importorskip("linopy"), pytest.importorskip("pandas")
    model = linopy.Model()
    x = model.add_variables(lower=0, upper=2, coords=[pd.RangeIndex(3, name="item")], name="x")
    model.add_constraints(x.sum() <= 3)
    model.add_objective(x.sum(), sense="max")
    feature(model, x)
    check(lambda: from_linopy(model, x), outcome)


NOT_LINEAR = "the objective is not linear in the parameter 'c'"


@pytest.mark.parametrize("state", ["without a value", "with a value", "solved"])
@cases(
    {
        "plan": (lambda cp, c, x: c @ x, [2, 1, 0]),
        "known costs": (lambda cp, c, x: c @ x - 2.5 * cp.sum(cp.pos(x - 1)), [1, 1, 1]),
        "distance": (lambda cp, c, x: -cp.norm(x - c), NOT_LINEAR),
        "distance of entries": (lambda cp, c, x: -cp.norm1(x - c), NOT_LINEAR),
        "square": (lambda cp, c, x: -cp.sum_squares(x - c), NOT_LINEAR),
        "largest": (lambda cp, c, x: -cp.max(cp.multiply(c, x)), NOT_LINEAR),
        "newsvendor": (lambda cp, c, x: c @ x - cp.sum(cp.pos(c - x)), NOT_LINEAR),
        "norm of costs": (lambda cp, c, x: c @ x - cp.norm(c), NOT_LINEAR),
        "quadratic": (lambda cp, c, x: c @ x - 2 * cp.square(x[0]), [0.5, 2, 0.5]),
        "times a square": (
            lambda cp, c, x: -c @ cp.square(x),
            "the quadratic term of the objective depends on the parameter 'c'",
        ),
        "exponential": (lambda cp, c, x: cp.exp(c) @ x, "not a disciplined parametrised program"),
    }
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # of CVXPY, on what is not a parametrised program
def test_cvxpy(feature, outcome, state):
    cp = pytest.importorskip("cvxpy")
    c, x = cp.Parameter(3, nonneg=True, name="c"), cp.Variable(3)
    model = cp.Problem(cp.Maximize(feature(cp, c, x)), [x >= 0, x <= 2, cp.sum(x) <= 3])
    if state != "without a value":
        c.value = np.ones(3)
    if state == "solved":
        model.solve(solver=cp.CLARABEL)
    check(lambda: from_cvxpy(model, c), outcome)
