import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from decidewise.problems import ShortestPath


def paths(problem):
    """Every path as a decision, in the order of the tie rule: at each node the lowest-numbered edge first."""
    found = []

    def walk(node, taken):
        if node == problem.target:
            found.append(np.isin(np.arange(problem.n_costs), taken).astype(float))
        for edge in np.flatnonzero(problem.tails == node):
            walk(problem.heads[edge], [*taken, edge])

    walk(problem.source, [])
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
        ([0, 1, 2, 2], [1, 2, 1, 3], 0, 3, r"no cycle; nodes (1 -> 2 -> 1|2 -> 1 -> 2) form one"),
        ([0, 5], [1, 5], 0, 1, "no cycle; nodes 5 -> 5"),
        ([0, 2], [1, 3], 0, 3, "no path leads from source 0 to target 3"),
        ([0, 1], [1, 2], 2, 0, "no path leads from source 2 to target 0"),
        ([0, 1], [1, 2], 0, 8, "node 8 is the source or the target, but is not an end of any edge"),
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
