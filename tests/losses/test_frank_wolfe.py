"""The projection against Clarabel, which finds the convex weights of all vertices at once."""

import clarabel
import numpy as np
import pytest
from scipy.sparse import csc_matrix, eye, vstack

from decidewise.kit.errors import SolverError
from decidewise.losses.parts.smoothed import project_on_hull
from decidewise.problems import Assignment, Ball, CountedProblem, Ellipsoid, Knapsack, ShortestPath, TopK

STRICT = {"max_iter": 1000, "tol": 1e-12}
POLYTOPES = [ShortestPath(3, 4), TopK(6, 2), Assignment(3), Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0]], [12.0])]
on_every_polytope = pytest.mark.parametrize("problem", POLYTOPES, ids=lambda problem: type(problem).__name__)


def by_row(problem):
    """Return the solver of a problem that is the same for every row."""
    return lambda costs, rows: problem.minimize(costs)


def vertices_of(problem):
    """Return every vertex, as the answers to many random costs."""
    return np.unique(problem.minimize(np.random.default_rng(0).normal(size=(5000, problem.n_costs))), axis=0)


def nearest_by_clarabel(vertices, target):
    """Return the nearest point of the hull of the vertices."""
    m = len(vertices)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    quadratic = csc_matrix(np.triu(vertices @ vertices.T))
    rows = vstack([csc_matrix(np.ones((1, m))), -eye(m)]).tocsc()
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m)]
    right = np.r_[1.0, np.zeros(m)]
    solution = clarabel.DefaultSolver(quadratic, -vertices @ target, rows, right, cones, settings).solve()
    return np.array(solution.x) @ vertices


def largest_gap(problem, targets, points):
    residual = points - targets
    return ((residual * (points - problem.minimize(residual))).sum(axis=1)).max()


@on_every_polytope
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_it_is_the_nearest_point_of_the_hull(problem, scale):
    targets = scale * np.random.default_rng(1).normal(size=(20, problem.n_costs))

    points = project_on_hull(by_row(problem), targets, **STRICT).points

    vertices = vertices_of(problem)
    np.testing.assert_allclose(points, [nearest_by_clarabel(vertices, target) for target in targets], atol=1e-5)
    assert largest_gap(problem, targets, points) < 1e-11


@on_every_polytope
def test_points_are_convex_combinations_of_few_vertices(problem):
    targets = np.random.default_rng(2).normal(size=(50, problem.n_costs))

    found = project_on_hull(by_row(problem), targets, **STRICT)

    origin = problem.minimize(-targets)
    np.testing.assert_allclose(origin + np.einsum("ik,ikd->id", found.weights, found.atoms), found.points, atol=1e-12)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)
    assert np.all(found.weights >= 0)
    assert np.all((found.weights > 0).sum(axis=1) <= problem.n_costs + 1)
    vertices = {vertex.tobytes() for vertex in vertices_of(problem)}
    used = (found.atoms + origin[:, None])[found.weights > 0] + 0.0
    assert all(vertex.tobytes() in vertices for vertex in used)


def test_faces_of_many_atoms():
    """Atoms come and go, and more places are made for them."""
    problem, rng = ShortestPath(9, 9), np.random.default_rng(6)
    targets, vectors = rng.uniform(-1, 0, size=(2, 12, problem.n_costs))

    found = project_on_hull(by_row(problem), targets, **STRICT)

    assert largest_gap(problem, targets, found.points) < 1e-11
    assert found.counts.min() > 20
    np.testing.assert_array_equal((found.weights > 0).sum(axis=1), found.counts)
    along = found.along_face(vectors)
    for row, count in enumerate(found.counts):
        differences = found.atoms[row, 1:count] - found.atoms[row, 0]
        expected = np.linalg.lstsq(differences.T, vectors[row])[0] @ differences
        np.testing.assert_allclose(along[row], expected, atol=1e-10)


@on_every_polytope
def test_along_face_moves_as_the_point_moves(problem):
    rng = np.random.default_rng(3)
    targets, vectors = rng.normal(size=(2, 50, problem.n_costs))
    step = 1e-6

    along = project_on_hull(by_row(problem), targets, **STRICT).along_face(vectors)

    ahead, behind = (project_on_hull(by_row(problem), targets + h * vectors, **STRICT).points for h in (step, -step))
    np.testing.assert_allclose(along, (ahead - behind) / (2 * step), atol=1e-7)
    assert np.abs(along).max() > 0.1


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 0.3, 1.0, 30.0, 1e6, 1e12])
def test_ball(scale):
    targets = scale * np.random.default_rng(4).normal(size=(50, 5))

    points = project_on_hull(by_row(Ball(5, 2.0)), targets, **STRICT).points

    norms = np.linalg.norm(targets, axis=1, keepdims=True)
    np.testing.assert_allclose(points, targets * np.minimum(1, 2.0 / norms), atol=1e-12)


@pytest.mark.parametrize("problem", [*POLYTOPES, Ellipsoid(np.diag([1.0, 2.0, 9.0]))], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("tied", [False, True])
def test_any_scale_converges(problem, scale, tied):
    targets = np.random.default_rng(5).normal(size=(30, problem.n_costs))
    targets = scale * (targets.round() if tied else targets)

    points = project_on_hull(by_row(problem), targets, **STRICT).points

    assert largest_gap(problem, targets, points) < max(1e-11, 1e-12 * scale)


def test_only_open_rows_are_solved():
    problem = CountedProblem(TopK(6, 2, sense="min"))
    targets = np.zeros((100, 6))
    targets[1:, :2] = 1e3  # a vertex is nearest, which the second solve confirms

    project_on_hull(by_row(problem), targets, **STRICT)

    assert problem.n_solves < 200 + 20


def test_too_few_steps_are_an_error():
    targets = np.zeros((3, 12))
    targets[:2, :] = -1e3 * np.arange(12)

    with pytest.raises(SolverError, match="row 2: Frank–Wolfe did not converge in 2 steps"):
        project_on_hull(by_row(ShortestPath(3, 3)), targets, max_iter=2, tol=1e-12)
