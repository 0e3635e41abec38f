"""Adjacent vertices against brute force: list all vertices, and test each pair by the rank of what both bind."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array

from decidewise.losses.parts.adjacent_vertices import adjacent_vertices, extreme_rays
from decidewise.losses.parts.cones import NormalCones
from decidewise.problems import Assignment, ShortestPath, TopK
from decidewise.solvers import Polyhedron


def polytope(A_ub=(), b_ub=(), A_eq=(), b_eq=(), *, lower, upper):
    d = len(lower)
    as_rows = [csr_array(np.array(A, dtype=float).reshape(-1, d)) for A in (A_ub, A_eq)]
    bounds = [np.array(bound, dtype=float) for bound in (lower, upper)]
    return Polyhedron(as_rows[0], np.array(b_ub, dtype=float), as_rows[1], np.array(b_eq, dtype=float), *bounds)


def one_sided(polyhedron):
    """Return all inequalities, bounds among them, as dense rows and right-hand sides."""
    d = len(polyhedron.lower)
    rows = np.vstack([polyhedron.A_ub.toarray(), np.eye(d), -np.eye(d)])
    sides = np.concatenate([polyhedron.b_ub, polyhedron.upper, -polyhedron.lower])
    return rows[np.isfinite(sides)], sides[np.isfinite(sides)]


def all_vertices(polyhedron):
    d = len(polyhedron.lower)
    rows, sides = one_sided(polyhedron)
    equal = polyhedron.A_eq.toarray()
    free = d - (np.linalg.matrix_rank(equal) if len(equal) else 0)
    found = []
    for chosen in map(list, combinations(range(len(rows)), free)):
        system = np.vstack([equal, rows[chosen]])
        if np.linalg.matrix_rank(system) == d:
            point = np.linalg.lstsq(system, np.concatenate([polyhedron.b_eq, sides[chosen]]), rcond=None)[0]
            if (rows @ point <= sides + 1e-9).all() and np.allclose(equal @ point, polyhedron.b_eq):
                found.append(point)
    return np.unique(np.array(found).round(9) + 0.0, axis=0)


def adjacent_by_rank(polyhedron, vertices):
    """Return, for every vertex, which of the vertices are its neighbours."""
    rows, sides = one_sided(polyhedron)
    equal = polyhedron.A_eq.toarray()
    tight = np.abs(vertices @ rows.T - sides) < 1e-7  # vertices come rounded
    rank = np.array(
        [
            [np.linalg.matrix_rank(np.vstack([equal, rows[a & b], np.zeros_like(rows[:1])])) for b in tight]
            for a in tight
        ]
    )
    return rank == len(polyhedron.lower) - 1


def random_polytope():
    """Return a box cut by random half-spaces, three of them through one of its corners."""
    rng = np.random.default_rng(2)
    cuts = np.vstack([rng.normal(size=(4, 4)), rng.uniform(0.2, 1.0, size=(3, 4))])
    sides = np.concatenate([rng.uniform(0.8, 1.5, size=4), cuts[4:].sum(axis=1)])
    return polytope(cuts, sides, lower=np.zeros(4), upper=np.ones(4))


def sorted_rows(rows):
    return rows[np.lexsort(rows.round(6).T)]


POLYTOPES = {
    "cube": polytope(lower=[-1, -1, -1], upper=[1, 2, 3]),
    "simplex": polytope(A_eq=[[1, 1, 1, 1]], b_eq=[1], lower=[0, 0, 0, 0], upper=[np.inf] * 4),
    "simplex with redundant bounds": polytope(A_eq=[[1, 1, 1, 1]], b_eq=[1], lower=[0, 0, 0, 0], upper=[1] * 4),
    "cross-polytope": polytope(
        [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], [1] * 8, lower=[-np.inf] * 3, upper=[np.inf] * 3
    ),
    "grid flow": ShortestPath(3, 3).polyhedron,
    "assignment": Assignment(3).polyhedron,
    "top": TopK(5, 2).polyhedron,
    "knapsack relaxation": polytope([[3, 4, 5, 6], [4, 2, 6, 3]], [10, 8], lower=[0] * 4, upper=[1] * 4),
    "equality as two inequalities": polytope(
        [[1, 1, 1, 1], [-1, -1, -1, -1]], [2, -2], lower=[0, 0, 0, 0], upper=[1, 1, 1, 1]
    ),
    "fixed variable": polytope(A_ub=[[1, 1, 1]], b_ub=[3.5], lower=[0, 2, 0], upper=[1, 2, 1]),
    "random": random_polytope(),
}


@pytest.mark.parametrize("name", POLYTOPES)
def test_neighbours_are_those_of_brute_force(name):
    polyhedron = POLYTOPES[name]
    vertices = all_vertices(polyhedron)
    adjacent = adjacent_by_rank(polyhedron, vertices)
    cones = NormalCones(polyhedron, tolerance=1e-7)

    assert len(vertices) > 3
    for vertex, others in zip(vertices, adjacent, strict=True):
        found = adjacent_vertices(cones, vertex, 100)
        np.testing.assert_allclose(sorted_rows(found), sorted_rows(vertices[others]), atol=1e-8)


def test_paths_are_adjacent_when_they_differ_by_one_cycle():
    # What adjacency means in a flow polytope: the two paths part at one node and meet again at another, only once.
    problem = ShortestPath(5, 5)
    rng = np.random.default_rng(0)
    paths = np.unique(problem.minimize(rng.uniform(size=(20_000, problem.n_costs))), axis=0)
    cones = NormalCones(problem.polyhedron, tolerance=1e-7)
    nodes = np.array([sorted(problem.heads[path > 0], key=lambda node: node // 5 + node % 5) for path in paths])
    assert nodes.shape == (70, 8)

    for path, visited in zip(paths[::6], nodes[::6], strict=True):
        together = np.pad(nodes == visited, ((0, 0), (1, 0)), constant_values=True)
        partings = np.count_nonzero(together[:, :-1] & ~together[:, 1:], axis=1)
        found = adjacent_vertices(cones, path, 1000)
        np.testing.assert_allclose(sorted_rows(found), sorted_rows(paths[partings == 1]), atol=1e-9)


def test_a_limit_keeps_true_neighbours_only():
    polyhedron = Assignment(4).polyhedron
    cones = NormalCones(polyhedron, tolerance=1e-7)
    vertex = np.eye(4).ravel()
    every = adjacent_vertices(cones, vertex, 1000)

    assert len(every) == 6 + 8 + 6  # the cycles of length 2, 3 and 4
    for limit in (9, 12, 15, 19):
        some = adjacent_vertices(cones, vertex, limit)
        assert 0 < len(some) <= limit
        distances = np.abs(some[:, None] - every[None]).max(axis=2)
        assert (distances.min(axis=1) < 1e-9).all()
        assert len(np.unique(distances.argmin(axis=1))) == len(some)


def test_an_edge_without_end_has_no_neighbour():
    quadrant = polytope([[0, 1]], [2], lower=[0, 0], upper=[np.inf, np.inf])
    np.testing.assert_allclose(adjacent_vertices(NormalCones(quadrant), np.zeros(2), 10), [[0, 2]], atol=1e-9)


def test_a_single_point_has_no_adjacent_vertices():
    point = polytope(lower=[1, 2], upper=[1, 2])
    assert adjacent_vertices(NormalCones(point), np.array([1.0, 2.0]), 10).shape == (0, 2)


def test_the_middle_of_an_edge_is_refused():
    with pytest.raises(ValueError, match="not a vertex of the polyhedron: 2 binding constraints leave it free"):
        adjacent_vertices(NormalCones(POLYTOPES["cube"]), np.array([0.0, 2.0, 3.0]), 10)


def test_rays_of_a_cone_over_a_polygon():
    angles = np.arange(64) * 2 * np.pi / 64
    normals = np.column_stack([np.cos(angles), np.sin(angles), -np.ones(64)]) / np.sqrt(2)

    rays = extreme_rays(normals, 100)

    rays /= rays[:, 2:]
    between = (angles + np.pi / 64)[:, None]
    expected = np.hstack([np.cos(between), np.sin(between)]) / np.cos(np.pi / 64)
    np.testing.assert_allclose(sorted_rows(rays[:, :2]), sorted_rows(expected), atol=1e-9)
