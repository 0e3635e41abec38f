"""Linear programs against SciPy, which solves each row alone; ties, failures, copies, and what is refused."""

import pickle
import threading

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array
from sklearn.base import clone

from decidewise import DecisionRegressor, FeasibilityWarning, SolverError
from decidewise.problems import LinearProgram, ParallelProblem
from decidewise.solvers import highs, vertices
from decidewise.solvers.vertex_walks import VertexWalks
from decidewise.testing import check_problem
from decidewise.testing.requirements import pickled

HOURS = 24
UNIT, LEVEL = np.eye(HOURS), np.eye(HOURS) - np.eye(HOURS, k=-1)
BATTERY = {
    "A_eq": csr_array(np.hstack([-0.9 * UNIT, UNIT, LEVEL])),
    "b_eq": np.zeros(HOURS),
    "lower": 0,
    "upper": [1] * (2 * HOURS) + [4] * HOURS,
}
SOLD = np.hstack([-UNIT, UNIT, 0 * UNIT])
NAMES = [f"{what}[{hour}]" for what in ("buy", "sell", "level") for hour in range(HOURS)]


def battery(**options):
    return LinearProgram(**BATTERY, **{"costs": csr_array(SOLD), "sense": "max", "names": NAMES, **options})


def prices(n, seed=0):
    rng = np.random.default_rng(seed)
    day = 50 + 20 * np.sin(np.arange(HOURS) / 4)
    return day + rng.normal(size=(n, 3)) @ rng.normal(size=(3, HOURS)) * 8 + rng.normal(size=(n, HOURS))


def least(costs, problem):
    """SciPy's value for each row of costs of all variables."""
    bounds = np.column_stack([np.zeros(3 * HOURS), BATTERY["upper"]])
    return [linprog(row, A_eq=BATTERY["A_eq"], b_eq=BATTERY["b_eq"], bounds=bounds).fun for row in costs]


def random_program(seed, m, n, **options):
    rng = np.random.default_rng(seed)
    A = np.where(rng.uniform(size=(m, n)) < 0.3, rng.uniform(0.5, 2.0, size=(m, n)), 0.0)
    return LinearProgram(A, A.sum(axis=1) * 0.3, upper=1, **options)


def test_a_map_with_auxiliary_variables():
    costs, problem = prices(60), battery()

    decisions = problem.solve(costs)

    np.testing.assert_allclose((costs * decisions).sum(axis=1), -np.array(least(-costs @ SOLD, problem)), rtol=1e-9)
    solution = problem.solution(costs)
    assert list(solution) == NAMES
    sold = [solution[f"sell[{hour}]"] - solution[f"buy[{hour}]"] for hour in range(HOURS)]
    np.testing.assert_allclose(np.transpose(sold), decisions, atol=1e-12)
    assert problem.polyhedron is None
    assert "expressions of variables" in problem.missing["polyhedron"]
    check_problem(problem, tolerance=1e-9)


def test_known_costs():
    fee = np.concatenate([np.full(HOURS, 2.0), np.zeros(2 * HOURS)])
    costs, problem = prices(40), battery(known=-fee, offset=7.0)

    decisions = problem.solve(costs)
    lifted = problem.minimize_lifted(np.column_stack([-costs, np.ones(40)]))

    assert problem.has_known
    assert not battery().has_known
    np.testing.assert_array_equal(lifted[:, :-1], decisions)
    np.testing.assert_allclose(
        (-costs * decisions).sum(axis=1) + lifted[:, -1], np.array(least(-costs @ SOLD + fee, problem)) - 7, rtol=1e-9
    )
    assert "known costs" in problem.missing["polyhedron"]
    scaled = problem.minimize_lifted(3.0 * np.column_stack([-costs, np.ones(40)]))
    np.testing.assert_allclose(scaled, lifted, atol=1e-9)


