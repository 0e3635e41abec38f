"""CaVE against its formula, brute force over decisions, and what its authors promise."""

import numpy as np
import pytest
from scipy.optimize import nnls

from decidewise.data import make_travelling_salesman
from decidewise.losses import Cave, CaveHybrid, CavePlus
from decidewise.losses.parts.cones import NormalCones
from decidewise.problems import Assignment, Ball, Knapsack, ShortestPath, TopK, TravellingSalesman

PROBLEMS = [
    ShortestPath(4, 4),
    Assignment(3),
    TopK(6, 2),
    Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0], [4.0, 2.0, 6.0, 3.0, 5.0]], [12.0, 10.0]),
]
on_every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)


def draw(problem, n=25, noise=0.8):
    rng = np.random.default_rng(0)
    costs = rng.uniform(0.5, 2.0, size=(n, problem.n_costs))
    return costs + rng.normal(scale=noise, size=costs.shape), costs


def cosine_distance(a, b):
    return 1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@on_every_problem
def test_value_is_the_distance_to_the_normal_cone_of_brute_force(problem):
    prediction, costs = draw(problem)
    sign = 1.0 if problem.sense == "max" else -1.0
    polyhedron = problem.polyhedron
    d = problem.n_costs
    # All inequalities in <= form, written out anew.
    rows = np.vstack(
        [polyhedron.A_eq.toarray(), -polyhedron.A_eq.toarray(), polyhedron.A_ub.toarray(), np.eye(d), -np.eye(d)]
    )
    sides = np.concatenate([polyhedron.b_eq, -polyhedron.b_eq, polyhedron.b_ub, polyhedron.upper, -polyhedron.lower])

    values, _ = Cave().value_and_grad(prediction, Cave(relaxed=False).prepare(problem, costs), None)

    for value, point, decision in zip(values, sign * prediction, problem.solve(costs), strict=True):
        normals = rows[sides - rows @ decision < 1e-9]
        projection = nnls(normals.T, point)[0] @ normals
        expected = cosine_distance(point, projection) if projection.any() else 1.0
        assert value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("problem", PROBLEMS[:3], ids=lambda problem: type(problem).__name__)
def test_value_is_zero_exactly_where_the_decision_is_optimal_for_the_prediction(problem):
    prediction, costs = draw(problem, n=300, noise=0.3)
    target = Cave().prepare(problem, costs)

    values, gradient = Cave().value_and_grad(prediction, target, None)

    sign = 1.0 if problem.sense == "min" else -1.0
    regret = sign * np.sum(prediction * (problem.solve(costs) - problem.solve(prediction)), axis=1)
    right = regret < 1e-9
    assert 10 < right.sum() < 290
    np.testing.assert_allclose(values[right], 0, atol=1e-12)
    np.testing.assert_allclose(gradient[right], 0, atol=1e-7)
    assert values[~right].min() > 1e-9


@pytest.mark.parametrize("loss", [Cave(), CavePlus(), CaveHybrid()])
def test_length_of_the_prediction_is_never_pushed(loss):
    problem = ShortestPath(4, 4)
    prediction, costs = draw(problem)
    _, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))
    np.testing.assert_allclose(np.sum(gradient * prediction, axis=1), 0, atol=1e-12)


@on_every_problem
def test_the_exact_value_does_not_depend_on_scale(problem):
    prediction, costs = draw(problem)
    target = Cave().prepare(problem, costs)
    values, gradient = Cave().value_and_grad(prediction, target, None)
    for scale in (1e-8, 1e8):
        scaled_values, scaled_gradient = Cave().value_and_grad(scale * prediction, target, None)
        np.testing.assert_allclose(scaled_values, values, atol=1e-10)
        np.testing.assert_allclose(scaled_gradient * scale, gradient, atol=1e-7)


@pytest.mark.parametrize("loss", [Cave(), CavePlus(), CaveHybrid()])
def test_zero_prediction_gives_one_and_no_direction(loss):
    problem = TopK(4, 2)
    target = loss.prepare(problem, np.ones((3, 4)))
    values, gradient = loss.value_and_grad(np.zeros((3, 4)), target, np.random.default_rng(0))
    np.testing.assert_array_equal(values, np.ones(3))
    np.testing.assert_array_equal(gradient, np.zeros((3, 4)))


def test_descent_reaches_the_inside_of_the_cone():
    problem, loss = ShortestPath(4, 4), CavePlus()
    prediction, costs = draw(problem)
    target = loss.prepare(problem, costs)
    before = (problem.solve(prediction) != target.decisions).any(axis=1)

    for _ in range(200):
        prediction = prediction - 0.5 * loss.value_and_grad(prediction, target, None)[1]

    assert before.mean() > 0.5
    np.testing.assert_array_equal(problem.solve(prediction), target.decisions)


def test_plus_aims_further_inside_than_the_projection():
    problem = ShortestPath(4, 4)
    prediction, costs = draw(problem)
    plus, exact = CavePlus(), Cave()
    aims = plus.aim(-prediction, target := plus.prepare(problem, costs), None)

    # Every decision but the optimal one costs strictly more under the aim; under the projection some tie.
    others = np.unique(problem.solve(np.random.default_rng(0).uniform(size=(5000, problem.n_costs))), axis=0)
    different = (others[None] != target.decisions[:, None]).any(axis=2)
    for aim, ties in ((aims, False), (exact.aim(-prediction, target, None), True)):
        lead = np.where(different, np.einsum("nd,nvd->nv", -aim, others[None] - target.decisions[:, None]), np.inf)
        assert (lead.min(axis=1) < 1e-9).any() == ties
        assert lead.min() > -1e-9


