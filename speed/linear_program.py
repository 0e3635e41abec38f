"""Time linear programs against HiGHS called row by row, as a user would call it.

Run: `python speed/linear_program.py`. Targets: a program of 200 rows and 400 columns, for 1,000 rows of costs that a
model predicts, at least 10 times as fast as `scipy.optimize.linprog` on both cores and at least 5 times as fast as a
plain loop of `changeColsCost` and `run` on one; 1,000 rows and 2,000 columns never slower than this loop; programs in
whole numbers no slower than plain HiGHS plus 5 %, small ones at least 3 times as fast, and at most 1.5 times as long as
HiGHS with the same options; SPO+ on a battery with 24 prices at least 5 times as fast as
with a plain loop, to the same values; at least 20 times as fast as CVXPY that sets a parameter and solves.

Processor time counts all threads, but no other processes of the machine; both sides take turns. HiGHS 1.14 runs without
presolve on both sides where numbers are whole: with it small programs are solved faster, but some of its answers are
wrong.
"""

from time import perf_counter, process_time

import cvxpy
import highspy
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, random_array

from benchmark import Bench, Measured, parser
from decidewise import DecisionRegressor
from decidewise.problems import (
    Assignment,
    Knapsack,
    Levels,
    LinearProgram,
    ParallelProblem,
    Problem,
    ShortestPath,
    TopK,
    from_cvxpy,
)
from decidewise.solvers.program import Highs

HOURS = 24


class PlainLoop(Problem):
    """The same program by HiGHS, each row from where the row before ended."""

    def __init__(self, program, *, map_to_variables=None, sense="min", **options):
        super().__init__(sense=sense)
        self.map = map_to_variables
        self.n_costs = len(program.lower) if map_to_variables is None else map_to_variables.shape[0]
        self.highs = Highs(program, **options)
        self.columns = np.arange(len(program.lower), dtype=np.int32)

    def minimize(self, costs):
        """Return what HiGHS returns, row after row."""
        decisions = np.empty_like(costs)
        for row, cost in enumerate(costs if self.map is None else costs @ self.map):
            self.highs.solver.changeColsCost(len(cost), self.columns, cost)
            self.highs.solver.run()
            point = np.array(self.highs.solver.getSolution().col_value)
            decisions[row] = point if self.map is None else self.map @ point
        return decisions


def seconds(function, *args):
    start = process_time()
    function(*args)
    return process_time() - start


def planning(m=200, n=400, density=0.05):
    """Resources (m) that products (n) share, each product a few of them; as large as the target says."""
    rng = np.random.default_rng(0)
    A = csr_array(random_array((m, n), density=density, rng=rng, data_sampler=lambda size: rng.uniform(0.5, 2, size)))
    return A, np.asarray(A.sum(axis=1)).ravel() * 0.3


def predicted(rows, n, features=5):
    """Costs that a linear model predicts from some features; they vary as much, however many these are."""
    rng = np.random.default_rng(1)
    return -(10 + rng.normal(size=(rows, features)) @ rng.normal(size=(features, n)) * np.sqrt(5 / features))


def battery():
    unit, level = np.eye(HOURS), np.eye(HOURS) - np.eye(HOURS, k=-1)
    region = {
        "A_eq": csr_array(np.hstack([-0.9 * unit, unit, level])),
        "b_eq": np.zeros(HOURS),
        "upper": [1] * (2 * HOURS) + [4] * HOURS,
    }
    return LinearProgram(**region, costs=csr_array(np.hstack([-unit, unit, 0 * unit])), sense="max")


def main(arguments):
    warm_up = "two rows of the battery, a row of CVXPY; in the other lines the compilation counts"
    with Bench(__file__, "Linear programs", arguments.quick, warm_up=warm_up) as bench:
        compare(bench)


def in_turns(ours, theirs, costs, block):
    """Return the seconds of both for a row, and whether their decisions cost the same to 1e-7."""
    total, is_same = np.zeros(2), True
    for start in range(0, len(costs), block):
        rows, values = costs[start : start + block], []
        for k, side in enumerate((ours, theirs)):
            begin = process_time()
            decisions = side.solve(rows)
            total[k] += process_time() - begin
            values.append((rows * decisions).sum(axis=1))
        is_same &= np.allclose(*values, rtol=1e-7, atol=0.0)
    return (*total / len(costs), is_same)