@pytest.mark.parametrize(("m", "n"), [(30, 60), (110, 220)], ids=["walks", "highs"])
def test_the_way_to_an_answer_cannot_be_seen(m, n):
    """Ties and degenerate vertices: the same decisions alone, in any order, at any scale, after any other rows."""
    problem, rng = random_program(0, m, n), np.random.default_rng(1)
    costs = np.vstack([rng.integers(-3, 1, size=(20, n)), -rng.uniform(size=(10, n))]).astype(float)
    together = problem.solve(costs)

    alone = [random_program(0, m, n).solve(row) for row in costs[::4]]
    np.testing.assert_allclose(alone, together[::4], atol=1e-9)
    problem.solve(-rng.uniform(size=(50, n)))
    np.testing.assert_allclose(problem.solve(1e4 * costs[::-1])[::-1], together, atol=1e-9)
    region = problem.polyhedron
    expected = [linprog(row, A_ub=region.A_ub, b_ub=region.b_ub, bounds=(0, 1)).fun for row in costs]
    np.testing.assert_allclose((costs * together).sum(axis=1), expected, rtol=1e-8)


@pytest.mark.parametrize("huge", [1e6, 1e9, 1e15])
@pytest.mark.parametrize(("m", "n"), [(30, 60), (110, 220)], ids=["walks", "highs"])
def test_costs_that_forbid_leave_the_others_exact(m, n, huge):
    rng = np.random.default_rng(2)
    costs, forbidden = -rng.uniform(1, 2, size=(5, n)), np.arange(n) % 7 == 0
    program = random_program(0, m, n)
    without = random_program(0, m, n).polyhedron
    closed = LinearProgram(without.A_ub, without.b_ub, upper=np.where(forbidden, 0.0, 1.0))

    decisions = program.solve(np.where(forbidden, huge, costs))

    np.testing.assert_allclose(decisions, closed.solve(np.where(forbidden, 0.0, costs)), atol=1e-7)


@pytest.mark.parametrize("m", [0, 1100], ids=["without constraints", "highs"])
def test_the_large_cost_of_a_variable_that_is_fixed_leaves_the_others_exact(m):
    rng = np.random.default_rng(0)
    n, decades = 30, np.arange(30) % 13
    upper = np.where(decades < 11, 1.0 + np.arange(30) % 3, 0.0)  # the largest costs are those of what cannot move
    never_binding = {"A_ub": np.ones((m, n)), "b_ub": np.full(m, 100.0)} if m else {}
    costs = rng.normal(size=(40, n)) * 10.0**decades

    decisions = LinearProgram(upper=upper, **never_binding).solve(costs)

    np.testing.assert_array_equal(decisions, np.where(costs < 0, upper, 0.0))


def test_whole_numbers_equal_scipy():
    rng = np.random.default_rng(3)
    A, c = rng.integers(1, 9, size=(3, 12)).astype(float), rng.normal(size=12)
    model = {"integrality": rng.integers(0, 2, size=12), "bounds": Bounds(0, 3)}
    constraints = [LinearConstraint(A, lb=4, ub=20), (np.ones((1, 12)), 5, 5)]
    problem = LinearProgram.from_milp(c, **model, constraints=constraints, costs=range(0, 12, 2))
    costs = rng.normal(size=(6, 6))

    lifted = problem.minimize_lifted(np.column_stack([costs, np.ones(6)]))

    for row, values in zip(costs, lifted, strict=True):
        whole = c.copy()
        whole[::2] = row
        expected = milp(
            whole, **model, constraints=[LinearConstraint(A, 4, 20), LinearConstraint(np.ones((1, 12)), 5, 5)]
        )
        assert row @ values[:-1] + values[-1] == pytest.approx(expected.fun, abs=1e-6)
    relaxed = problem.minimize_relaxation(costs)
    assert np.any(np.abs(relaxed - relaxed.round()) > 1e-3)


def test_the_contract_in_whole_numbers():
    weights = np.random.default_rng(4).uniform(3.0, 8.0, size=(2, 5)).round(1)
    problem = LinearProgram(weights, [9.0, 11.0], upper=1, integrality=1, sense="max")
    costs = np.random.default_rng(5).integers(-2, 5, size=(8, 5))
    check_problem(problem, costs=costs, tolerance=0.0)
    packs = np.array([pack for pack in np.ndindex((2,) * 5) if np.all(weights @ pack <= [9.0, 11.0])])
    np.testing.assert_array_equal((costs * problem.solve(costs)).sum(axis=1), (costs @ packs.T).max(axis=1))


