"""Random instances of every problem against enumeration in exact arithmetic.

`make fuzz` runs many more of them: the environment variable FUZZ_ROUNDS says how many of each kind, and FUZZ_MIXED_ROWS
how many rows of each kind of mixed-integer programs.
"""

import itertools
import os

import numpy as np
import pytest

from decidewise.problems import (
    Assignment,
    Inventory,
    Knapsack,
    KnownCosts,
    LinearProgram,
    Matching,
    MinCostFlow,
    Portfolio,
    Ranking,
    ShortestPath,
    Storage,
    TopK,
    TravellingSalesman,
    VehicleRouting,
)
from decidewise.problems.knapsack import problem as knapsack

ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "2"))
MIXED_ROWS = int(os.environ.get("FUZZ_MIXED_ROWS", "600"))
N_ROWS = 8

#: Costs in which equal decisions are exactly equal, so that the rule for ties decides.
EXACT_COSTS = {
    "whole": lambda rng, shape: rng.integers(-3, 4, size=shape).astype(float),
    "equal": lambda rng, shape: np.repeat(rng.integers(-2, 3, size=(shape[0], 1)), shape[1], axis=1).astype(float),
    "subnormal": lambda rng, shape: rng.integers(-5, 6, size=shape) * 5e-324,
    "whole, some forbidden": lambda rng, shape: _spiked(rng, rng.integers(0, 4, size=shape).astype(float), 2.0**40),
}
COSTS = {
    **EXACT_COSTS,
    "normal": lambda rng, shape: rng.normal(size=shape),
    "decimal": lambda rng, shape: rng.integers(-20, 21, size=shape) / 10,
    "many scales": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.uniform(-6, 6, size=shape),
    "near": lambda rng, shape: 1 + 1e-7 * rng.normal(size=shape),
    "huge": lambda rng, shape: rng.normal(size=shape) * 1e300,
    "the largest": lambda rng, shape: rng.choice([1.7e308, -1.7e308, 1.0, -2.0, 3.0], size=shape),
    "tiny": lambda rng, shape: rng.normal(size=shape) * 1e-305,
    "forbidden": lambda rng, shape: _spiked(rng, rng.uniform(0.5, 1.5, size=shape), 10.0 ** rng.uniform(5, 15)),
    "forbidden, each its own": lambda rng, shape: _spiked(
        rng, rng.uniform(0.5, 1.5, size=shape), 10.0 ** rng.uniform(5, 15, size=shape)
    ),
    "one mandatory": lambda rng, shape: _one(rng, rng.uniform(0.5, 1.5, size=shape), -(10.0 ** rng.uniform(5, 9))),
    "one forbidden": lambda rng, shape: _one(rng, rng.normal(size=shape), 10.0 ** rng.uniform(5, 15)),
}


def _spiked(rng, costs, size):
    return np.where(rng.random(costs.shape) < 0.25, size, costs)


def _one(rng, costs, size):
    costs[np.arange(len(costs)), rng.integers(costs.shape[1], size=len(costs))] = size
    return costs


def paths(rng, sense):
    problem = ShortestPath(int(rng.integers(1, 5)), int(rng.integers(2, 5)), sense=sense)
    found = []

    def walk(node, edges):
        if node == problem.target:
            found.append(edges)
        for edge in np.flatnonzero(problem.tails == node):
            walk(problem.heads[edge], [*edges, int(edge)])

    walk(problem.source, [])
    decisions = np.zeros((len(found), problem.n_costs), dtype=int)
    for decision, edges in zip(decisions, sorted(found), strict=True):
        decision[edges] = 1
    return problem, decisions


def roads(rng):
    """Draw a graph with cycles; list its paths, as `paths` does, its cycles, and its flows of 0 or 1 on each edge."""
    n = int(rng.integers(3, 6))
    ends = np.vstack([rng.integers(n, size=(2, 2 * n)).T, [[i, i + 1] for i in range(n - 1)]])
    tails, heads = rng.permutation(ends).T
    found = {}

    def walk(start, node, edges, visited):
        if edges and node in (start, n - 1):
            found.setdefault((start, int(node)), []).append(edges)
        if not edges or node != start:
            for edge in np.flatnonzero(tails == node):
                if heads[edge] == start or heads[edge] not in visited:
                    walk(start, heads[edge], [*edges, int(edge)], {*visited, heads[edge]})

    for start in range(n):
        walk(start, start, [], {start})
    on_a_way = [edges for (start, end), ways in found.items() if start == end for edges in ways]
    lists = sorted(edges for edges in found[0, n - 1] if not {*tails[edges[1:]]} & {n - 1}), on_a_way
    paths, cycles = (
        np.array([np.isin(np.arange(len(tails)), edges) for edges in some], dtype=int).reshape(len(some), len(tails))
        for some in lists
    )
    problem = ShortestPath.from_edges(tails, heads, 0, n - 1)
    region, every = problem.polyhedron, np.indices((2,) * len(tails)).reshape(len(tails), -1).T
    flows = every[(every @ region.A_eq.T == region.b_eq).all(axis=1) & (every <= region.upper).all(axis=1)]
    return problem, paths, cycles, flows


