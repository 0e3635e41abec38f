"""Time one solve of each problem, in batches of 1,000, and show that the time for a grid is linear in its edges.

Run: `python speed/problems.py`; `speed/solves.py` has the comparison with other solvers. Targets: 5×5 shortest path
under 1 µs, a road network of 200 nodes and 2,600 edges under 100 µs, 16-item knapsack under 5 µs, 60-item knapsack
under 1,000 µs, 45 items with 11 levels each under one budget under 1 ms, 25-asset portfolio under 40 µs; tours of 20
nodes under 5 ms and of 50 nodes under 200 ms, both for the generator's costs and for the predictions of a linear model,
which training solves more often, and of 200 nodes under a minute; routes of 20 customers under 2 s. If the side of a
grid doubles, the time per edge may grow by half. Between 20×20 and 50×50, which are not compared, a batch of costs and
decisions outgrows the processor's cache. Rows of different size, hard rows, the solvers that a program may name, and
explanations have lines without a target.
"""

from functools import partial

import numpy as np

from benchmark import Bench, parser
from decidewise.data import (
    make_knapsack,
    make_portfolio,
    make_shortest_path,
    make_storage,
    make_travelling_salesman,
    make_vehicle_routing,
)
from decidewise.models import GeneralizedLinear
from decidewise.problems import (
    Knapsack,
    Levels,
    LinearProgram,
    PresentItems,
    ShortestPath,
    Storage,
    TopK,
    VehicleRouting,
    level_costs,
    newsvendor,
)
from solves import BATCH, random_knapsack, road_network


def report(bench, name, solve, costs, at_most=None, rounds=5):
    """State the processor time of one solve."""
    (time,) = bench.time(lambda: solve(costs), rounds=rounds)
    bench.claim(name, time.per(len(costs)), at_most=at_most)


