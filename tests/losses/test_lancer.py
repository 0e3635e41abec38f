import numpy as np
import pytest

from decidewise import DecisionRegressor, normalized_regret
from decidewise.data import make_shortest_path
from decidewise.losses import Lancer
from decidewise.losses.parts.small_network import SmallNetwork
from decidewise.problems import CountedProblem, TopK

PROBLEM = TopK(4, 1, sense="min")


@pytest.fixture(scope="module")
def costs():
    return np.random.default_rng(0).uniform(size=(200, 4))


def test_a_network_has_the_slope_of_its_values_and_fits():
    rng = np.random.default_rng(1)
    network = SmallNetwork.drawn(3, 8, rng)
    X = rng.normal(size=(500, 3))
    _, slope = network.value_and_slope(X)
    for column, shift in enumerate(1e-6 * np.eye(3)):
        ahead, behind = (network.value_and_slope(X + sign * shift)[0] for sign in (1, -1))
        np.testing.assert_allclose(slope[:, column], (ahead - behind) / 2e-6, atol=1e-6)
    truth = np.abs(X[:, 0]) + 0.5 * X[:, 1] ** 2
    fitted = network.fitted(X, truth, rng, n_steps=2000, learning_rate=1e-2)
    assert np.mean((fitted.value_and_slope(X)[0] - truth) ** 2) < 0.05 * truth.var()
    assert np.mean((network.value_and_slope(X)[0] - truth) ** 2) > 0.5 * truth.var()  # it is not changed itself


def test_it_learns_regrets(costs):
    loss, rng = Lancer(n_steps=2000), np.random.default_rng(2)
    target = loss.prepare(PROBLEM, costs)
    prediction = costs + costs.std(axis=0) * rng.normal(size=costs.shape) * rng.uniform(0, 1.5, size=(200, 1))
    learnt, _ = loss.value_and_grad(prediction, target, rng)
    regret = (costs * (PROBLEM.solve(prediction) - PROBLEM.solve(costs))).sum(axis=1)
    assert np.corrcoef(learnt, regret)[0, 1] > 0.2  # squares hide the signs of errors
    assert learnt.mean() == pytest.approx(regret.mean(), rel=0.5)


def test_refreshing_learns_where_the_predictions_are(costs):
    loss, problem = Lancer(n_samples=3, n_steps=300), CountedProblem(PROBLEM)
    target = loss.prepare(problem, costs)
    assert problem.n_solves == 200 * (1 + 3)
    prediction = 5 - 5 * costs  # far from what was drawn, and always wrong
    regret = (costs * (PROBLEM.solve(prediction) - PROBLEM.solve(costs))).sum(axis=1).mean()
    errors, rng = [], np.random.default_rng(3)
    for _ in range(3):
        errors.append(abs(loss.value_and_grad(prediction, target, rng)[0].mean() - regret))
        target = loss.refreshed(prediction, target, rng)
    assert errors[2] < errors[0]
    assert problem.n_solves == 200 * (1 + 3 + 3)
    assert len(target.seen) == len(target.regrets) == 600


def test_it_improves_on_a_bad_start():
    train, test = make_shortest_path(600, degree=6, seed=0).split(200)
    model = DecisionRegressor(train.problem, "lancer", init="zeros", epochs=30, random_state=0)
    model.fit(train.X, train.costs)
    nothing = np.ones_like(test.costs)
    trained = normalized_regret(test.problem, model.predict(test.X), test.costs)
    assert trained < 0.8 * normalized_regret(test.problem, nothing, test.costs)


@pytest.mark.parametrize("name", ["n_samples", "n_hidden", "n_steps", "refresh_every", "sigma"])
def test_bad_parameters(name):
    with pytest.raises(ValueError, match=name):
        Lancer(**{name: 0})


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match=r"from 4 regrets how 6 errors count.*Pass more rows, or raise n_samples"):
        Lancer(n_samples=2).prepare(TopK(6, 2), np.ones((2, 6)))
