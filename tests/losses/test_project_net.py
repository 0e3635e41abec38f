import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from decidewise import DecisionRegressor, normalized_regret
from decidewise.data import make_shortest_path
from decidewise.losses import ProjectNet, Qptl
from decidewise.losses.parts.split_region import SplitRegion
from decidewise.losses.project_net import _Dykstra
from decidewise.problems import Knapsack, LinearProgram, ShortestPath, TopK

PROBLEMS = [
    ShortestPath(3, 3),
    TopK(5, 2, sense="min"),
    LinearProgram([[1.0, 2.0, -1.0]], [2.0], [[1.0, 1.0, 1.0]], [1.0], lower=-1.0, upper=2.0),
]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_at_the_limit_it_decides_as_the_linear_program(problem):
    costs = np.random.default_rng(0).uniform(0.5, 2, size=(10, problem.n_costs))
    loss = ProjectNet(n_rounds=30, step=30.0, tol=1e-6, max_iter=5000, n_steps=0)
    values, _ = loss.value_and_grad(costs, loss.prepare(problem, costs), np.random.default_rng(0))
    np.testing.assert_allclose(values, 0, atol=1e-3)


def test_dykstra_finds_the_projection():
    problem = TopK(5, 2, sense="min")
    points = np.random.default_rng(0).normal(size=(20, 5))
    smooth = Qptl(lambd=1.0)
    exact = smooth.smoothed(-points, smooth.prepare(problem, points)).points
    found = _Dykstra.of(points, SplitRegion.of(problem.polyhedron), tol=1e-9, max_iter=5000)
    np.testing.assert_allclose(found.points, exact, atol=1e-6)
    assert len({len(rows) for rows, _ in found.rounds}) > 1  # each row ends by itself


@pytest.mark.parametrize("problem", [*PROBLEMS, Knapsack([[3.0, 4.0, 5.0]], [7.0])])
def test_the_gradient_in_the_matrix(problem):
    rng = np.random.default_rng(1)
    d = problem.n_costs
    prediction, costs = rng.normal(size=(2, 4, d))
    region, matrix = SplitRegion.of(problem.polyhedron), rng.normal(scale=0.2, size=(d, d))
    matrix = (matrix + matrix.T) / 2
    loss = ProjectNet()
    _, _, slope = loss._unrolled(prediction, costs, region, matrix)
    shift = rng.normal(size=(d, d))
    shift = 1e-6 * (shift + shift.T)
    ends = [(costs * loss._unrolled(prediction, costs, region, matrix + s * shift)[0]).sum() for s in (1, -1)]
    np.testing.assert_allclose((slope * shift).sum(), (ends[0] - ends[1]) / 2, rtol=1e-4, atol=1e-10)


def test_a_trained_matrix_decides_better_on_new_costs():
    problem, rng = ShortestPath(3, 3), np.random.default_rng(2)
    costs, new = rng.uniform(0.5, 2, size=(2, 200, 12))
    found = {}
    for n_steps in (0, 200):
        loss = ProjectNet(n_steps=n_steps)
        target = loss.prepare(problem, costs, rng=np.random.default_rng(3))
        points, _, _ = loss._unrolled(new, new, target.region, target.matrix)
        found[n_steps] = (new * points).sum(axis=1).mean()
        np.testing.assert_array_equal(target.matrix, target.matrix.T)
    assert found[200] < found[0]


def test_a_cap_on_the_rounds_of_a_projection():
    region = SplitRegion.of(TopK(5, 2).polyhedron)
    points = np.random.default_rng(0).normal(size=(3, 5))
    assert len(_Dykstra.of(points, region, tol=1e-15, max_iter=7).rounds) == 7


def test_it_improves_on_its_start():
    train, test = make_shortest_path(500, degree=6, seed=0).split(200)
    loss = ProjectNet(n_steps=10)
    model = DecisionRegressor(train.problem, loss, init="mse", epochs=5, random_state=0).fit(train.X, train.costs)
    start = LinearRegression().fit(train.X, train.costs)
    regrets = [normalized_regret(test.problem, m.predict(test.X), test.costs) for m in (model, start)]
    assert regrets[0] < regrets[1]


@pytest.mark.parametrize(
    ("name", "bad"), [("n_rounds", 0), ("step", 0), ("xi", -1), ("tol", 0), ("max_iter", 0), ("n_steps", -1)]
)
def test_bad_parameters(name, bad):
    with pytest.raises(ValueError, match=name):
        ProjectNet(**{name: bad})
