import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from decidewise import DecisionRegressor, normalized_regret
from decidewise.data import make_shortest_path
from decidewise.losses import Dys, Qptl
from decidewise.losses.parts.split_region import SplitRegion
from decidewise.problems import Knapsack, LinearProgram, ShortestPath, TopK


@pytest.mark.parametrize(
    "problem",
    [
        ShortestPath(3, 3),
        TopK(5, 2, sense="min"),
        Knapsack([[3.0, 4.0, 5.0], [4.0, 2.0, 6.0]], [7.0, 8.0], sense="min"),
        LinearProgram([[1.0, 2.0, -1.0]], [2.0], [[1.0, 1.0, 1.0]], [1.0], lower=-1.0, upper=2.0),
    ],
)
def test_at_the_limit_it_is_the_projection(problem):
    prediction = np.random.default_rng(0).normal(size=(10, problem.n_costs))
    loss = Dys(step=0.5, gamma=1.0, tol=1e-12, max_iter=20_000)
    region = SplitRegion.of(problem.polyhedron)
    points = np.clip(loss._split(prediction, region), region.lower, region.upper)[:, : problem.n_costs]
    smooth = Qptl(lambd=1.0)
    exact = smooth.smoothed(prediction, smooth.prepare(problem, prediction)).points
    np.testing.assert_allclose(points, exact, atol=1e-6)


def test_the_gradient_is_that_of_the_last_step():
    problem, rng = TopK(5, 2, sense="min"), np.random.default_rng(1)
    prediction, costs = rng.normal(size=(2, 6, 5))
    loss = Dys()
    target = loss.prepare(problem, costs)
    values, gradient = loss.value_and_grad(prediction, target, rng)
    region = target.region
    ends = loss._split(prediction, region)

    def after_one_step(moved):
        x = np.clip(ends, region.lower, region.upper)
        y = region.origin + region.along(2 * x - ends - loss.step * (moved + loss.gamma * x))
        # What the last step does, with the point where it ends known: only its dependence on the costs counts.
        end = ends + (y - (region.origin + region.along(2 * x - ends - loss.step * (prediction + loss.gamma * x))))
        distance = np.clip(end, region.lower, region.upper) - target.decisions
        return (distance**2).sum(axis=1)

    np.testing.assert_allclose(values, after_one_step(prediction))
    step = 1e-6
    for column in range(5):
        shift = step * np.eye(5)[column]
        slope = (after_one_step(prediction + shift) - after_one_step(prediction - shift)) / (2 * step)
        np.testing.assert_allclose(gradient[:, column], slope, atol=1e-6)


def test_it_improves_on_its_start():
    train, test = make_shortest_path(600, degree=6, seed=0).split(200)
    model = DecisionRegressor(train.problem, "dys", init="mse", epochs=20, random_state=0).fit(train.X, train.costs)
    start = LinearRegression().fit(train.X, train.costs)
    regrets = [normalized_regret(test.problem, m.predict(test.X), test.costs) for m in (model, start)]
    assert regrets[0] < regrets[1]


@pytest.mark.parametrize("name", ["step", "gamma", "tol", "max_iter"])
def test_bad_parameters(name):
    with pytest.raises(ValueError, match=name):
        Dys(**{name: 0})
