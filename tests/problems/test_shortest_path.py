import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from decidewise.evaluate import decision_regret
from decidewise.problems import KnownCosts, ShortestPath
from decidewise.testing import check_problem


def paths(problem):
    """Every path as a decision, in the order of the tie rule: at each node the lowest-numbered edge first."""
    found = []

    def walk(node, taken, visited):
        if node == problem.target:
            found.append(np.isin(np.arange(problem.n_costs), taken).astype(float))
            return
        for edge in np.flatnonzero(problem.tails == node):
            if problem.heads[edge] not in visited:
                walk(problem.heads[edge], [*taken, edge], {*visited, problem.heads[edge]})

    walk(problem.source, [], {problem.source})
    return np.array(found)


def random_graph(seed, n_nodes, n_edges):
    """A directed acyclic graph with shuffled, scattered node numbers, parallel edges and dead ends."""
    rng = np.random.default_rng(seed)
    names = rng.choice(10 * n_nodes, size=n_nodes, replace=False)
    ends = np.sort([rng.choice(n_nodes, size=2, replace=False) for _ in range(n_edges)], axis=1)
    source, target = n_nodes // 5, n_nodes - 1 - n_nodes // 5
    ends = rng.permutation(np.vstack([ends, [[source, target]]]))
    return ShortestPath.from_edges(names[ends[:, 0]], names[ends[:, 1]], names[source], names[target])


SMALL = {
    "2x2": ShortestPath(2, 2),
    "1x4": ShortestPath(1, 4),
    "4x1": ShortestPath(4, 1),
    "3x4": ShortestPath(3, 4),
    "5x4": ShortestPath(5, 4),
    "parallel": ShortestPath.from_edges([3, 3, 3], [1, 1, 1], 3, 1),
    **{f"graph{seed}": random_graph(seed, n_nodes=10, n_edges=25) for seed in range(6)},
}


@pytest.fixture(params=SMALL.values(), ids=SMALL.keys())
def small(request):
    return request.param


def test_grid_edges_go_row_by_row_east_before_south():
    edges = []
    for i in range(5):
        edges += [(5 * i + j, 5 * i + j + 1) for j in range(4)]
        if i < 4:
            edges += [(5 * i + j, 5 * i + j + 5) for j in range(5)]
    problem = ShortestPath(5, 5)
    assert problem.n_costs == 40
    assert list(zip(problem.tails, problem.heads, strict=True)) == edges


@pytest.mark.parametrize("largest", [1, 2, 10])
def test_equals_enumeration_with_ties(small, largest, first_best):
    costs = np.random.default_rng(largest).integers(-largest, largest + 1, size=(200, small.n_costs)).astype(float)
    expected = first_best(paths(small), costs)
    for scale in (1e-300, 1e-8, 0.1, 1 / 3, 1.0, 7.7, 1e8, 1e300):
        np.testing.assert_array_equal(small.solve(scale * costs), expected)


def test_equals_enumeration_of_real_costs(small, first_best):
    costs = np.random.default_rng(0).normal(size=(200, small.n_costs))
    np.testing.assert_array_equal(small.solve(costs), first_best(paths(small), costs))


@pytest.mark.parametrize("problem", [ShortestPath(9, 12), random_graph(0, 60, 400)], ids=["9x12", "graph"])
def test_equals_highs(problem, highs_minimum):
    costs = np.random.default_rng(1).normal(size=(20, problem.n_costs))
    values = (costs * problem.solve(costs)).sum(axis=1)
    np.testing.assert_allclose(values, highs_minimum(problem.polyhedron, costs), rtol=1e-7)


def test_equals_dijkstra_on_a_large_grid():
    problem = ShortestPath(60, 80)
    costs = np.random.default_rng(2).uniform(0.1, 1.0, size=(5, problem.n_costs))
    values = (costs * problem.solve(costs)).sum(axis=1)
    for row, value in zip(costs, values, strict=True):
        graph = csr_array((row, (problem.tails, problem.heads)), shape=(4800, 4800))
        assert value == pytest.approx(dijkstra(graph, indices=problem.source)[problem.target], rel=1e-12)