@pytest.mark.parametrize("sides", [[[7.0, 9.0]], [[7.0, 9.0], [6.5, 8.0]]], ids=["one region", "by row"])
def test_a_vertex_that_is_whole_needs_no_branching_and_all_others_get_it(sides, monkeypatch):
    rng = np.random.default_rng(8)
    weights, costs = rng.uniform(1.0, 3.0, size=(2, 8)).round(1), rng.normal(size=(40, 8))
    sides = np.resize(sides, (40, 2)) if len(sides) > 1 else sides[0]
    problem = LinearProgram(weights, sides, upper=1, integrality=1, sense="max", solver="highs")
    relaxed = -problem.minimize_relaxation(-costs)
    whole = np.abs(relaxed - relaxed.round()).max(axis=1) < 1e-9
    branched = []
    solve = highs._Integers.solve
    monkeypatch.setattr(highs._Integers, "solve", lambda self, *row: branched.append(row) or solve(self, *row))

    decisions = problem.solve(costs)

    assert 0 < len(branched) == (~whole).sum() < 40
    packs = np.array(list(np.ndindex((2,) * 8)), dtype=float)
    for row, limit, decision in zip(costs, np.broadcast_to(sides, (40, 2)), decisions, strict=True):
        fits = packs[(packs @ weights.T <= limit + 1e-9).all(axis=1)]
        assert row @ decision == pytest.approx((fits @ row).max(), abs=1e-9)
    np.testing.assert_array_equal(decisions, decisions.round())


def test_a_row_without_whole_numbers_is_named_among_rows_whose_vertices_are_whole():
    sums = np.array([[2.0], [4.0], [3.0], [2.0]])
    problem = LinearProgram(A_eq=[[2.0, 2.0]], b_eq=sums, upper=5, integrality=1)
    with pytest.raises(SolverError, match="row 2: HiGHS ended with status 'Infeasible'"):
        problem.solve([[1.0, 2.0]] * 4)


def test_a_mixed_program_that_the_presolve_of_highs_1_14_gets_wrong():
    problem = LinearProgram([[2.0, 1.0]], [10.0], lower=[0, 1], upper=[4, 5], integrality=[1, 0], sense="max")
    np.testing.assert_allclose(problem.solve([3.0, 0.5]), [4, 2])


#: A model of the shape of `bound_implied` among the tests of HiGHS: for each column its rows, whose entries are 1
#: or -1 unless `*` names another; the columns in `COUNTS` are continuous up to 16, all others 0 or 1.
CHAINS = """
14:10 16:-10,596 17:-10,960*100 40:26 41:-26 43:-26,960*100 44:-27,28 46:-28,578 173:-109 189:120 191:-120,651
192:-120,960*100 260:-161,960*25 267:166 269:-166,538 270:-166,960*25 325:-203 331:208 333:-208,558
334:-208,960*100 358:537 365:226 368:-226,960*25 369:-226,960*100 383:611 390:-239,836 414:256
417:-256,589,960*100 418:258 420:-258,589 421:-258,591,960*25 441:536,960*25 446:274 448:-274,673
449:-274,563,960*100 522:-323,837 530:330 531:-330 532:-330 536:334 538:-334,591 539:-334,960*100 572:-355,356
573:-356 575:-356,960*100 584:364 586:-364,538 587:-364,960*25 609:380 610:-380 611:-380 685:-427,428 686:-428
687:-428,576 728:647,960*25 732:-455,456 733:-456 734:-456,599 774:484 777:-484,960*25 778:-484,960*100
782:-487,488 783:-488 785:-488,960*100 804:-501,502 805:-502 806:-502,598 813:-507 817:-509,510 819:-510,576
909:109,-533 956:203,-533 1068:427,-533 1082:455,-533 1108:507,-533 1109:509,-533 1121:533 1123:598 1127:-536
1128:536,-537 1129:203,-537 1132:-538 1174:-558,611 1175:239,-558 1176:558 1184:-563,673 1188:596 1217:161,-576
1219:109,-576 1234:-578 1262:-589 1266:-591 1269:-593 1270:323,-593 1275:-596 1276:-596 1279:-598 1280:-598
1281:-599 1282:355,-599 1283:-599 1309:-611,647 1310:27,-611 1362:599,-635 1363:487,-635 1364:635 1389:-647
1396:563,-651 1440:455 1458:501 1473:593,-673 1506:507
"""
COUNTS = (1121, 1123, 1128, 1174, 1176, 1184, 1188, 1269, 1275, 1279, 1281, 1309, 1362, 1364, 1396, 1473)