def tours(bench, quick):
    """Report tours for the costs of the generator and for predictions."""
    for nodes, rows, target in ((20, BATCH, 5e-3), (50, BATCH // 5, 0.2)):
        for degree in (1, 6):
            data = make_travelling_salesman(rows // 10 if quick else rows, n_nodes=nodes, degree=degree, seed=0)
            predictions = GeneralizedLinear().fit(data.X, data.costs).predict(data.X)
            for what, costs in (("", data.costs), (", predicted", predictions)):
                name = f"tour, {nodes} nodes, degree {degree}{what}"
                report(bench, name, data.problem.solve, costs, target, rounds=2)


def grids(bench):
    """Report how the time per edge grows if the side of a grid doubles."""
    rng = np.random.default_rng(0)
    for side in (10, 50):
        sides = (side, 2 * side)
        problems = [ShortestPath(side, side) for side in sides]
        costs = [rng.uniform(size=(BATCH, problem.n_costs)) for problem in problems]
        works = [lambda problem=p, rows=c: problem.solve(rows) for p, c in zip(problems, costs, strict=True)]
        times = [time.per(BATCH * problem.n_costs) for time, problem in zip(bench.time(*works), problems, strict=True)]
        names = [f"shortest path, {side}×{side}, per edge" for side in sides]
        bench.claim(names[0], times[0])
        bench.claim(names[1], times[1], times[0], peer=f"ours on {side}×{side}", at_most=1.5)


def both_ways(bench):
    """Report grids with roads to all four neighbours: a small one with negative cycles, too, and one of a real size."""
    rng = np.random.default_rng(0)
    for side, rows in ((12, 100), (317, 3)):
        nodes = np.arange(side * side).reshape(side, side)
        tails, heads = np.append(nodes[:, :-1], nodes[:-1]), np.append(nodes[:, 1:], nodes[1:])
        roads = ShortestPath.from_edges(np.append(tails, heads), np.append(heads, tails), 0, side * side - 1)
        costs = rng.gamma(4, 0.25, size=(rows, roads.n_costs))
        name = f"shortest path, {roads.n_costs:,} roads both ways"
        report(bench, name, roads.solve, costs)
        if side == 12:  # with other costs in every call, since a row that was seen before takes less time
            solve = partial(lambda problem, rows: problem.solve(rows - rng.uniform(0.4, 0.6)), roads)
            report(bench, f"{name}, negative cycles", solve, costs)


def stock(bench):
    """Report 45 items with 11 levels each: for the costs of a realised demand, with many ties, and for a prediction."""
    rng = np.random.default_rng(0)
    rates, weights = rng.uniform(1, 8, 45), np.repeat(rng.uniform(1, 9, 45), 11) * np.tile(np.arange(11), 45)
    problem = Levels([np.arange(11)] * 45, consumption=weights, budget=1000)
    demand = rng.poisson(rates * rng.gamma(4, 0.25, size=(20 * BATCH // 10, 45)))
    costs = level_costs(demand, problem.levels, newsvendor(1, 4))
    predicted = costs.reshape(BATCH // 10, 20, -1).mean(axis=1)
    for what, rows in (("realised", costs[: BATCH // 10]), ("predicted", predicted)):
        report(bench, f"levels, 45×11 under one budget, {what}", problem.solve, rows, 1e-3)
        report(bench, f"levels, 45×11 with a fixed total, {what}", Levels(problem.levels, total=200).solve, rows)


def of_different_size(bench):
    """Report rows of which each lacks some items, beside the same rows with all, and one budget for many."""
    rng = np.random.default_rng(0)
    for problem, each in ((TopK(500, 100), 1), (Levels([np.arange(11)] * 45, budget=200), 11)):
        costs = rng.uniform(size=(BATCH, problem.n_costs))
        present = rng.uniform(size=(BATCH, problem.n_costs // each)) < 0.7
        some = PresentItems(problem, np.repeat(present, each, axis=1))
        times = bench.time(partial(some.solve, costs), partial(problem.solve, costs))
        name = f"{type(problem).__name__}, {present.shape[1]} items, 70 % present"
        bench.claim(name, *(time.per(BATCH) for time in times), peer="ours with all items", limit=True)
    gains = rng.gamma(2, size=(1, 10**6))
    report(bench, "100,000 of a population of 1,000,000", TopK(10**6, 10**5).solve, gains)


def hard_rows(bench):
    """Report rows that need HiGHS, cuts or a limit, the same program by each solver, and why a decision is taken."""
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 1000, 1000).astype(float)
    pack = Knapsack(weights, weights.sum() // 2, time_limit=60)
    report(bench, "knapsack, 1,000 items, values of weight + 100", pack.solve, weights[np.newaxis] + 100, rounds=1)
    fleet = VehicleRouting(rng.integers(1, 9, size=40), 50.0, 5, time_limit=5, on_limit="best")
    details = fleet.solve_details(rng.uniform(1, 9, size=(1, fleet.n_costs)))
    gap = 100 * details.gap[0] / details.objective[0]
    bench.claim("routes, 40 customers, the gap that is left after 5 s", gap, unit="%")
    use, values = rng.integers(5, 60, size=(4, 30)).astype(float), rng.uniform(5, 60, size=(3, 30))
    for name in ("highs", "gurobi", "scip", "cp-sat"):
        whole = LinearProgram(use, use.sum(axis=1) // 3, upper=1, integrality=1, sense="max", solver=name)
        report(bench, f"30 items in 4 dimensions, {name}", whole.solve, values, rounds=2)
    plan = LinearProgram(rng.uniform(size=(20, 40)), np.full(20, 5.0), upper=1, sense="max")
    report(bench, "why, a linear program of 20 × 40", plan.explain, rng.uniform(size=(1, 40)))


def main(arguments):
    np.ones(2**21)  # freed at once: from now on the process keeps the memory that a batch frees, as in a training
    with Bench(__file__, "A solve of each problem", arguments.quick) as bench:
        bench.group = "Growth with the side of a grid"
        grids(bench)  # first: a process that has freed much gives the memory of each batch back
        bench.group = f"A solve, in batches of {BATCH:,}"
        data = make_shortest_path(BATCH, degree=4, seed=0)
        report(bench, "shortest path, 5×5", data.problem.solve, data.costs, 1e-6)
        roads = road_network()
        report(bench, roads.name, roads.problem.solve, roads.costs, 1e-4)
        both_ways(bench)
        data = make_knapsack(BATCH, degree=4, seed=42)
        report(bench, "knapsack, 16 items, 2 dimensions", data.problem.solve, data.costs, 5e-6)
        large = random_knapsack(60)
        report(bench, large.name, large.problem.solve, large.costs, 1e-3, rounds=3)
        stock(bench)
        data = make_portfolio(BATCH, degree=3, seed=0)
        report(bench, "portfolio, 25 assets", data.problem.solve, data.costs, 4e-5)
        data = make_storage(BATCH, degree=4, seed=0)
        report(bench, "battery, 24 hours", data.problem.solve, data.costs)
        worn = Storage(24, 1.0, 4.0, discharge_power=0.8, discharge_efficiency=0.95, wear=5.0, cycles=1.0)
        report(bench, "battery, 24 hours, wear, one cycle at most", worn.solve, data.costs)
        of_different_size(bench)
        hard_rows(bench)
        tours(bench, arguments.quick)
        data = make_vehicle_routing(2 if arguments.quick else 10, degree=4, seed=0)
        report(bench, "routes, 20 customers", data.problem.solve, data.costs, 2, rounds=2)
        if not arguments.quick:
            data = make_travelling_salesman(2, n_nodes=200, degree=4, seed=0)
            report(bench, "tour, 200 nodes, degree 4", data.problem.solve, data.costs, 60, rounds=1)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