def test_ties_survive_rounding_on_a_large_grid():
    problem = ShortestPath(100, 100)
    decision = problem.solve(np.full(problem.n_costs, 0.1))
    first = np.flatnonzero(problem.tails // 100 == 0)[:99]  # all the way east, then all the way south
    south = np.flatnonzero((problem.tails % 100 == 99) & (problem.heads - problem.tails == 100))
    np.testing.assert_array_equal(np.flatnonzero(decision), np.union1d(first, south))


def test_longest_path_is_the_mirror():
    costs = np.random.default_rng(3).normal(size=(50, 40))
    np.testing.assert_array_equal(ShortestPath(5, 5, sense="max").solve(costs), ShortestPath(5, 5).solve(-costs))


def test_sums_of_huge_costs_do_not_overflow():
    costs = np.full(40, 1.7e308)
    costs[:4] = -1.7e308  # the first row east
    decision = ShortestPath(5, 5).solve(costs)
    assert decision[:4].sum() == 4
    assert decision.sum() == 8


def test_costs_off_every_path_do_not_matter():
    problem = ShortestPath.from_edges([0, 0, 0, 5], [1, 1, 9, 0], source=0, target=1)
    np.testing.assert_array_equal(problem.solve([2.0, 1.0, 1e30, -1e30]), [0, 1, 0, 0])


def test_norm_bound_is_that_of_the_longest_path(small):
    assert np.linalg.norm(paths(small), axis=1).max() == pytest.approx(small.B_S, rel=1e-15)


def test_polyhedron_has_one_row_a_node():
    region = ShortestPath.from_edges([4, 4, 7], [7, 2, 2], source=4, target=2).polyhedron
    np.testing.assert_array_equal(region.A_eq.toarray(), [[0, -1, -1], [1, 1, 0], [-1, 0, 1]])  # nodes 2, 4 and 7
    np.testing.assert_array_equal(region.b_eq, [-1, 1, 0])
    assert region.A_ub.shape == (0, 3)


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (1, 1, "1 by 1"),
        (0, 5, "rows must be at least 1"),
        (5, -2, "columns must be at least 1; got columns=-2"),
        (5.0, 5, "rows must be .* integer; got 5.0 of type float"),
        (5, True, "columns must be .* integer; got True of type bool"),
        ("5", 5, "rows must be .* integer"),
    ],
)
def test_bad_grid(rows, columns, message):
    with pytest.raises(ValueError, match=message):
        ShortestPath(rows, columns)


def test_numpy_integers_are_integers():
    assert ShortestPath(np.int32(2), np.uint8(3)).n_costs == 7


@pytest.mark.parametrize(
    ("tails", "heads", "source", "target", "message"),
    [
        ([0, 2], [1, 3], 0, 3, "no path leads from source 0 to target 3"),
        ([0, 1], [1, 2], 2, 0, "no path leads from source 2 to target 0"),
        ([0, 1], [1, 2], 0, 8, "node 8 is the target, but is not an end of any edge"),
        ([0, 1], [1, 2], 1, 1, "source and target are both node 1"),
        ([0, 1], [1, 2, 3], 0, 3, "tails has 2 nodes and heads 3"),
        ([0, -1], [1, 2], 0, 2, "tails must not be negative; edge 1 has -1"),
        ([0, 1], [1.0, 2.0], 0, 2, "heads must be integers.*float64"),
        ([False, True], [1, 2], 0, 2, "tails must be integers.*bool"),
        ([], [], 0, 1, r"tails.shape=\(0,\)"),
        ([[0, 1]], [[1, 2]], 0, 2, r"tails.shape=\(1, 2\)"),
        ([0, 1], [1, 2], 0.0, 2, "source must be .* integer"),
        ([0, 1], [1, 2], 0, -1, "target must be at least 0"),
    ],
)
def test_bad_edges(tails, heads, source, target, message):
    with pytest.raises(ValueError, match=message):
        ShortestPath.from_edges(tails, heads, source, target)


def random_ends(rng, n_nodes, n_edges):
    """Edges in all directions, among them cycles, loops and parallel ones, and a way through all nodes in turn."""
    tails, heads = rng.integers(n_nodes, size=(2, n_edges))
    order = rng.permutation(n_nodes)
    mixed = rng.permutation(n_edges + n_nodes - 1)
    tails, heads = np.append(tails, order[:-1])[mixed], np.append(heads, order[1:])[mixed]
    return tails, heads, order[0], order[-1]


CYCLIC = {f"cyclic{seed}": random_ends(np.random.default_rng(seed), 6, 14) for seed in range(8)}


@pytest.fixture(params=CYCLIC.values(), ids=CYCLIC.keys())
def cyclic(request):
    return ShortestPath.from_edges(*request.param)


@pytest.mark.parametrize("largest", [1, 2, 10])
def test_cycles_that_cost_nothing_do_not_confuse_the_rule_for_ties(cyclic, largest, first_best):
    costs = np.random.default_rng(largest).integers(0, largest + 1, size=(150, cyclic.n_costs)).astype(float)
    costs[0] = 0.0
    expected = first_best(paths(cyclic), costs)
    for scale in (1e-300, 0.1, 1 / 3, 7.7, 1e300):
        np.testing.assert_array_equal(cyclic.solve(scale * costs), expected)