def test_a_feasible_program_that_the_presolve_of_highs_1_14_calls_infeasible():
    columns = dict(text.split(":") for text in CHAINS.split())
    entries = [[(*entry.split("*"), "1")[:2] for entry in text.split(",")] for text in columns.values()]
    names = sorted({row.strip("-") for column in entries for row, _ in column}, key=int)
    A = np.zeros((len(names) + 17, len(columns)))  # rows without entries make it fail
    for place, column in enumerate(entries):
        for row, factor in column:
            A[names.index(row.strip("-")), place] = float(factor) * (-1 if row.startswith("-") else 1)
    capacity, sides = (
        names.index("960"),
        np.array([name in ("836", "837") for name in names] + [False] * 17, dtype=float),
    )
    is_count = np.array([int(name) in COUNTS for name in columns])
    equal = np.arange(len(A)) != capacity
    problem = LinearProgram(
        A[[capacity]], [650.0], A[equal], sides[equal], upper=np.where(is_count, 16.0, 1.0), integrality=~is_count
    )
    costs = np.vstack([np.zeros(len(columns)), np.random.default_rng(0).normal(size=(2, len(columns)))])
    decisions = problem.solve(costs)
    np.testing.assert_allclose(decisions @ A[equal].T, np.tile(sides[equal], (3, 1)), atol=1e-9)
    assert (decisions @ A[capacity] <= 650 + 1e-9).all()


@pytest.mark.parametrize(
    ("arguments", "costs", "best"),
    [
        ({"A_ub": [[4, -2]], "b_ub": [7], "lower": [1.5, 0], "upper": 3}, [9, 1], [2, 1]),
        ({"A_ub": [[4, -2], [-2, 0]], "b_ub": [7, -3], "upper": 3}, [9, 1], [2, 1]),
        ({"A_ub": [[4, -2]], "b_ub": [7], "lower": [[1.5, 0]], "upper": 3}, [9, 1], [2, 1]),
        ({"A_ub": [[0.1, 0.0]], "b_ub": [0.3], "upper": [9.0, 2.9999999999]}, [-1, -1], [3, 3]),
    ],
    ids=["bounds", "a constraint of one variable", "by row", "nearly whole bounds"],
)
def test_bounds_of_whole_numbers_that_are_not_whole(arguments, costs, best):
    problem = LinearProgram(**arguments, integrality=1)
    np.testing.assert_array_equal(problem.solve([np.array(costs, float)]), [best])


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("bound", [2**31 - 1, 4_000_000_000])
def test_large_bounds_of_whole_numbers_are_kept(bound, by_row, sense):
    lower, upper = np.array([bound, 0.0]), np.array([bound + 9.0, bound])
    problem = LinearProgram([[1, 1]], [1e12], lower=lower, upper=upper, integrality=1, sense=sense)
    if by_row:
        problem = problem.by_row(lower=np.tile(lower, (2, 1)), upper=np.tile(upper, (2, 1))).take([1])
    best = [bound, bound] if sense == "min" else [bound + 9, 0]
    np.testing.assert_array_equal(problem.solve([[1.0, -1.0]]), [best])


@pytest.mark.parametrize("unit", [1e-300, 1e-10, 1e-7, 1.0, 1e9])
@pytest.mark.parametrize("what", ["region", "constraints", "variables", "one variable"])
def test_small_and_large_units_change_nothing(what, unit):
    """Small entries used to vanish, a matrix of them alone ended the process, and a small region had a large error."""
    rng = np.random.default_rng(0)
    A, costs = rng.uniform(0.1, 1, size=(4, 6)), -rng.uniform(0.5, 1.5, size=(9, 6))
    b, upper = A @ rng.uniform(0.2, 1, size=6), np.ones(6)
    expected = LinearProgram(A, b, upper=upper).solve(costs)
    columns = np.where(np.arange(6) < {"variables": 6, "one variable": 1}.get(what, 0), unit, 1.0)
    rows, size = unit if what == "constraints" else 1.0, unit if what == "region" else 1.0
    program = LinearProgram(rows * A / columns, rows * b * size, upper=upper * columns * size)
    found = program.solve(costs / columns) / (columns * size)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    by_row = program.by_row(upper=np.tile(program._region.upper, (9, 1)))
    np.testing.assert_allclose(by_row.solve(costs / columns) / (columns * size), expected, rtol=1e-9, atol=1e-12)