def assignments(rng, sense):
    n = int(rng.integers(1, 6))
    columns = np.array(list(itertools.permutations(range(n))))
    return Assignment(n, sense=sense), np.eye(n, dtype=int)[columns].reshape(len(columns), -1)


def matchings(rng, sense):
    """List the matchings by the partner of each left node, the lowest first, being alone last."""
    left, right, complete = int(rng.integers(1, 5)), int(rng.integers(1, 5)), bool(rng.integers(2))
    is_edge = rng.random((left, right)) < 0.7
    np.fill_diagonal(is_edge, True)
    edges = rng.permutation(np.argwhere(is_edge))
    problem = Matching(left, right, edges=edges, complete=complete, sense=sense)
    number = {tuple(edge): k for k, edge in enumerate(edges.tolist())}
    decisions = []
    for partners in itertools.product(range(right + 1), repeat=left):
        pairs = [(i, j) for i, j in enumerate(partners) if j < right]
        is_matching = len({j for _, j in pairs}) == len(pairs) and all(pair in number for pair in pairs)
        if is_matching and not (complete and len(pairs) < min(left, right)):
            decisions.append(np.isin(np.arange(len(edges)), [number[pair] for pair in pairs]).astype(int))
    return problem, np.array(decisions)


def rankings(rng, sense):
    n = int(rng.integers(1, 6))
    return Ranking(n, sense=sense), np.array(list(itertools.permutations(range(1, n + 1))))


def top_items(rng, sense):
    n = int(rng.integers(1, 9))
    problem = TopK(n, int(rng.integers(1, n + 1)), sense=sense)
    return problem, _subsets(n)[_subsets(n).sum(axis=1) == problem.k]


def small_knapsacks(rng, sense):
    m, k = int(rng.integers(1, 10)), int(rng.integers(1, 4))
    weights = rng.integers(0, 9, size=(k, m))
    problem = Knapsack(weights, np.floor(weights.sum(axis=1) * rng.uniform(0.2, 1, size=k)), sense=sense)
    packs = _subsets(m)
    return problem, packs[(packs @ weights.T <= problem.capacities).all(axis=1)]


def large_knapsacks(rng, sense):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knapsack, "MAX_PACKS", 1)  # so that packs are searched for, not listed
        return small_knapsacks(rng, sense)


def tours(rng, sense):
    problem = TravellingSalesman(int(rng.integers(3, 8)), sense=sense)
    edge = {tuple(ends): k for k, ends in enumerate(problem.ends.T.tolist())}
    decisions = set()
    for rest in itertools.permutations(range(1, problem.n_nodes)):
        decision = [0] * problem.n_costs
        for a, b in itertools.pairwise((0, *rest, 0)):
            decision[edge[min(a, b), max(a, b)]] = 1
        decisions.add(tuple(decision))
    return problem, np.array(sorted(decisions, reverse=True))


def trades(rng, sense):
    """List the plans of a store that fills by whole units: every period buys at full power or sells whole units."""
    power = int(rng.integers(1, 3))
    problem = Storage(
        int(rng.integers(1, 6)),
        power,
        int(rng.integers(1, 4)),
        efficiency=1 / power,
        initial=int(rng.integers(0, 2)),
        sense=sense,
    )
    found = []

    def plan(sales, level):
        if len(sales) == problem.n_costs:
            found.append(sales)
            return
        for sold in range(min(power, level) + 1):
            plan([*sales, sold], level - sold)
        plan([*sales, -power], min(level + 1, int(problem.energy)))

    plan([], int(problem.initial))
    return problem, np.array(sorted(found, key=lambda sales: [abs(sold) for sold in sales]))


