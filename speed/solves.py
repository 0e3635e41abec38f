"""Time each problem against what else can solve it: Gurobi, HiGHS, Clarabel, OR-Tools, SciPy, NumPy.

Run: `python speed/solves.py` (about three minutes). Ours takes all rows at once; the others take them one by one, set
up once where they can be. Gurobi runs through PyEPO and through gurobipy alone, with the licence of its wheel, which
ends at 2,000 variables; a row may take a solver five seconds. All may use all cores. The objectives must agree to one
part in 100,000, since OR-Tools takes whole numbers alone. Targets: a portfolio at least 10 times as fast as Clarabel, a
battery at least 20 times as fast as HiGHS.

The lines "our own LinearProgram" solve the polyhedron of the problem, in batch as well: with a kernel of its own a
problem should be at least five times as fast as the best of all lines. Where the polyhedron is a relaxation the
values differ, and the line says so.
"""

import copy
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import gurobipy
import numpy as np
from pyepo.model.grb import knapsackModel, portfolioModel, shortestPathModel, tspDFJModel, vrpRCIModel
from scipy.spatial.distance import cdist

import peers
from benchmark import Bench, parser
from decidewise.data import (
    make_knapsack,
    make_portfolio,
    make_storage,
    make_travelling_salesman,
    make_vehicle_routing,
)
from decidewise.problems import (
    Assignment,
    Ball,
    Ellipsoid,
    Inventory,
    Knapsack,
    LinearProgram,
    Matching,
    MinCostFlow,
    Ranking,
    ShortestPath,
    TopK,
)

BATCH, TOLERANCE = 1_000, 1e-5
TARGETS = {("portfolio, 25 assets", "Clarabel"): 10, ("battery, 24 hours", "HiGHS"): 20}


OWN = "our own LinearProgram"


class Case(NamedTuple):
    """A problem with costs, and functions that set up the others."""

    name: str
    problem: Any
    costs: Any
    others: dict


def grid(side, rows=BATCH):
    problem = ShortestPath(side, side)
    others = {
        "Gurobi, PyEPO": lambda: peers.pyepo(shortestPathModel((side, side))),
        "Gurobi": partial(peers.gurobi, problem),
        "HiGHS": partial(peers.highs, problem),
        "OR-Tools, flow": lambda: peers.ortools_flows(problem.tails, problem.heads, _ends(problem), 1, problem),
        "SciPy, Dijkstra": partial(peers.scipy_dijkstra, problem),
    }
    costs = np.random.default_rng(side).uniform(1, 2, size=(rows, problem.n_costs))
    return Case(f"shortest path, {side}×{side}", problem, costs, others)


def _ends(problem):
    supply = np.zeros(int(max(problem.tails.max(), problem.heads.max())) + 1, dtype=np.int64)
    supply[problem.source], supply[problem.target] = 1, -1
    return supply


def road_network():
    """Join each of 200 places with the 13 nearest; lengths vary by half, and the ends are far apart."""
    rng = np.random.default_rng(0)
    places = rng.uniform(size=(200, 2))
    apart = cdist(places, places)
    tails, heads = np.repeat(np.arange(200), 13), np.argsort(apart, axis=1)[:, 1:14].ravel()
    roads = ShortestPath.from_edges(tails, heads, *np.unravel_index(apart.argmax(), apart.shape))
    costs = apart[tails, heads] * rng.uniform(0.5, 1.5, size=(BATCH, len(tails)))
    others = {"SciPy, Dijkstra": partial(peers.scipy_dijkstra, roads), "HiGHS": partial(peers.highs, roads)}
    return Case("shortest path, 200 nodes, 2,600 edges, cycles", roads, costs, others)


def knapsack(items, problem, costs):
    others = {
        "Gurobi, PyEPO": lambda: peers.pyepo(knapsackModel(problem.weights, problem.capacities)),
        "Gurobi": partial(peers.gurobi, problem),
        "HiGHS": partial(peers.highs, problem),
        "OR-Tools, CP-SAT": partial(peers.ortools_knapsack, problem),
        "SciPy, milp": partial(peers.scipy_program, problem),
    }
    return Case(f"knapsack, {items} items, 2 dimensions", problem, costs, others)


def random_knapsack(items, rows=BATCH):
    rng = np.random.default_rng(items)
    weights = rng.integers(300, 800, size=(2, items)) / 100
    values = rng.integers(1, 21, size=(rows, items)).astype(float)
    return knapsack(items, Knapsack(weights, weights.sum(axis=1) / 3), values)