def test_a_small_entry_of_a_variable_that_reaches_far_counts():
    program = LinearProgram([[5e-10, 1.0]], [1.0], upper=[1e10, 1], sense="max")
    np.testing.assert_allclose(program.solve([1e-9, 1e-3]), [2e9, 0])


def transport(decimals, **options):
    """Six supplies of a sixth and seven demands of a seventh, written with so many decimals."""
    supply, demand = np.full(6, 1 / 6).round(decimals), np.full(7, 1 / 7).round(decimals)
    A = np.vstack([np.kron(np.eye(6), np.ones(7)), np.kron(np.ones(6), np.eye(7))])
    names = [f"{what} {k}" for what, count in (("supply", 6), ("demand", 7)) for k in range(count)]
    return LinearProgram.from_milp(
        np.zeros(42), constraints=(A, *[np.concatenate([supply, demand])] * 2), constraint_names=names, **options
    )


LOOSENED = r"^no decision keeps all constraints exactly: constraint '(supply|demand) \d' is missed by [1-6]e-08 of its"


@pytest.mark.parametrize("by_row", [False, True])
def test_constraints_that_contradict_each_other_by_rounding_are_kept_up_to_it(by_row):
    costs = np.arange(42.0) % 5
    program = transport(8)
    if by_row:
        program = program.by_row(b_eq=np.tile(program._region.b_eq, (2, 1)))
    with pytest.warns(FeasibilityWarning, match=LOOSENED):
        found = program.solve(np.tile(costs, (2, 1)))
    np.testing.assert_allclose(found @ costs, transport(15).solve(costs) @ costs, atol=1e-6)
    with pytest.raises(ValueError, match="the region is empty: no decision keeps all constraints"):
        transport(6)


def test_whole_numbers_that_contradict_a_constraint_by_rounding_are_kept_up_to_it():
    program = LinearProgram(A_eq=[[0.33333333, 0.33333333, 1.0]], b_eq=[3.0], upper=[9, 9, 0], integrality=[1, 1, 0])
    with pytest.warns(FeasibilityWarning, match="constraint 0 of A_eq is missed by"):
        np.testing.assert_array_equal(program.solve([1.0, 3.0, 0.0]), [9, 0, 0])


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("integrality", [None, [1, 0, 1, 0, 1, 0]], ids=["vertices", "whole numbers"])
@pytest.mark.parametrize("fault", ["breaks a bound", "costs more"])
def test_a_wrong_answer_of_highs_is_solved_again(monkeypatch, fault, integrality, by_row):
    monkeypatch.setattr(VertexWalks, "fits", staticmethod(lambda program, most_rows=0: False))
    rng = np.random.default_rng(3)
    A, costs = rng.uniform(1, 3, size=(2, 6)), -rng.uniform(1, 2, size=(4, 6))
    sides = np.tile([5.0, 4.5], (4, 1)) if by_row else [5.0, 4.5]
    program = LinearProgram(A, sides, upper=1, integrality=integrality)
    expected = program.solve(costs)
    worker = highs._Integers if integrality else vertices.Vertices
    solve, again = worker.solve, worker.solve_again
    other = np.full(6, 2.0) if fault == "breaks a bound" else np.zeros(6)
    monkeypatch.setattr(worker, "solve", lambda self, *row: (other, solve(self, *row)[1]))
    np.testing.assert_allclose(program.solve(costs), expected, atol=1e-9)
    monkeypatch.setattr(worker, "solve_again", lambda self, *row: (other, again(self, *row)[1]))
    with pytest.raises(SolverError, match=r"row 0: HiGHS returned a decision that breaks a constraint, or that costs"):
        program.solve(costs)


def test_names_patterns_and_order():
    backwards = battery(costs=[f"buy[{hour}]" for hour in range(HOURS)][::-1], sense="min", known=-SOLD.sum(axis=0))
    pattern = battery(costs="buy*", sense="min", known=-SOLD.sum(axis=0))
    costs = prices(5) / 50
    np.testing.assert_allclose(backwards.solve(costs[:, ::-1])[:, ::-1], pattern.solve(costs), atol=1e-12)
    order = np.random.default_rng(0).permutation(9)
    check_problem(LinearProgram(np.ones((2, 9)), [3.0, 2.5], upper=np.arange(9) / 4, costs=order), tolerance=1e-9)