def purchases(rng, sense):
    """List the whole purchases for a whole demand, smaller ones first; with whole limits no others are vertices."""
    demand, capacity, limit = rng.integers(0, 3, size=int(rng.integers(1, 6))), int(rng.integers(0, 3)), 2
    problem = Inventory(demand, capacity, limit=limit, sense=sense)
    found = []

    def plan(bought, stock):
        if len(bought) == len(demand):
            found.append(bought)
            return
        for amount in range(limit + 1):
            if 0 <= stock + amount - demand[len(bought)] <= capacity:
                plan([*bought, amount], stock + amount - demand[len(bought)])

    plan([], 0)
    return problem, np.array(found)


def flows(rng, sense):
    """List the whole flows of a small network, in the order of the fixed random costs that break ties."""
    tails, heads = rng.integers(4, size=(2, 6))
    capacity = rng.integers(0, 3, size=6)
    every = np.array(list(itertools.product(*(range(limit + 1) for limit in capacity))))
    leaving = every @ (np.eye(4, dtype=int)[tails] - np.eye(4, dtype=int)[heads])
    supply = leaving[rng.integers(len(every))]
    found = every[(leaving == supply).all(axis=1)]
    found = found[np.argsort(found @ np.random.default_rng(0).uniform(1.0, 2.0, 6))]
    return MinCostFlow(tails, heads, supply, capacity=capacity, sense=sense), found


def routes(rng, sense):
    """Cut every order of the customers into routes of two or more that fit; draw again if there is no way."""
    n, n_vehicles, capacity = int(rng.integers(2, 6)), int(rng.integers(1, 4)), int(rng.integers(4, 9))
    demands = rng.integers(0, 4, size=n)
    edge = {pair: k for k, pair in enumerate(itertools.combinations(range(n + 1), 2))}
    decisions = set()
    for order in itertools.permutations(range(1, n + 1)):
        for n_cuts in range(n_vehicles):
            for cuts in itertools.combinations(range(1, n), n_cuts):
                parts = [order[a:b] for a, b in itertools.pairwise((0, *cuts, n))]
                if any(len(part) < 2 or sum(demands[i - 1] for i in part) > capacity for part in parts):
                    continue
                decision = [0] * len(edge)
                for part in parts:
                    for a, b in itertools.pairwise((0, *part, 0)):
                        decision[edge[min(a, b), max(a, b)]] = 1
                decisions.add(tuple(decision))
    if not decisions:
        with pytest.raises(ValueError, match="cannot serve all customers"):
            VehicleRouting(demands, capacity, n_vehicles)
        return routes(rng, sense)
    return VehicleRouting(demands, capacity, n_vehicles, sense=sense), np.array(sorted(decisions, reverse=True))


def _subsets(n):
    """Return all subsets of n items, the lexicographically largest first."""
    return np.array(list(itertools.product((1, 0), repeat=n)))


FAMILIES = {
    family.__name__: family
    for family in (
        paths,
        assignments,
        matchings,
        rankings,
        top_items,
        small_knapsacks,
        large_knapsacks,
        tours,
        trades,
        purchases,
        flows,
        routes,
    )
}


def whole(row):
    """Return a row of floats in a unit in which all are whole numbers."""
    mantissas, exponents = np.frexp(row)
    shifts = exponents - exponents.min()
    return np.array([int(m * 2.0**53) << int(s) for m, s in zip(mantissas, shifts, strict=True)], dtype=object)


def tie_size(program, costs, best, gap=1000, cap=100):
    """Return what a linear program measures ties by: the largest cost, or that below a gap if none above is paid."""
    sizes = np.abs(costs)
    reached = max(int((sizes * best).max()), 1)
    for size in sorted(sizes[sizes > reached].tolist()):
        if size > gap * reached:
            break
        reached = size
    region = program.polyhedron
    is_free = best == np.where(costs > 0, region.lower, region.upper)
    return cap * reached if is_free[sizes > reached].all() else int(sizes.max())


