import numpy as np
import pytest

from decidewise.problems import Assignment, MinCostFlow, ShortestPath


def random_network(rng, n_nodes, n_edges, *, whole):
    """A cycle through all nodes, wide enough for everything, and edges in all directions."""
    tails, heads = rng.integers(n_nodes, size=(2, n_edges))
    order = rng.permutation(n_nodes)
    supply = rng.integers(-3, 4, size=n_nodes).astype(float) if whole else rng.normal(size=n_nodes)
    supply[-1] -= supply.sum()
    capacity = rng.integers(0, 4, size=n_edges) if whole else rng.uniform(size=n_edges)
    capacity = np.append(capacity, np.full(n_nodes, np.abs(supply).sum()))
    return MinCostFlow(np.append(tails, order), np.append(heads, np.roll(order, 1)), supply, capacity=capacity)


@pytest.mark.parametrize("whole", [True, False])
def test_equals_highs(whole, highs_minimum):
    rng = np.random.default_rng(int(whole))
    for n_nodes in (2, 3, 5, 8, 13, 30):
        problem = random_network(rng, n_nodes, 4 * n_nodes, whole=whole)
        normal = rng.normal(size=(4, problem.n_costs))
        costs = np.vstack([normal, rng.integers(-2, 3, size=normal.shape), np.abs(normal)])
        flows = problem.solve(costs)
        best = highs_minimum(problem.polyhedron, costs)
        np.testing.assert_allclose((costs * flows).sum(axis=1), best, rtol=1e-9, atol=1e-9)
        assert not whole or np.array_equal(flows, flows.round())


def test_a_transportation_of_single_units_is_an_assignment():
    costs = np.random.default_rng(2).normal(size=(20, 36))
    problem = MinCostFlow.transportation(np.ones(6), np.ones(6))
    np.testing.assert_array_equal(problem.solve(costs), Assignment(6).solve(costs))


def test_a_flow_of_one_unit_is_a_shortest_path():
    grid = ShortestPath(4, 5)
    costs = np.random.default_rng(3).normal(size=(30, grid.n_costs))
    supply = np.zeros(20)
    supply[0], supply[-1] = 1.0, -1.0
    np.testing.assert_array_equal(MinCostFlow(grid.tails, grid.heads, supply).solve(costs), grid.solve(costs))


@pytest.mark.parametrize("scale", [1e-300, 0.1, 1 / 3, 1e8, 1e300])
def test_ties_of_a_large_instance(scale):
    """With costs `u[i] + v[j]` every flow is optimal: the rule chooses as fixed random costs would."""
    rng = np.random.default_rng(4)
    costs = scale * (rng.integers(-9, 9, size=(12, 1)) + rng.integers(-9, 9, size=12))
    problem = MinCostFlow.transportation(np.full(12, 3.0), np.full(12, 3.0))
    preferred = problem.solve(np.random.default_rng(0).uniform(1.0, 2.0, problem.n_costs))
    np.testing.assert_array_equal(problem.solve(costs.ravel()), preferred)


def test_ties_do_not_depend_on_the_rows_before():
    problem = random_network(np.random.default_rng(5), 20, 80, whole=False)
    costs = np.random.default_rng(6).integers(-2, 3, size=(40, problem.n_costs)).astype(float)
    backwards = random_network(np.random.default_rng(5), 20, 80, whole=False).solve(costs[::-1])[::-1]
    np.testing.assert_array_equal(problem.solve(costs), backwards)
    np.testing.assert_array_equal(problem.solve(0.3 * costs), backwards)


def test_flows_by_row_are_whole_in_the_rows_in_which_all_numbers_are():
    supply = np.array([[3.0, 0.0, -3.0], [0.25, 0.5, -0.75], [4.0, -1.0, -3.0]])
    problem = MinCostFlow([0, 0, 1], [1, 2, 2], supply, capacity=4.0)
    flows = problem.solve(np.random.default_rng(7).normal(size=(3, 3)))
    leaving = flows @ np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1]])
    np.testing.assert_allclose(leaving, supply, atol=1e-12)
    np.testing.assert_array_equal(flows[[0, 2]], flows[[0, 2]].round())
    np.testing.assert_array_equal(problem.take([1]).solve([[1.0, 5.0, 1.0]]), [[0.25, 0.0, 0.75]])


@pytest.mark.parametrize("forbidden", [1e6, 1e12, 1e15])
def test_forbidden_edges_do_not_blur_the_others(forbidden):
    """Every flow pays for one forbidden edge; the others differ by 0.1."""
    problem = MinCostFlow([0, 1, 1, 1], [1, 2, 2, 2], supply=[2.0, 0.0, -2.0], capacity=2.0)
    np.testing.assert_array_equal(problem.solve([forbidden, 0.3, 0.2, forbidden]), [2, 0, 2, 0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"supply": [1.0, 0.0, -2.0]}, "supply must sum to zero.*it sums to -1"),
        ({"tails": [0, 3]}, "tails must be nodes from 0 to 2, those that have a supply; edge 1 has 3"),
        ({"heads": [1]}, "tails has 2 nodes and heads 1"),
        ({"heads": [1.0, 2.0]}, "heads must be a list of node numbers, one for each edge; .* float64"),
        ({"capacity": [1.0, -1.0]}, "capacity must not be negative; edge 1 has -1"),
        ({"capacity": [1.0]}, "capacity"),
        ({"capacity": 0.5}, "the capacities do not let all supplies reach the nodes that need them"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        MinCostFlow(**({"tails": [0, 1], "heads": [1, 2], "supply": [1.0, 0.0, -1.0]} | arguments))


def test_bad_transportation():
    with pytest.raises(ValueError, match="demand must not be negative; entry 1 has -1"):
        MinCostFlow.transportation([1.0], [2.0, -1.0])