def test_copies_threads_and_processes_agree():
    problem, costs = battery(), prices(200)
    expected = problem.solve(costs)
    found = [None] * 4

    def work(k):
        found[k] = problem.solve(costs[::-1] if k % 2 else costs)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_array_equal(found[k][:: -1 if k % 2 else 1], expected)
    np.testing.assert_array_equal(pickled(problem).solve(costs), expected)
    np.testing.assert_array_equal(ParallelProblem(problem, n_jobs=2, rows_per_job=50).solve(costs), expected)
    twin = clone(DecisionRegressor(problem, "spo+", epochs=2, learning_rate=1e-3, random_state=0))
    X = np.random.default_rng(0).normal(size=(50, 2))
    first = DecisionRegressor(problem, "spo+", epochs=2, learning_rate=1e-3, random_state=0).fit(X, costs[:50])
    np.testing.assert_array_equal(twin.fit(X, costs[:50]).predict(X), first.predict(X))


def test_one_row_of_many_is_small_in_another_process():
    rows = LinearProgram(np.ones((1, 30)), [15.0], upper=np.random.default_rng(0).uniform(size=(500, 30)))
    rows.solve(np.ones((500, 30)))
    one = rows.take([7])
    assert 20 * len(pickle.dumps(one)) < len(pickle.dumps(rows))
    np.testing.assert_array_equal(pickled(one).solve(-np.ones(30)), one.solve(-np.ones(30)))


def test_a_row_that_fails_is_named_and_does_not_lose_the_others():
    open_ended = {"A_ub": [[1.0, -1.0]], "b_ub": [1.0]}
    costs = [[1.0, 1.0], [1.0, -0.5], [-1.0, 2.0]]
    with pytest.raises(SolverError, match=r"row 1: HiGHS ended with status 'Unbounded'. The cost falls without end: b"):
        LinearProgram(**open_ended).solve(costs)
    np.testing.assert_array_equal(
        LinearProgram(**open_ended, on_error="nan").solve(costs), [[0, 0], [np.nan, np.nan], [1, 0]]
    )
    no_whole = LinearProgram(A_eq=[[2.0, 2.0]], b_eq=[3.0], upper=5, integrality=[1, 1])
    with pytest.raises(SolverError, match="row 0: HiGHS ended with status 'Infeasible'"):
        no_whole.solve([1.0, 1.0])