def check_row(problem, decisions, row, answer, *, ties, by_program=False):
    """Compare an answer with the best of all decisions, which stand in the order in which ties prefer them."""
    costs = whole(row if problem.sense == "min" else -row)
    if isinstance(problem, Knapsack) or (isinstance(problem, Matching) and not problem.complete):
        # What adds nothing is never chosen.
        decisions = decisions[(decisions[:, costs >= 0] == 0).all(axis=1)]
    values = decisions @ costs
    best = decisions[values == values.min()]
    assert (decisions == answer).all(axis=1).any(), f"{answer} is not feasible"
    gap = int((answer.astype(int) @ costs) - values.min())
    compared = min(int((answer != other) @ np.abs(costs)) for other in best)
    if isinstance(problem, TravellingSalesman | VehicleRouting):  # as it says where every tour must use huge costs
        compared += 10 * int(np.abs(costs * best[0]).max())
    if by_program or isinstance(problem, LinearProgram | MinCostFlow):
        compared += 10 * len(row) * tie_size(problem, costs, best[0])
    assert gap * 10**10 <= compared, f"{answer} costs {gap / compared:.1e} more than {best[0]} of what they differ in"
    if ties:
        np.testing.assert_array_equal(answer, best[0])


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_answer_is_the_best_of_all_decisions(family, kind, sense):
    rng = np.random.default_rng([*family.encode(), *kind.encode(), *sense.encode()])
    for _ in range(ROUNDS):
        problem, decisions = FAMILIES[family](rng, sense)
        costs = COSTS[kind](rng, (N_ROWS, problem.n_costs))
        costs = costs if sense == "min" else -costs  # what forbids in one sense, rewards in the other
        answers = problem.solve(costs)
        for row, answer in zip(costs, answers, strict=True):
            check_row(problem, decisions, row, answer, ties=kind in EXACT_COSTS)
            np.testing.assert_array_equal(problem.solve(row), answer)
        if kind in ("normal", "forbidden", "whole, some forbidden"):
            for factor in (0.3, 2.0**40, 1e-250, 1e250):
                np.testing.assert_array_equal(problem.solve(factor * costs), answers)


@pytest.mark.parametrize("kind", [kind for kind in COSTS if kind != "the largest"])
def test_paths_among_cycles(kind):
    rng = np.random.default_rng(list(kind.encode()))
    n_paths = 0
    for _ in range(4 * ROUNDS):
        problem, paths, cycles, flows = roads(rng)
        costs = np.abs(COSTS[kind](rng, (N_ROWS, problem.n_costs)))
        costs[1::2, rng.integers(problem.n_costs)] *= -1.0
        for row in costs:
            answer = problem.solve(row)
            check_row(problem, flows, row, answer, ties=False, by_program=True)
            if min(cycles @ whole(row), default=0) >= 0:
                check_row(problem, paths, row, answer, ties=kind in EXACT_COSTS)
                n_paths += 1
    assert n_paths >= 10


@pytest.mark.parametrize("kind", ["whole", "normal", "decimal", "many scales", "forbidden", "one forbidden", "near"])
@pytest.mark.parametrize("family", FAMILIES)
def test_known_costs_beside_costs(family, kind):
    rng = np.random.default_rng([*family.encode(), *kind.encode()])
    for _ in range(ROUNDS):
        problem, decisions = FAMILIES[family](rng, "min")
        costs = COSTS[kind](rng, (N_ROWS, problem.n_costs))
        known = rng.integers(-4, 5, size=costs.shape) / 2
        for row, answer in zip(costs + known, KnownCosts(problem, known).solve(costs), strict=True):
            check_row(problem, decisions, row, answer, ties=kind == "whole")


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("kind", [kind for kind in COSTS if kind != "the largest"])
@pytest.mark.parametrize("family", ["paths", "assignments", "flows"])
def test_linear_programs_with_whole_vertices(family, kind, sense):
    rng = np.random.default_rng([*family.encode(), *kind.encode(), *sense.encode()])
    for _ in range(ROUNDS):
        problem, decisions = FAMILIES[family](rng, sense)
        region = problem.polyhedron
        program = LinearProgram(
            region.A_ub, region.b_ub, region.A_eq, region.b_eq, region.lower, region.upper, sense=sense
        )
        costs = COSTS[kind](rng, (N_ROWS, problem.n_costs))
        costs = costs if sense == "min" else -costs
        for row, answer in zip(costs, program.solve(costs), strict=True):
            np.testing.assert_allclose(answer, answer.round(), atol=1e-9)
            check_row(program, decisions, row, answer.round(), ties=False)