def test_hybrid_is_plus_or_the_mixture_row_by_row():
    problem = ShortestPath(4, 4)
    prediction, costs = draw(problem, n=400)
    target = CaveHybrid().prepare(problem, costs)
    binding = target.decisions  # ones at the upper bound, zeros at the lower

    values, _ = CaveHybrid().value_and_grad(prediction, target, np.random.default_rng(0))
    plus, _ = CavePlus().value_and_grad(prediction, target, None)
    # Unit normals: both signs of 16 flow constraints, which cancel, and one bound for each of 24 edges.
    mean = (2 * binding - 1) / (2 * 16 + 24)
    mixed = 0.8 * -prediction / np.linalg.norm(prediction, axis=1, keepdims=True) + 0.2 * mean
    heuristic = np.array([cosine_distance(-p, q) for p, q in zip(prediction, mixed, strict=True)])

    as_plus = np.isclose(values, plus, rtol=1e-9)
    np.testing.assert_allclose(values[~as_plus], heuristic[~as_plus], rtol=1e-9)
    assert as_plus.mean() == pytest.approx(0.3, abs=0.1)
    always, _ = CaveHybrid(solve_ratio=1.0).value_and_grad(prediction, target, np.random.default_rng(0))
    np.testing.assert_array_equal(always, plus)


@pytest.mark.parametrize("relaxed", ["auto", True])
def test_the_true_costs_lie_in_the_relaxed_cones_of_a_problem_in_integers(relaxed):
    problem = PROBLEMS[-1]
    _, costs = draw(problem)

    relaxed, _ = Cave().value_and_grad(costs, Cave(relaxed=relaxed).prepare(problem, costs), None)
    integer, _ = Cave().value_and_grad(costs, Cave(relaxed=False).prepare(problem, costs), None)

    np.testing.assert_allclose(relaxed, 0, atol=1e-12)
    assert integer.max() > 0.01


def test_relaxing_changes_nothing_where_vertices_are_integer():
    problem = ShortestPath(4, 4)
    _, costs = draw(problem)
    targets = [Cave(relaxed=relaxed).prepare(problem, costs) for relaxed in (False, True)]
    np.testing.assert_array_equal(targets[0].binding, targets[1].binding)


def test_cones_are_prepared_without_a_second_solve(monkeypatch):
    problem = TopK(6, 2)
    _, costs = draw(problem)
    solved, minimize = [], problem.minimize
    monkeypatch.setattr(problem, "minimize", lambda rows: solved.append(len(rows)) or minimize(rows))
    CavePlus().prepare(problem, costs)
    assert solved == [25]


@pytest.mark.parametrize("loss", [Cave(), CavePlus(), CaveHybrid()])
def test_a_ball_has_no_cones(loss):
    with pytest.raises(ValueError, match=r"needs linear constraints, and Ball has no polyhedron\. Choose a loss"):
        loss.prepare(Ball(3), np.ones((2, 3)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CavePlus(max_iter=0), "max_iter must be at least 1; got max_iter=0"),
        (lambda: CaveHybrid(max_iter=2.5), "max_iter must be .*integer; got 2.5"),
        (
            lambda: CaveHybrid(solve_ratio=1.5),
            "solve_ratio must be a number at least 0 and at most 1; got solve_ratio=1.5",
        ),
        (
            lambda: CaveHybrid(inner_ratio=-0.1),
            "inner_ratio must be a number at least 0 and at most 1; got inner_ratio=-0.1",
        ),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_rows_against_subtours_bring_the_costs_into_the_cone_of_their_tour():
    data = make_travelling_salesman(60, n_nodes=20, degree=4, seed=0)
    target = Cave(relaxed=False).prepare(data.problem, data.costs)
    plain = NormalCones(data.problem.polyhedron)
    points = -data.costs

    def outside(cones, binding):
        return np.linalg.norm(cones.project(points, binding) - points, axis=1) > 1e-7 * np.linalg.norm(points, axis=1)

    # What is left is the gap of the relaxation itself, whatever the number of its rows.
    assert outside(target.cones, target.binding).mean() < 0.3
    assert outside(plain, plain.binding(target.decisions)).mean() > 0.6
    values, _ = Cave().value_and_grad(data.costs, target, None)
    np.testing.assert_array_equal(values > 1e-12, outside(target.cones, target.binding))


def test_longest_tour_has_the_cone_of_the_shortest_of_the_negative_costs():
    shortest, longest = TravellingSalesman(8), TravellingSalesman(8, sense="max")
    prediction, costs = draw(shortest)
    values, gradient = Cave().value_and_grad(prediction, Cave().prepare(shortest, costs), None)
    mirrored, opposite = Cave().value_and_grad(-prediction, Cave().prepare(longest, -costs), None)
    np.testing.assert_array_equal(mirrored, values)
    np.testing.assert_array_equal(opposite, -gradient)
