"""LAVA against its formula over brute-force neighbours, and its link to optimality."""

import numpy as np
import pytest
from scipy.optimize import linprog

from decidewise.losses import Lava
from decidewise.problems import Assignment, Knapsack, ShortestPath, TopK

KNAPSACK = Knapsack([[3.1, 4.2, 5.3, 6.4, 7.7], [4.3, 2.6, 6.1, 3.9, 5.2]], [12.0, 10.0])


def draw(problem, n=40, noise=0.8):
    rng = np.random.default_rng(0)
    costs = rng.uniform(0.5, 2.0, size=(n, problem.n_costs))
    return costs + rng.normal(scale=noise, size=costs.shape), costs


@pytest.mark.parametrize("threshold", [0.1, 0.7])
def test_value_and_gradient_on_the_swaps_of_a_choice(threshold):
    # The neighbours of a choice of k items are those with one item swapped.
    problem = TopK(6, 2)
    prediction, costs = draw(problem)
    loss = Lava(threshold=threshold)

    values, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), None)

    for p, w, value, slope in zip(prediction, problem.solve(costs), values, gradient, strict=True):
        expected, direction = 0.0, np.zeros(6)
        for chosen in np.flatnonzero(w == 1):
            for other in np.flatnonzero(w == 0):
                excess = p[other] - p[chosen]  # a maximisation: the neighbour gains what it has more
                expected += max(excess, -threshold)
                if excess > -threshold:
                    direction[other] += 1
                    direction[chosen] -= 1
        assert value == pytest.approx(expected, abs=1e-9)
        np.testing.assert_allclose(slope, direction, atol=1e-9)


@pytest.mark.parametrize("problem", [ShortestPath(4, 4), Assignment(3), TopK(6, 2, sense="min")])
def test_no_neighbour_is_better_exactly_where_the_vertex_is_optimal(problem):
    prediction, costs = draw(problem, n=300, noise=0.3)
    loss = Lava(threshold=1e-12)  # without a margin only neighbours that are better count

    values, _ = loss.value_and_grad(prediction, loss.prepare(problem, costs), None)

    regret = np.sum(prediction * (problem.solve(costs) - problem.solve(prediction)), axis=1)
    assert 10 < (regret > 1e-9).sum() < 290
    np.testing.assert_array_equal(values > 1e-9, regret > 1e-9)


def test_rows_share_the_neighbours_of_their_vertex(monkeypatch):
    problem = TopK(4, 1)
    costs = np.array([[4.0, 1, 1, 1], [1, 4, 1, 1], [9, 1, 1, 1], [5, 2, 2, 2]])
    solved, minimize = [], problem.minimize
    monkeypatch.setattr(problem, "minimize", lambda rows: solved.append(len(rows)) or minimize(rows))

    target = Lava().prepare(problem, costs)

    assert solved == [4]
    assert len(target.starts) == 2 + 1
    assert target.vertex[0] == target.vertex[2] == target.vertex[3] != target.vertex[1]
    assert np.diff(target.starts).tolist() == [3, 3]


def test_in_integers_the_vertices_are_those_of_the_relaxation():
    prediction, costs = draw(KNAPSACK)
    region = KNAPSACK.polyhedron
    bounds = list(zip(region.lower, region.upper, strict=True))
    target = Lava().prepare(KNAPSACK, costs)

    # At a non-degenerate vertex of d dimensions there are d neighbours, all feasible and none better.
    starts = target.starts
    assert set(np.diff(starts)) == {5}
    differences = target.edges.toarray()
    fractional = 0
    for row, vertex in zip(costs, target.vertex, strict=True):
        relaxed = linprog(-row, region.A_ub, region.b_ub, bounds=bounds)
        fractional += np.any(np.abs(relaxed.x - relaxed.x.round()) > 1e-6)
        edges = differences[starts[vertex] : starts[vertex + 1]]
        assert (edges @ -row < 1e-9).all()
        others = relaxed.x - edges
        assert (others @ region.A_ub.T <= region.b_ub + 1e-9).all()
        assert (np.abs(others - 0.5) <= 0.5 + 1e-9).all()
    assert fractional > 0
    values, gradient = Lava().value_and_grad(prediction, target, None)
    assert np.isfinite(values).all()
    assert gradient.any()


def test_padding_and_order_play_no_part():
    # Rows whose vertices have different numbers of neighbours are sums of their own, alone or together.
    problem = ShortestPath(4, 4)
    prediction, costs = draw(problem)
    loss = Lava()
    target = loss.prepare(problem, costs)
    assert len(set(np.diff(target.starts))) > 1

    values, gradient = loss.value_and_grad(prediction, target, None)

    for i in range(0, len(costs), 7):
        alone, direction = loss.value_and_grad(prediction[i : i + 1], loss.prepare(problem, costs[i : i + 1]), None)
        np.testing.assert_allclose(alone, values[i], rtol=1e-9)
        np.testing.assert_allclose(direction[0], gradient[i], atol=1e-9)


def test_a_limit_on_the_neighbours():
    problem = Assignment(5)
    _, costs = draw(problem, n=3)
    assert set(np.diff(Lava().prepare(problem, costs).starts)) == {84}
    assert max(np.diff(Lava(max_neighbors=30).prepare(problem, costs).starts)) <= 30


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"threshold": 0.0}, "threshold must be a number above 0; got threshold=0.0"),
        ({"max_neighbors": 0}, "max_neighbors must be at least 1; got max_neighbors=0"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        Lava(**parameters)