def portfolio(rows=BATCH):
    data = make_portfolio(rows, degree=3, seed=0)
    problem = data.problem
    gamma = problem.risk / problem.covariance.mean()

    def pyepo():
        model = portfolioModel(25, problem.covariance, gamma)
        (budget,) = model._model.getConstrs()
        budget.Sense = gurobipy.GRB.LESS_EQUAL  # as ours
        model._model.update()
        return peers.pyepo(model)

    others = {
        "Gurobi, PyEPO": pyepo,
        "Gurobi": partial(peers.gurobi_portfolio, problem),
        "Clarabel": partial(peers.clarabel_portfolio, problem),
    }
    return Case("portfolio, 25 assets", problem, data.costs, others)


def tour(nodes, rows=BATCH):
    data = make_travelling_salesman(rows, n_nodes=nodes, degree=4, seed=0)
    others = {
        "Gurobi, PyEPO": lambda: peers.pyepo(tspDFJModel(nodes)),
        "OR-Tools, CP-SAT": partial(peers.ortools_tour, data.problem),
    }
    return Case(f"tour, {nodes} nodes", data.problem, data.costs, others)


def routes(customers, rows):
    data = make_vehicle_routing(rows, n_customers=customers, degree=4, seed=0)
    problem = data.problem

    def pyepo():
        return peers.pyepo(vrpRCIModel(customers + 1, problem.demands, problem.capacity, problem.n_vehicles))

    return Case(f"routes, {customers} customers", problem, data.costs, {"Gurobi, PyEPO": pyepo})


def assignment(n, rows=BATCH):
    problem = Assignment(n)
    others = {
        "SciPy, linear_sum_assignment": partial(peers.scipy_assignment, problem),
        "OR-Tools, assignment": partial(peers.ortools_assign, problem),
        "Gurobi": partial(peers.gurobi, problem),
        "HiGHS": partial(peers.highs, problem),
    }
    costs = np.random.default_rng(n).uniform(1, 2, size=(rows, n * n))
    return Case(f"assignment, {n}×{n}", problem, costs, others)


def programs():
    """Return problems whose region is a polyhedron, which any solver of linear programs can take."""
    rng = np.random.default_rng(0)
    tails, heads = (ends.ravel() for ends in np.indices((10, 10)))
    flow = MinCostFlow(tails, heads + 10, np.repeat([3, -3], 10), capacity=2)
    arrays = (tails, heads + 10, np.repeat([3, -3], 10), 2)
    storage = make_storage(BATCH, degree=4, seed=0)
    found = {
        "matching, 10 × 10": (Matching(10, 10), None, {}),
        "flow, 10 to 10 nodes": (flow, None, {"OR-Tools, flow": lambda: peers.ortools_flows(*arrays, flow)}),
        "battery, 24 hours": (storage.problem, storage.costs, {}),
        "inventory, 24 periods": (Inventory(rng.uniform(1, 2, size=24), 4.0), None, {}),
    }
    for name, (problem, costs, own) in found.items():
        values = rng.uniform(1, 2, size=(BATCH, problem.n_costs)) if costs is None else costs
        others = {
            "Gurobi": partial(peers.gurobi, problem),
            "HiGHS": partial(peers.highs, problem),
            "SciPy, linprog": partial(peers.scipy_program, problem),
        }
        yield Case(name, problem, values, own | others)


