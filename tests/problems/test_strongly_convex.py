"""The ball and the ellipsoid: closed forms, and the constants of strongly convex level sets."""

import clarabel
import numpy as np
import pytest
from scipy.sparse import csc_matrix

from decidewise.problems import Ball, Ellipsoid


def positive_definite(seed, dimension):
    root = np.random.default_rng(seed).normal(size=(dimension, dimension))
    return root @ root.T + 0.1 * np.eye(dimension)


@pytest.fixture
def ellipsoid():
    return Ellipsoid(positive_definite(0, 4), radius=1.5)


@pytest.fixture
def costs():
    return np.random.default_rng(1).normal(size=(30, 4))


def test_ball_walks_straight_downhill(costs):
    decisions = Ball(4, 2.5).solve(costs)
    np.testing.assert_allclose(decisions, [-2.5 * c / np.sqrt(c @ c) for c in costs], rtol=1e-14)


def test_ball_is_the_ellipsoid_of_the_identity(costs):
    ball, ellipsoid = Ball(4, 2.5), Ellipsoid(np.eye(4), 2.5)
    np.testing.assert_allclose(ball.solve(costs), ellipsoid.solve(costs), rtol=1e-14)
    for constant in ("mu", "L", "r", "g_min", "B_S", "n_costs"):
        assert getattr(ball, constant) == getattr(ellipsoid, constant)


def test_ellipsoid_meets_the_optimality_conditions(ellipsoid, costs):
    """At the minimiser the constraint is active and its gradient points against the costs."""
    for cost, decision in zip(costs, ellipsoid.solve(costs), strict=True):
        gradient = 2 * ellipsoid.matrix @ decision
        assert decision @ ellipsoid.matrix @ decision == pytest.approx(ellipsoid.r, rel=1e-12)
        np.testing.assert_allclose(gradient / np.linalg.norm(gradient), -cost / np.linalg.norm(cost), atol=1e-12)


def test_ellipsoid_equals_clarabel(ellipsoid, costs):
    """As a cone program: the radius and the rows of a Cholesky factor times `w` form a second-order cone."""
    root = np.linalg.cholesky(ellipsoid.matrix).T
    constraints = csc_matrix(np.vstack([np.zeros(4), -root]))
    bounds = np.array([ellipsoid.radius, 0, 0, 0, 0])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for cost, decision in zip(costs, ellipsoid.solve(costs), strict=True):
        cone = [clarabel.SecondOrderConeT(5)]
        answer = clarabel.DefaultSolver(csc_matrix((4, 4)), cost, constraints, bounds, cone, settings).solve()
        assert cost @ decision == pytest.approx(answer.obj_val, rel=1e-7)


@pytest.mark.parametrize("problem", [Ball(3, 2.0), Ellipsoid(positive_definite(2, 3), 2.0)], ids=["ball", "ellipsoid"])
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e307])
def test_huge_and_tiny_costs_neither_overflow_nor_vanish(problem, scale):
    costs = np.random.default_rng(3).integers(-5, 6, size=(50, 3)).astype(float)
    np.testing.assert_allclose(problem.solve(scale * costs), problem.solve(costs), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("make", [lambda sense: Ball(2, sense=sense), lambda sense: Ellipsoid(np.eye(2), sense=sense)])
def test_zero_costs_give_the_centre_and_only_in_their_row(make, sense):
    decisions = make(sense).solve([[0.0, 0.0], [0.0, 1.0]])
    assert decisions[0].tolist() == [0.0, 0.0]
    assert not np.signbit(decisions[0]).any()
    assert np.linalg.norm(decisions[1]) == 1.0


def test_constants_bound_the_curvature_and_the_size(ellipsoid):
    """`mu‖h‖² <= hᵀ(∇²g)h <= L‖h‖²` and `‖w‖ <= B_S`, both attained."""
    hessian = 2 * ellipsoid.matrix
    eigenvalues, axes = np.linalg.eigh(hessian)
    assert (ellipsoid.mu, ellipsoid.L) == pytest.approx((eigenvalues[0], eigenvalues[-1]), rel=1e-12)
    assert (ellipsoid.r, ellipsoid.g_min) == (1.5**2, 0.0)
    longest = np.linalg.norm(ellipsoid.solve(axes[:, 0]))
    assert longest == pytest.approx(ellipsoid.B_S, rel=1e-12)


def test_constants_bound_how_far_decisions_move(ellipsoid):
    """The two inequalities that carry the faster rate: decisions move, and regret grows, no more than this."""
    rng = np.random.default_rng(4)
    first, second = rng.normal(size=(2, 500, 4))
    second = first + rng.choice([1e-3, 0.1, 10.0], size=(500, 1)) * second
    w1, w2 = ellipsoid.solve(first), ellipsoid.solve(second)
    depth = ellipsoid.r - ellipsoid.g_min

    regret = np.sum(first * (w2 - w1), axis=1)
    norm, moved = np.linalg.norm(first, axis=1), np.linalg.norm(w1 - w2, axis=1)
    assert np.all(regret <= ellipsoid.L / (2 * np.sqrt(2 * ellipsoid.mu * depth)) * norm * moved**2 + 1e-12)

    turned = np.linalg.norm(first / norm[:, None] - second / np.linalg.norm(second, axis=1, keepdims=True), axis=1)
    assert np.all(moved <= np.sqrt(2 * ellipsoid.L * depth) / ellipsoid.mu * turned + 1e-12)


def test_ellipsoid_keeps_its_own_copy_of_the_matrix():
    matrix = np.diag([1.0, 4.0])
    problem = Ellipsoid(matrix)
    matrix[:] = 0.0
    np.testing.assert_array_equal(problem.matrix, np.diag([1.0, 4.0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "dimension must be at least 1"),
        ((2.0,), "dimension must be .* integer"),
        ((True,), "dimension must be .* integer"),
        ((2, 0.0), "radius must be a number above 0 and at most 1e\\+150; got radius=0.0"),
        ((2, -1), "radius must be a number above 0"),
        ((2, np.inf), "radius must be a number above 0"),
        ((2, np.nan), "radius must be a number above 0"),
        ((2, "1"), "radius must be a number above 0"),
    ],
)
def test_bad_ball(arguments, message):
    with pytest.raises(ValueError, match=message):
        Ball(*arguments)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"matrix must be square, .* a shape of \(2, 3\)"),
        ([1.0, 2.0], "two-dimensional"),
        ([[1.0, 0.5], [0.0, 1.0]], r"symmetric; entry \(0, 1\) is 0.5 and entry \(1, 0\) 0"),
        ([[1.0, 1.0], [1.0, 1.0]], "positive definite"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive definite; its smallest eigenvalue is -1"),
        (-np.eye(2), "positive definite"),
        (np.zeros((2, 2)), "positive definite"),
        ([[1.0, np.nan], [np.nan, 1.0]], "matrix must be finite; row 0, column 1"),
    ],
)
def test_bad_ellipsoid(matrix, message):
    with pytest.raises(ValueError, match=message):
        Ellipsoid(matrix)


def test_bad_radius_of_an_ellipsoid():
    with pytest.raises(ValueError, match="radius must be a number above 0"):
        Ellipsoid(np.eye(2), 0)