class MixedProgram:
    """A small program in whole numbers, all or some, with all its points that can be optimal.

    Numbers are halves, tenths or whole, so that no constraint is missed by less than 1e-4 unless by rounding. Some
    programs have no point; some variables have no bound but those that constraints imply.
    """

    def __init__(self, rng, n_free):
        n_whole = int(rng.integers(1, 5))
        self.n, m = n_whole + n_free, int(rng.integers(0, 4))
        self.whole = rng.permutation(self.n) < n_whole
        self.unit = rng.choice([1.0, 0.5, 0.1])
        self.lower = rng.integers(-6, 4, size=self.n) / 2
        self.upper = self.lower + rng.integers(0, 8, size=self.n) / 2
        inside = np.where(self.whole, np.ceil(self.lower), self.lower + rng.integers(0, 3, size=self.n) / 2)
        A, A_eq = (rng.integers(-3, 6, size=(k, self.n)) * self.unit for k in (m, int(rng.integers(0, 2))))
        b = A @ inside + self.unit * rng.integers(-1, 3, size=m)
        b_eq = A_eq @ inside + (rng.random() < 0.1) * self.unit
        self.reach = np.stack([self.lower, self.upper])
        opened = rng.random(self.n) < 0.3
        partners = np.flatnonzero(self.whole & ~opened)
        for j in np.flatnonzero(opened):  # bounds as constraints of one variable, or of two
            beside = partners[:1] if rng.random() < 0.5 else []
            room = np.abs([self.lower[beside], self.upper[beside]]).max(initial=0.0)
            partners = partners[len(beside) :]
            for sign, side in ((1.0, self.upper[j]), (-1.0, -self.lower[j])):
                row, factor = np.zeros(self.n), float(rng.integers(1, 4))
                row[j], row[beside] = sign * factor, 1.0
                A, b = np.vstack([A, row]), np.append(b, factor * (side + room))
            self.lower[j], self.upper[j] = -np.inf, np.inf
            self.reach[:, j] += [-2 * room, 2 * room]
        self.scales = np.where(A.any(axis=1) & (rng.random() < 0.2), 10.0 ** rng.integers(-9, 10, size=len(b)), 1.0)
        self.A_ub, self.b_ub, self.A_eq, self.b_eq = self.scales[:, None] * A, b, A_eq, b_eq
        # All lines and the sides of them: constraints first, equalities twice, then bounds.
        unit = np.eye(self.n)
        self.rows = np.vstack([A, A_eq, -A_eq, unit, -unit])
        self.sides = np.concatenate([b, b_eq, -b_eq, self.upper, -self.lower])

    def shifted(self, by):
        """Return the sides of the same program with those of inequalities further out by a number each."""
        sides = self.sides.copy()
        sides[: len(by)] += by
        return sides

    def points(self, sides):
        """Return every choice of whole numbers with every corner that it leaves to the others: (p, n)."""
        rows, sides = self.rows[np.isfinite(sides)], sides[np.isfinite(sides)]
        grids = np.meshgrid(*(np.arange(np.floor(a) - 1, np.ceil(b) + 2) for a, b in self.reach.T[self.whole]))
        chosen = np.stack([grid.ravel() for grid in grids], axis=1)
        rest = sides - chosen @ rows[:, self.whole].T
        free = rows[:, ~self.whole]
        found = []
        for pair in itertools.combinations(range(len(rows)), free.shape[1]):
            corner = free[list(pair)]
            if free.shape[1] == 0 or abs(np.linalg.det(corner)) > 1e-9:
                points = np.empty((len(chosen), self.n))
                points[:, self.whole] = chosen
                points[:, ~self.whole] = np.linalg.solve(corner, rest[:, list(pair)].T).T if free.shape[1] else 0
                found.append(points[(points @ rows.T <= sides + 1e-7).all(axis=1)])
        return np.vstack([np.empty((0, self.n)), *found])