def test_negative_costs_without_a_negative_cycle(cyclic, first_best):
    """Costs that differ from others by a potential: every cycle costs the same as before."""
    rng = np.random.default_rng(4)
    costs = rng.integers(0, 4, size=(100, cyclic.n_costs)).astype(float)
    potential = rng.integers(-9, 10, size=(100, cyclic.tails.max() + 1))
    costs += potential[:, cyclic.tails] - potential[:, cyclic.heads]
    expected = first_best(paths(cyclic), costs)
    for scale in (1e-8, 1 / 3, 1.0, 1e300):
        np.testing.assert_array_equal(cyclic.solve(scale * costs), expected)


def test_a_row_with_a_negative_cycle_is_a_flow():
    problem = ShortestPath.from_edges([0, 1, 2, 1, 5, 3], [1, 2, 1, 3, 5, 0], source=0, target=3)
    costs = np.ones((70_000, 6))
    costs[:, 4] = -1.0  # a loop that is on no path
    costs[:, 5] = -9.0  # a cycle through the source and the target, where paths end
    costs[66_000, 2] = -0.5
    np.testing.assert_array_equal(problem.solve(costs)[66_000], [1, 0, 0, 1, 0, 0])
    costs[66_000, 2] = -1.5
    decisions = problem.solve(costs)
    np.testing.assert_array_equal(decisions[66_000], [1, 1, 1, 1, 0, 0])
    assert (decisions == [1, 0, 0, 1, 0, 0]).all(axis=1).sum() == 69_999


def test_a_graph_with_cycles_keeps_the_contract(cyclic):
    rng = np.random.default_rng(5)
    costs = np.vstack([rng.normal(size=(20, cyclic.n_costs)), rng.integers(0, 3, size=(20, cyclic.n_costs))])
    check_problem(cyclic, costs=costs, tolerance=0.0)


@pytest.mark.parametrize("forbidden", [1e6, 1e15])
def test_forbidden_edges_do_not_blur_the_others(cyclic, forbidden):
    rng = np.random.default_rng(6)
    costs = np.where(rng.random((100, cyclic.n_costs)) < 0.4, forbidden, rng.integers(0, 99, (100, cyclic.n_costs)))
    every = paths(cyclic)
    values = [[sum(int(cost) for cost in row[path > 0]) for path in every] for row in costs]
    np.testing.assert_array_equal(cyclic.solve(costs), every[np.argmin(values, axis=1)])


def test_equals_dijkstra_on_a_road_network():
    rng = np.random.default_rng(7)
    tails, heads, source, target = random_ends(rng, 200, 2_401)
    problem = ShortestPath.from_edges(tails, heads, source, target)
    costs = rng.exponential(size=(20, problem.n_costs))
    values = (costs * problem.solve(costs)).sum(axis=1)
    for row, value in zip(costs, values, strict=True):
        cheapest = np.full((200, 200), np.inf)
        np.minimum.at(cheapest, (tails, heads), row)
        assert value == pytest.approx(dijkstra(cheapest, indices=source)[target], rel=1e-12)


def both_ways(side):
    """A grid with edges to all four neighbours, from its first to its last node."""
    nodes = np.arange(side * side).reshape(side, side)
    ends = [(nodes[:, :-1].ravel(), nodes[:, 1:].ravel()), (nodes[:-1].ravel(), nodes[1:].ravel())]
    tails, heads = np.hstack([*ends, *(end[::-1] for end in ends)])
    return tails, heads, 0, side * side - 1


def test_negative_cycles_give_the_best_flow(highs_minimum):
    problem = ShortestPath.from_edges(*both_ways(6))
    rng = np.random.default_rng(10)
    costs = rng.normal(loc=rng.uniform(0, 3, size=(40, 1)), size=(40, problem.n_costs))
    decisions = problem.solve(costs)
    assert set(np.unique(decisions)) == {0.0, 1.0}
    np.testing.assert_allclose((costs * decisions).sum(axis=1), highs_minimum(problem.polyhedron, costs), rtol=1e-9)
    np.testing.assert_array_equal(ShortestPath.from_edges(*both_ways(6), sense="max").solve(-costs), decisions)

    ends = rng.permutation(36)[:12].reshape(2, 6)
    by_row = ShortestPath.from_edges(*both_ways(6)[:2], *ends)
    alone = [
        ShortestPath.from_edges(*both_ways(6)[:2], *pair).solve(row) for pair, row in zip(ends.T, costs, strict=False)
    ]
    np.testing.assert_array_equal(by_row.solve(costs[:6]), alone)
    np.testing.assert_array_equal(by_row.take([4, 1]).solve(costs[[4, 1]]), [alone[4], alone[1]])


