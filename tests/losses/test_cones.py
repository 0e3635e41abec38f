"""Binding constraints by hand; projections against SciPy's non-negative least squares and Moreau's theorem."""

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.sparse import csr_array

from decidewise import SolverError
from decidewise.losses.parts.cones import NormalCones, project_on_cones
from decidewise.problems import Assignment, ShortestPath, TopK
from decidewise.solvers import Polyhedron

PROBLEMS = [ShortestPath(4, 4), Assignment(4), TopK(7, 3, sense="min")]


def spanned_by(cones, binding):
    """Return the normals of one cone, each equality with both signs."""
    normals = cones.normals.toarray()
    two_sided = binding == 2
    one_sided = np.abs(binding) == 1
    return np.vstack([normals[two_sided], -normals[two_sided], (binding[:, None] * normals)[one_sided]])


def some_points(problem, n=30):
    rng = np.random.default_rng(0)
    costs = rng.uniform(0.5, 2.0, size=(n, problem.n_costs))
    return -costs - rng.normal(scale=0.8, size=costs.shape), problem.minimize(costs)


def test_binding_constraints_by_hand():
    # w_1 + w_2 = 1, w_1 - w_3 <= 0, 0·w <= 0, w in [0, 1] x [0, 2] x [-1, 5], w_4 = 3 by its bounds
    polyhedron = Polyhedron(
        A_ub=csr_array([[1.0, 0.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]),
        b_ub=np.zeros(2),
        A_eq=csr_array([[1.0, 1.0, 0.0, 0.0]]),
        b_eq=np.ones(1),
        lower=np.array([0.0, 0.0, -1.0, 3.0]),
        upper=np.array([1.0, 2.0, 5.0, 3.0]),
    )
    decisions = np.array(
        [[1.0, 0.0, 1.0, 3.0], [1e-6, 1.0, 5.0, 3.0], [0.5, 0.5, 1.0, 3.0], [0.5, 0.5, 0.5 + 2e-5, 3.0]]
    )

    np.testing.assert_array_equal(
        NormalCones(polyhedron).binding(decisions),
        [[2, 1, 0, 1, -1, 0, 2], [2, 0, 0, -1, 0, 1, 2], [2, 0, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 0, 2]],
    )


def test_an_unbounded_variable_has_no_normal():
    free = Polyhedron(
        csr_array((0, 1)), np.zeros(0), csr_array((0, 1)), np.zeros(0), np.array([-np.inf]), np.array([np.inf])
    )
    assert NormalCones(free).binding(np.array([[1e30], [-1e30]])).tolist() == [[0], [0]]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_projection_equals_nonnegative_least_squares(problem):
    points, decisions = some_points(problem)
    cones = NormalCones(problem.polyhedron)
    binding = cones.binding(decisions)

    found = cones.project(points, binding)

    for point, how, projection in zip(points, binding, found, strict=True):
        normals = spanned_by(cones, how)
        np.testing.assert_allclose(projection, nnls(normals.T, point)[0] @ normals, atol=1e-10)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_projection_and_its_remainder_are_polar(problem):
    points, decisions = some_points(problem)
    cones = NormalCones(problem.polyhedron)
    binding = cones.binding(decisions)

    projections = cones.project(points, binding)
    remainders = points - projections

    np.testing.assert_allclose(np.sum(projections * remainders, axis=1), 0, atol=1e-10)
    for how, remainder in zip(binding, remainders, strict=True):
        assert (spanned_by(cones, how) @ remainder).max() < 1e-10
    np.testing.assert_allclose(cones.project(projections, binding), projections, atol=1e-10)


def test_projection_on_the_apex_is_exactly_zero():
    problem = TopK(5, 2)
    cones = NormalCones(problem.polyhedron)
    inward = np.array([[-2.0, -1.0, 1.0, 1.0, 1.0]])  # sums to zero and leads from w into the polyhedron

    np.testing.assert_array_equal(cones.project(inward, cones.binding(np.array([[1.0, 1, 0, 0, 0]]))), np.zeros((1, 5)))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_a_few_interior_steps_end_inside_the_cone(problem):
    points, decisions = some_points(problem)
    cones = NormalCones(problem.polyhedron)
    binding = cones.binding(decisions)

    exact, found = cones.project(points, binding), cones.approach(points, binding, 3)

    outside = np.linalg.norm(points - exact, axis=1) > 0.1
    assert outside.any()
    lengths = np.linalg.norm(found, axis=1)
    # In the cone and, unlike the projection, strictly: some way towards the remainder is still inside.
    remainders = (points - exact)[outside]
    further = (found + 1e-3 * (points - exact))[outside]
    np.testing.assert_allclose(cones.project(found, binding), found, atol=1e-6 * lengths.max())
    np.testing.assert_allclose(cones.project(further, binding[outside]), further, atol=1e-6 * lengths.max())
    assert np.linalg.norm(remainders, axis=1).min() > 0.1


def test_mean_of_the_unit_normals():
    polyhedron = Polyhedron(
        A_ub=csr_array([[3.0, 4.0]]),
        b_ub=np.array([3.0]),
        A_eq=csr_array([[0.0, 2.0]]),
        b_eq=np.zeros(1),
        lower=np.zeros(2),
        upper=np.ones(2),
    )
    cones = NormalCones(polyhedron)
    binding = cones.binding(np.array([[1.0, 0.0]]))

    # ±(0, 1), (0.6, 0.8), (1, 0), (0, -1): five unit vectors
    np.testing.assert_allclose(cones.mean_unit_normal(binding), [[1.6 / 5, -0.2 / 5]])


@pytest.mark.parametrize(("r", "m"), [(1, 1), (3, 2), (3, 12), (8, 8), (8, 40), (20, 60)])
def test_random_and_degenerate_cones(r, m):
    rng = np.random.default_rng(0)
    generators = rng.normal(size=(m, r))
    generators[rng.random(m) < 0.3] = generators[0]  # the same one several times
    generators[rng.random(m) < 0.1] = 0
    generators[1 : m // 3] = rng.integers(-1, 2, size=(max(m // 3 - 1, 0), r))  # and small integers, which often depend
    lengths = np.linalg.norm(generators, axis=1, keepdims=True)
    generators /= np.where(lengths > 0, lengths, 1)
    binding = rng.choice([-1, 0, 1], size=(60, m)).astype(np.int8)
    points = rng.normal(size=(60, r)) * 10.0 ** rng.integers(-6, 6, size=(60, 1))

    found = project_on_cones(points, binding, generators)

    for point, how, projection in zip(points, binding, found, strict=True):
        span = how[:, None] * generators
        expected = nnls(span.T, point)[0] @ span
        np.testing.assert_allclose(projection, expected, atol=1e-9 * np.linalg.norm(point), rtol=0)


def test_nearly_parallel_generators():
    angles = np.array([0.0, 1e-4, 1e-6, 1e-9])
    generators = np.column_stack([np.cos(angles), np.sin(angles)])
    points = np.array([[1.0, 1.0], [1.0, 5e-5], [-1.0, 1.0], [1.0, -1.0]])

    found = project_on_cones(points, np.ones((4, 4), dtype=np.int8), generators)

    edge = generators[1]
    np.testing.assert_allclose(found, [(edge @ points[0]) * edge, points[1], [0, 0], [1.0, 0.0]], atol=1e-8)


def test_what_is_not_chosen_plays_no_part():
    binding = np.array([[0, 1, 2]], dtype=np.int8)
    found = project_on_cones(np.ones((1, 3)), binding, np.eye(3))
    np.testing.assert_array_equal(found, [[0.0, 1.0, 0.0]])


def test_a_projection_that_fails_names_its_row(monkeypatch):
    answers = iter([1, -1])
    monkeypatch.setattr("daqp.solve", lambda *given, **settings: (given[1], 0.0, next(answers), {}))
    with pytest.raises(SolverError, match="row 1: DAQP found no projection on the normal cone") as caught:
        project_on_cones(np.ones((2, 3)), np.ones((2, 3), dtype=np.int8), np.eye(3))
    assert caught.value.row == 1