def mixed_program(rng, n_free, n_rows, sense, *, by_row):
    """Return a problem or None if its constructor says that it is empty, and the points of each row of costs."""
    draw = MixedProgram(rng, n_free)
    steps = draw.unit * rng.integers(-1, 2, size=(n_rows, len(draw.b_ub))) if by_row else np.zeros((1, len(draw.b_ub)))
    sides = [draw.shifted(step) for step in steps]
    b_ub = draw.scales * (draw.b_ub + steps)
    points = [draw.points(side) for side in sides]
    try:
        problem = LinearProgram(
            draw.A_ub, b_ub if by_row else b_ub[0], draw.A_eq, draw.b_eq, draw.lower, draw.upper,
            integrality=draw.whole, sense=sense, on_error="nan",
        )  # fmt: skip
    except ValueError as error:
        assert "the region is empty" in str(error)  # noqa: PT017  (most constructors succeed)
        assert not any(len(some) for some in points), "a program with points is called empty"
        return None, points
    return problem, points


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("by_row", [False, True], ids=["one region", "by row"])
@pytest.mark.parametrize("n_free", [0, 1, 2], ids=["whole", "one free", "two free"])
def test_mixed_programs_against_all_their_points(n_free, by_row, sense):
    rng = np.random.default_rng([n_free, by_row, sense == "min"])
    n_rows, left = (8, MIXED_ROWS // 16) if by_row else (max(50, MIXED_ROWS // 500), MIXED_ROWS)
    while left > 0:
        left -= n_rows
        problem, points = mixed_program(rng, n_free, n_rows, sense, by_row=by_row)
        if problem is None:
            continue
        kind = rng.choice(["whole", "normal", "decimal", "forbidden"])
        costs = COSTS[kind](rng, (n_rows, problem.n_costs))
        answers = problem.solve(costs)
        for row, answer in enumerate(answers) if by_row else [(slice(None), answers)]:
            every = points[row if by_row else 0]
            check_mixed(problem, every, np.atleast_2d(costs[row]), np.atleast_2d(answer))


def check_mixed(problem, points, costs, answers):
    """Compare answers with the best of all points of their region; NaN where there is none."""
    if not len(points):
        assert np.isnan(answers).all(), f"{answers[0]} where there is no point"
        return
    assert np.isfinite(answers).all(), "no answer where there are points"
    signed = costs if problem.sense == "min" else -costs
    best = (signed @ points.T).min(axis=1)
    terms = signed * answers
    gaps = terms.sum(axis=1) - best
    assert (np.abs(gaps) <= 1e-7 * (np.linalg.norm(costs, axis=1) + np.abs(terms).sum(axis=1))).all()
    whole = answers[:, problem._whole]
    np.testing.assert_array_equal(whole, whole.round())
    # A whole part of some point, and the rest within the region: the value says which one is best there.
    assert (np.abs(whole[:, None] - points[None][:, :, problem._whole]) < 1e-9).all(axis=2).any(axis=1).all()


@pytest.mark.parametrize("kind", ["ordinary", "one priced out", "some priced out", "small", "huge"])
def test_a_portfolio_meets_its_optimality_conditions(kind):
    rng = np.random.default_rng(list(kind.encode()))
    for _ in range(ROUNDS):
        n = int(rng.integers(2, 12))
        factors = rng.normal(size=(n, n))
        problem = Portfolio(factors @ factors.T / n, risk=10.0 ** rng.uniform(-2, 1))
        returns = rng.normal(0.05, 0.1, size=(N_ROWS, n))
        if kind == "one priced out":
            returns = _one(rng, returns, -(10.0 ** rng.uniform(5, 15)))
        if kind == "some priced out":
            returns = _spiked(rng, returns, -(10.0 ** rng.uniform(5, 15, size=returns.shape)))
        returns *= {"small": 1e-280, "huge": 1e280}.get(kind, 1.0)
        for r, w in zip(returns, problem.solve(returns), strict=True):
            check_portfolio(problem, r, w)


def check_portfolio(problem, returns, w):
    """Bound by duality how much more any portfolio could return, in units of the largest return."""
    best = returns.max()
    if best <= 0:
        np.testing.assert_array_equal(w, 0)
        return
    r, loads = returns / best, problem.covariance @ w
    assert (w >= 0).all()
    assert w.sum() <= 1 + 1e-9
    assert w @ loads <= problem.risk * (1 + 1e-9)
    # Every portfolio v has v·Σw <= sqrt(vᵀΣv · wᵀΣw), so that for any price of risk
    # r·v = price · Σw·v + (r - price · Σw)·v <= price · sqrt(risk · wᵀΣw) + max(0, largest of r - price · Σw).
    lines = [*zip(r, loads, strict=True), (0.0, 0.0)]
    crossings = [(a - b) / (s - t) for (a, s), (b, t) in itertools.combinations(lines, 2) if s != t]
    bound = min(
        price * np.sqrt(problem.risk * (w @ loads)) + max(a - price * s for a, s in lines)
        for price in [0.0, *(price for price in crossings if price > 0)]
    )
    assert r @ w >= bound - 1e-8