def test_who_knows_that_costs_are_not_negative_decides_by_paths():
    edges = both_ways(3)
    rng = np.random.default_rng(11)
    costs = rng.uniform(1, 2, size=(30, 24))
    prediction = costs + rng.normal(scale=2, size=costs.shape)
    free, bounded = ShortestPath.from_edges(*edges), ShortestPath.from_edges(*edges, lower=0)
    raised = np.maximum(prediction, 0.0)
    assert (free.solve(prediction).sum(axis=1) > free.solve(raised).sum(axis=1)).any()
    np.testing.assert_array_equal(decision_regret(bounded, prediction, costs), decision_regret(free, raised, costs))
    np.testing.assert_array_equal(bounded.as_costs(prediction), raised)
    np.testing.assert_array_equal(bounded.solve(prediction), free.solve(prediction))
    both = KnownCosts(bounded, costs[0])  # where the bound is on what comes on top
    expected = decision_regret(free, raised + costs[0], costs + costs[0])
    np.testing.assert_allclose(decision_regret(both, prediction, costs), expected, atol=1e-12)
    costs[7, 3] = -0.25
    with pytest.raises(ValueError, match=r"not be negative where lower=0 says so; row 7, edge 3 has -0\.25"):
        decision_regret(bounded, prediction, costs)
    for wrong in (1.5, [0.0, 0.0], np.nan):
        with pytest.raises(ValueError, match=r"lower must be 0 or None.*KnownCosts"):
            ShortestPath.from_edges(*edges, lower=wrong)
    with pytest.raises(ValueError, match="leave it out where sense is 'max'"):
        ShortestPath.from_edges(*edges, lower=0, sense="max")


@pytest.mark.parametrize("is_cyclic", [True, False])
def test_sources_and_targets_by_row(is_cyclic):
    rng = np.random.default_rng(8)
    tails, heads, _, _ = random_ends(rng, 12, 60)
    if not is_cyclic:
        tails, heads = np.sort([tails, heads], axis=0)[:, tails != heads]
    ends = [(a, b) for a in range(12) for b in range(12) if a != b and _has_path(tails, heads, a, b)]
    sources, targets = np.array(ends).T
    problem = ShortestPath.from_edges(tails, heads, sources, targets)
    costs = rng.integers(0, 4, size=(len(ends), len(tails))).astype(float)
    expected = np.array(
        [ShortestPath.from_edges(tails, heads, *pair).solve(row) for pair, row in zip(ends, costs, strict=True)]
    )
    assert problem.n_rows == len(ends)
    np.testing.assert_array_equal(problem.solve(costs), expected)
    for rows in (np.array([5, 0, 5]), slice(3, 9), np.arange(len(ends)) % 2 == 0):
        part = problem.take(rows)
        assert part.n_rows == len(costs[rows])
        np.testing.assert_array_equal(part.solve(costs[rows]), expected[rows])
    if not is_cyclic:
        longest = ShortestPath.from_edges(tails, heads, sources, targets, sense="max").solve(costs - 2.0)
        np.testing.assert_array_equal(longest, problem.solve(2.0 - costs))
    with pytest.raises(ValueError, match="2 rows of costs"):
        problem.solve(costs[:2])


def _has_path(tails, heads, source, target):
    try:
        return ShortestPath.from_edges(tails, heads, source, target) is not None
    except ValueError:
        return False


def test_one_target_for_many_sources():
    problem = ShortestPath.from_edges([0, 1], [1, 2], source=[0, 1], target=2)
    np.testing.assert_array_equal(problem.solve(np.ones((2, 2))), [[1, 1], [0, 1]])
    assert problem.polyhedron is None
    fixed = ShortestPath(2, 2)
    assert fixed.take([0]) is fixed


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([0, 2], [2, 0], "row 1: no path leads from source 2 to target 0"),
        ([0, 1], [2, 1], "row 1: source and target are both node 1"),
        ([0, 1], [2, 2, 2], "source has 2 rows and target 3"),
        ([0, 7], 2, "node 7 is the source, but is not an end of any edge"),
        ([0.0], [2], "source must be integers"),
        ([[0]], [2], r"source must be a list of nodes, one for each row; got source.shape=\(1, 1\)"),
    ],
)
def test_bad_ends_by_row(source, target, message):
    with pytest.raises(ValueError, match=message):
        ShortestPath.from_edges([0, 1], [1, 2], source, target)


def test_huge_costs_that_all_paths_share_leave_the_others_exact():
    """Three edges of -1.7e308 leave no digits for the rest of a path, even in twice the precision."""
    problem = ShortestPath(4, 4)
    costs = np.full(24, 1.7e308)
    costs[[12, 19, 23]] = -1.7e308
    costs[[0, 1, 5]] = -2.0, 3.0, 3.0
    costs[[4, 8]] = -2.0, 1.0

    assert np.flatnonzero(problem.solve(costs)).tolist() == [0, 4, 8, 12, 19, 23]