def test_the_time_limit_is_that_of_a_row():
    rng = np.random.default_rng(0)
    A = rng.integers(1, 1000, size=(5, 60)).astype(float)
    hard = LinearProgram(A_eq=A, b_eq=A.sum(axis=1) // 2, upper=1, integrality=1, time_limit=0.2)
    with pytest.raises(SolverError, match=r"row 0: .*'Time limit reached'. Give it a longer time_limit"):
        hard.solve(np.ones((1, 60)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs to know how many variables"),
        ({"A_ub": [[1.0, np.nan]], "b_ub": [1.0]}, "A_ub must be finite; row 0, column 1 has nan"),
        ({"A_ub": [[1.0, 2.0]], "b_ub": [1.0, 2.0]}, r"b_ub must have one entry for each of the 1 rows of A_ub"),
        ({"A_ub": [[1.0, 2.0]]}, "A_ub and b_ub belong together; got only A_ub"),
        (
            {"A_ub": [[1.0, 2.0]], "b_ub": [1], "A_eq": [[1.0]], "b_eq": [1]},
            "A_eq must have one column for each of the 2",
        ),
        ({"upper": [1.0, 2.0], "lower": [2.0, 0.0]}, "the region is empty: variable 'w0' has lower=2 and upper=1"),
        ({"upper": [1.0, np.nan]}, "upper has NaN"),
        ({"A_ub": [[1.0, 1.0]], "b_ub": [-1.0]}, "the region is empty: no decision keeps all constraints"),
        ({"upper": [1.0, 1.0], "integrality": [1]}, "integrality must have one entry for each of the 2 variables"),
        ({"upper": [1.0, 1.0], "integrality": [1, 3]}, "integrality must be 0 or 1"),
        ({"upper": [1.0, 1.0], "costs": [[1.0, 2.0, 3.0]]}, "one column for each of the 2 variables; got shape"),
        ({"upper": [1.0, 1.0], "costs": [2]}, "costs has the index 2, and there are 2 variables"),
        ({"upper": [1.0, 1.0], "costs": [1, 1]}, "names the variable 'w1' more than once"),
        ({"upper": [1.0, 1.0], "costs": []}, "costs is empty"),
        ({"upper": [1.0, 1.0], "costs": [0.5]}, "costs must be indices or names of variables"),
        (
            {"upper": [1.0, 1.0], "names": ["price_1", "price_2"], "costs": ["prise_2"]},
            "nearest of 2 names are 'price_2'",
        ),
        ({"upper": [1.0, 1.0], "names": ["price_1", "load"], "costs": "prize_*"}, "no variable matches .*'price_1'"),
        ({"upper": [1.0, 1.0], "names": ["a", "a"]}, "names must be different; 'a'"),
        ({"upper": [1.0, 1.0], "known": [1.0]}, "known must be a vector of length 2"),
        ({"upper": [1.0, 1.0], "gap": -1}, "gap must be a number at least 0"),
        ({"upper": [1.0, 1.0], "time_limit": 0}, "time_limit must be a number above 0"),
        ({"upper": [1.0, 1.0], "on_error": "skip"}, "on_error must be one of 'raise', 'nan'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearProgram(**arguments)


USE = np.random.default_rng(7).integers(1, 5, size=(2, 9)).astype(float)


def by_row(seed, m, n, n_rows, **options):
    """A random program whose sides and bounds differ by row, with some variables fixed in some rows."""
    rng, program = np.random.default_rng(seed), random_program(0, m, n)._region
    upper = np.where(rng.uniform(size=(n_rows, n)) < 0.1, 0.0, rng.uniform(0.5, 1.5, size=(n_rows, n)))
    lower = np.where(rng.uniform(size=(n_rows, n)) < 0.05, np.minimum(upper, 0.05), 0.0)
    sides = program.b_ub * rng.uniform(0.5, 1.5, size=(n_rows, m))
    return LinearProgram(program.A_ub, sides, lower=lower, upper=upper, **options), (program.A_ub, sides, lower, upper)


@pytest.mark.parametrize(("m", "n"), [(12, 24), (110, 220)])
def test_rows_with_sides_and_bounds_of_their_own_are_single_programs(m, n):
    """Ties among them: an answer is that of the row's own program, whatever the rows before it."""
    problem, (A, sides, lower, upper) = by_row(1, m, n, 10)
    rng = np.random.default_rng(1)
    costs = np.vstack([rng.integers(-3, 1, size=(5, n)), -rng.uniform(size=(5, n))]).astype(float)
    alone = [
        LinearProgram(A, sides[row], lower=lower[row], upper=upper[row]).solve(costs[row]) for row in range(len(costs))
    ]
    first, again = problem.solve(costs), problem.solve(costs)  # from the vertices of the first time
    np.testing.assert_allclose(first, alone, atol=1e-9)
    np.testing.assert_allclose(again, first, atol=0 if m < 100 else 1e-9)  # small programs to the last bit
    np.testing.assert_allclose(problem.take(slice(None, None, -1)).solve(costs[::-1]), alone[::-1], atol=1e-9)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_contract_by_row(sense):
    rng = np.random.default_rng(3)
    check_problem(by_row(2, 6, 9, 12, sense=sense)[0], tolerance=1e-9)
    known = rng.normal(size=(12, 9))
    check_problem(by_row(2, 6, 9, 12, sense=sense, known=known)[0], tolerance=1e-9)
    check_problem(LinearProgram(USE, [9.0, 7.0], upper=1, known=known, sense=sense), tolerance=1e-9)
    whole = LinearProgram(USE[:, :4], rng.uniform(2, 6, size=(6, 2)), upper=1, integrality=1, sense=sense)
    check_problem(whole, costs=rng.normal(size=(6, 4)), tolerance=0.0)


def test_a_battery_whose_level_and_power_differ_by_row():
    rng, costs = np.random.default_rng(0), prices(12)
    start = np.zeros((12, HOURS))
    start[:, 0] = rng.uniform(0, 4, size=12)
    power = {f"{what}[{hour}]": rng.uniform(0.5, 1, size=12) for what in ("buy", "sell") for hour in range(HOURS)}
    problem = battery().by_row(b_eq=start, upper=power)

    decisions = problem.solve(costs)

    for row in range(12):
        upper = [*(power[name][row] for name in NAMES[: 2 * HOURS]), *[4] * HOURS]
        best = linprog(-costs[row] @ SOLD, A_eq=BATTERY["A_eq"], b_eq=start[row], bounds=[(0, most) for most in upper])
        assert costs[row] @ decisions[row] == pytest.approx(-best.fun)
    assert problem.n_rows == len(problem.solution(costs)["buy[3]"]) == 12
    assert battery().n_rows is None


def test_a_row_without_a_decision_is_named_and_does_not_lose_the_others():
    arguments = {"A_ub": [[1.0, 1.0]], "b_ub": [[3.0], [-1.0], [1.0]], "upper": 2, "sense": "max"}
    costs = [[2.0, 1.0], [1.0, 2.0], [1.0, 2.0]]
    with pytest.raises(SolverError, match=r"row 1: HiGHS ended with status 'Infeasible'. No decision keeps all"):
        LinearProgram(**arguments).solve(costs)
    np.testing.assert_array_equal(
        LinearProgram(**arguments, on_error="nan").solve(costs), [[2, 1], [np.nan, np.nan], [0, 1]]
    )
    single = {"A_ub": [[1.0, 0.0]], "b_ub": [[-1.0], [np.inf]], "upper": 2, "sense": "max"}  # a bound, below the lower
    np.testing.assert_array_equal(LinearProgram(**single, on_error="nan").solve(costs[:2]), [[np.nan] * 2, [2, 2]])


def test_sides_by_name():
    rows = LinearConstraint(np.eye(3), [-np.inf, 1, 2], [4, np.inf, 2])
    model = LinearProgram.from_milp(np.zeros(3), constraints=rows, constraint_names=["most", "least", "exact"])
    assert model.constraint_names == ["most", "least", "exact"]
    changed = model.by_row(sides={"most": [3.0, 5.0], "least": [0.5, 2.0], "exact": 7.0}).by_row(known={"w0": [1, -2]})
    np.testing.assert_array_equal(changed.solve([[-2.0, 1.0, 1.0], [1.0, 1.0, 1.0]]), [[3, 0.5, 7], [5, 2, 7]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"upper": {"w9": [1.0]}}, "there is no variable 'w9'; the nearest of 3 names are"),
        ({"sides": {"mest": [1.0]}}, "there is no constraint 'mest'; the nearest of 2 names is 'most'"),
        ({"sides": {"both": [1.0]}}, "the constraint 'both' has two sides"),
        ({"upper": {"w0": [1.0, 2.0], "w1": [1.0]}}, r"upper\['w0'\] has 2 rows, upper\['w1'\] has 1 rows"),
        ({"upper": {"w0": np.ones((2, 2))}}, r"upper\['w0'\] must have one number per row, or be one number; got"),
        ({"upper": np.ones((4, 2))}, r"upper must be a number or a vector of length 3, or have one .*shape=\(4, 2\)"),
        ({"upper": [[1.0, 1, 1], [1, np.nan, 1]]}, "upper has NaN in row 1"),
        ({"upper": [[1.0, 1, 1], [1, -2, 1]]}, "the region of row 1 is empty: variable 'w1' has lower=0 and upper=-2"),
        ({"upper": np.ones((4, 3)), "lower": np.zeros((3, 3))}, "lower has 3 rows, upper has 4 rows"),
        ({"upper": np.ones((4, 3)), "known": np.zeros((3, 3))}, "upper has 4 rows, known has 3 rows"),
        ({"b_ub": np.ones((4, 2))}, r"b_ub must have one entry for each of the 3 rows of A_ub.*got \(4, 2\)"),
        ({"b_ub": [[1.0, 2.0, np.nan]]}, "b_ub must be finite; row 0, column 2 has NaN"),
        ({"known": [[1.0, 2.0, np.nan]]}, "known must be finite; row 0, column 2 has NaN"),
    ],
)
def test_bad_arguments_by_row(arguments, message):
    rows = LinearConstraint(np.eye(3)[:2], [-np.inf, 1], [4, 2])
    model = LinearProgram.from_milp(np.zeros(3), constraints=rows, constraint_names=["most", "both"])
    with pytest.raises(ValueError, match=message):
        model.by_row(**arguments)


def test_sums_that_overflow_are_refused():
    program = LinearProgram(upper=np.ones(2), known=[1e308, 0.0])
    with pytest.raises(ValueError, match="row 1: the cost of a variable left the range of float64"):
        program.solve([[1.0, 1.0], [1e308, 1.0]])