def compare_predicted(bench, report):
    """Rows that a model predicts from few and from more features, of programs of two sizes."""
    for m, density, features, most, at_least in (
        (200, 0.05, 5, 1_000, 5), (200, 0.05, 20, 1_000, None), (1_000, 0.005, 5, 40, 1), (1_000, 0.005, 20, 40, 1),
    ):  # fmt: skip
        A, b = planning(m, 2 * m, density)
        ours = LinearProgram(A, b, upper=1)
        plain = PlainLoop(ours._solver.program, presolve="off")
        rows = most // 5 if bench.quick else most
        *times, is_same = in_turns(ours, plain, predicted(rows, 2 * m, features), max(rows // 20, 1))
        what = f"{m:,} × {2 * m:,}, {features} features, a row"
        report(what, *times, "HiGHS, plain loop", at_least, "same values to 1e-7", is_same)


def compare_whole(report):
    """Programs in whole numbers, against HiGHS with the same presolve and no other options."""
    rng = np.random.default_rng(2)
    weights = rng.integers(5, 60, size=(4, 30)).astype(float)
    packs = LinearProgram(weights, weights.sum(axis=1) // 3, upper=1, integrality=1, sense="max", solver="highs")
    off = {"presolve": "off"} if highspy.Highs().version().startswith("1.14.") else {}
    theirs = PlainLoop(packs._solver.program, sense="max", mip_rel_gap=0.0, **off)
    values = rng.uniform(5, 60, size=(20, 30))
    times = np.array([(seconds(packs.solve, row), seconds(theirs.solve, row)) for row in values]).sum(axis=0) / 20
    report("30 items in 4 dimensions, whole numbers, a row", *times, "HiGHS", 0.95)
    compare_recognised(report, packs, values)
    use = rng.integers(1, 9, size=(3, 6)).astype(float)
    small = LinearProgram(use, use.sum(axis=1) // 2, upper=3, integrality=1, sense="max")
    theirs = PlainLoop(small._solver.program, sense="max", mip_rel_gap=0.0, **off)
    values = rng.uniform(1, 5, size=(200, 6))
    small.solve(values[:1])
    times = [seconds(side.solve, values) / len(values) for side in (small, theirs)]
    report("6 whole numbers, 3 constraints, a row", *times, "HiGHS", 3)
    alike = {"mip_abs_gap": 0.0, "mip_feasibility_tolerance": 1e-9, "mip_heuristic_run_feasibility_jump": False}
    for m, n in ((3, 6), (5, 12)):
        use = rng.integers(1, 9, size=(m, n)).astype(float)
        small = LinearProgram(use, use.sum(axis=1) // 2, upper=3, integrality=1, sense="max")
        theirs = PlainLoop(small._solver.program, sense="max", mip_rel_gap=0.0, **alike, **off)
        small.solve(values[:1, :1] * np.ones(n))
        *times, is_same = in_turns(small, theirs, rng.uniform(1, 5, size=(200, n)), 10)
        peer = "HiGHS, same options"
        report(f"{n} whole numbers, {m} constraints, a row", *times, peer, 1 / 1.5, "same values to 1e-7", is_same)


def compare_recognised(report, packs, values):
    """Programs that are a built-in problem, against that problem: at most twice its time; the first against HiGHS."""
    weights = packs.polyhedron.A_ub.toarray()
    pack = Knapsack(weights, weights.sum(axis=1) // 3)
    rng = np.random.default_rng(4)
    for name, problem, sense, rows in (
        ("30 items in 4 dimensions", pack, "max", values),
        ("20 items of 11 levels", Levels([list(range(11))] * 20, budget=100), "min", rng.uniform(size=(200, 220))),
        ("an assignment of 40", Assignment(40), "min", rng.uniform(size=(200, 1600))),
        ("100 of 500", TopK(500, 100), "max", rng.uniform(size=(2_000, 500))),
        ("a path in a grid of 20 × 20", ShortestPath(20, 20), "min", rng.uniform(size=(2_000, 760))),
    ):
        whole = {"integrality": np.ones(problem.n_costs)} if problem.is_integer else {}
        own = LinearProgram(**vars(problem.polyhedron), **whole, sense=sense)
        own.solve(rows[:3])  # which HiGHS checks
        problem.solve(rows[:3])
        times = [min(seconds(side.solve, rows) for _ in range(3)) / len(rows) for side in (own, problem)]
        report(f"{name}, as a program, a row", *times, f"`{type(problem).__name__}`", 0.5)


def compare(bench):
    def report(what, ours, theirs, peer, at_least, same="", is_same=True):
        sides = (Measured(seconds, "processor") for seconds in (ours, theirs))
        bench.claim(what, *sides, peer=peer, at_least=at_least, same=same, is_same=is_same)

    compare_predicted(bench, report)
    A, b = planning()
    costs = predicted(1_000, A.shape[1])
    ours, plain = LinearProgram(A, b, upper=1), PlainLoop(LinearProgram(A, b, upper=1)._solver.program, presolve="off")
    times = [seconds(ours.solve, costs) / 1_000, seconds(plain.solve, costs[:100]) / 100]
    scipy = seconds(lambda: [linprog(row, A_ub=A, b_ub=b, bounds=(0, 1)) for row in costs[:40]]) / 40
    report("200 × 400, a row, one core", times[0], scipy, "SciPy, linprog", None)
    both = ParallelProblem(LinearProgram(A, b, upper=1), n_jobs=2)
    both.solve(costs[:32])  # starts the workers
    start = perf_counter()
    both.solve(costs)
    ours_on_both = Measured((perf_counter() - start) / 1_000, "wall")
    start = perf_counter()
    for row in costs[:40]:
        linprog(row, A_ub=A, b_ub=b, bounds=(0, 1))
    theirs = Measured((perf_counter() - start) / 40, "wall")
    bench.claim("200 × 400, a row, both cores", ours_on_both, theirs, peer="SciPy, linprog", at_least=10)
    known = seconds(ours.solve, costs) / 1_000
    report("the same rows again", known, times[1], "HiGHS, plain loop", 2)

    compare_whole(report)
    rng = np.random.default_rng(3)
    store = battery()
    loop = PlainLoop(store._solver.program, map_to_variables=store._map, sense="max", presolve="off")
    X = rng.normal(size=(400, 6))
    prices = (
        50 + 20 * np.sin(np.arange(HOURS) / 4) + X @ rng.normal(size=(6, HOURS)) * 6 + rng.normal(size=(400, HOURS)) * 4
    )
    store.solve(prices[:2])  # compiles
    models = [DecisionRegressor(p, "spo+", epochs=20, learning_rate=0.01, random_state=0) for p in (store, loop)]
    times = [seconds(model.fit, X, prices) for model in models]
    np.testing.assert_allclose(
        (prices * store.solve(prices)).sum(axis=1), (prices * loop.solve(prices)).sum(axis=1), rtol=1e-7
    )
    report("SPO+, 20 epochs, battery", *times, "HiGHS, plain loop", 5, "same values to 1e-7")

    price = cvxpy.Parameter(HOURS)
    buy, sell = cvxpy.Variable(HOURS, nonneg=True), cvxpy.Variable(HOURS, nonneg=True)
    level = cvxpy.cumsum(0.9 * buy - sell)
    model = cvxpy.Problem(cvxpy.Maximize(price @ (sell - buy)), [buy <= 1, sell <= 1, level >= 0, level <= 4])
    taken = from_cvxpy(model, price)

    def solve_by_cvxpy(rows):
        for row in rows:
            price.value = row
            model.solve(solver=cvxpy.HIGHS)

    solve_by_cvxpy(prices[:1])
    report(
        "a battery of CVXPY, a row",
        seconds(taken.solve, prices) / 400,
        seconds(solve_by_cvxpy, prices[:40]) / 40,
        "CVXPY, HiGHS",
        20,
    )


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