def closed_forms():
    """Return problems that take a formula or a sort."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(25, 25)) / 5
    matrix, costs = root @ root.T + 0.1 * np.eye(25), rng.normal(size=(BATCH, 25))
    top, ranking, ball, ellipsoid = TopK(25, 5), Ranking(25), Ball(25), Ellipsoid(matrix)
    yield Case("top 5 of 25", top, costs, {"NumPy, argpartition": partial(peers.numpy_top, top)})
    yield Case("ranking of 25", ranking, costs, {"NumPy, argsort": partial(peers.numpy_ranking, ranking)})
    cone = partial(peers.clarabel_ellipsoid, ball, np.eye(25), 1.0)
    yield Case("ball of dimension 25", ball, costs, {"Clarabel": cone})
    cone = partial(peers.clarabel_ellipsoid, ellipsoid, matrix, 1.0)
    yield Case("ellipsoid of dimension 25", ellipsoid, costs, {"Clarabel": cone})


def own_program(problem):
    """Return the solve of the polyhedron of a problem, or None if it has none."""
    region = problem.polyhedron
    if region is None or isinstance(problem, MinCostFlow):  # a flow is solved so already
        return None
    sides = region.A_ub, region.b_ub, region.A_eq, region.b_eq, region.lower, region.upper
    program = LinearProgram(*sides, sense=problem.sense)
    return lambda rows: copy.deepcopy(program).solve(rows)  # a copy knows no vertices of the round before


def few_rows(solve, costs, seconds):
    """Return as many rows as a solver that takes them one by one finishes in about so many seconds, and the rounds."""
    solve(costs[:1])
    start = perf_counter()
    solve(costs[:1])
    row = perf_counter() - start
    return costs[: max(1, int(seconds / row))], 3 if row < 1 else 1


def compare_own(bench, case, name=""):
    """State our time per solve against that of our own linear program on the same polyhedron, in batch."""
    solve = own_program(case.problem)
    if solve is None:
        return
    rows, rounds = few_rows(solve, case.costs, 4.0)
    ours, theirs = bench.time(lambda: case.problem.solve(case.costs), partial(solve, rows), rounds=rounds, warm=False)
    values = [(rows * side.result[: len(rows)]).sum(axis=1) for side in (ours, theirs)]
    gap = np.max(np.abs(values[0] - values[1]) / np.abs(values[0]))
    same = f"same objective: gap {gap:.0e}" if gap <= TOLERANCE else f"a relaxation: values differ by up to {gap:.0e}"
    bench.claim(name or case.name, ours.per(len(case.costs)), theirs.per(len(rows)), peer=OWN, same=same)


def compare(bench, case, seconds, name=""):
    """State our time per solve against each other solver; one that stops is a line that says why."""
    case.problem.solve(case.costs[:2])
    if not name:
        compare_own(bench, case)
    for by, set_up in case.others.items():
        target = {"at_least": TARGETS[case.name, by]} if not name and (case.name, by) in TARGETS else {}
        try:
            solve = set_up()
            rows, rounds = few_rows(solve, case.costs, seconds)
        except (gurobipy.GurobiError, peers.StopsError, RuntimeError) as error:
            (ours,) = bench.time(lambda: case.problem.solve(case.costs), rounds=3)
            same = f"{by.partition(',')[0]} stops: {error}"
            bench.claim(name or case.name, ours.per(len(case.costs)), peer=by, same=same)
            continue
        ours, theirs = bench.time(
            lambda: case.problem.solve(case.costs), partial(solve, rows), rounds=rounds, warm=False
        )
        values = [(rows * side.result[: len(rows)]).sum(axis=1) for side in (ours, theirs)]
        gap = np.max(np.abs(values[0] - values[1]) / np.abs(values[0]))
        same = f"same objective: gap {gap:.0e}"
        sides = ours.per(len(case.costs)), theirs.per(len(rows))
        bench.claim(name or case.name, *sides, peer=by, same=same, is_same=gap <= TOLERANCE, **target)


def main(arguments):
    quick, seconds = arguments.quick, 0.05 if arguments.quick else 0.4
    data = make_knapsack(BATCH, degree=4, seed=42)
    with Bench(__file__, "Solves", quick, clock="wall", warm_up="a few rows of each side") as bench:
        bench.group = f"A solve of each problem, in batches of {BATCH:,}"
        first = [
            grid(5),
            road_network(),
            knapsack(16, data.problem, data.costs),
            portfolio(),
            tour(10, 100),
            routes(10, 20),
        ]
        for case in [*first, assignment(10), *programs(), *closed_forms()]:
            compare(bench, case, seconds)
        bench.group = "A solve, by the size of the batch"
        best = {"SciPy, Dijkstra", "Gurobi", "Clarabel"}
        for batch in (1, 100, 10_000) if quick else (1, 100, 10_000, 100_000):
            data = make_knapsack(batch, degree=4, seed=42)
            for case in (grid(5, batch), knapsack(16, data.problem, data.costs), portfolio(batch)):
                others = {by: set_up for by, set_up in case.others.items() if by in best}
                compare(bench, case._replace(others=others), seconds, f"{case.name}, batch of {batch:,}")
        bench.group = "A solve, by the size of the problem, up to where the others stop"
        sizes = [grid(side, 100) for side in ((10, 40) if quick else (10, 20, 40, 100))]
        sizes += [random_knapsack(items, 100) for items in ((30,) if quick else (30, 60, 100))]
        sizes += [tour(nodes, 20) for nodes in ((20,) if quick else (20, 50))]
        sizes += [assignment(n, 100) for n in ((20,) if quick else (20, 50, 100))]
        for case in sizes:
            compare(bench, case, seconds)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
