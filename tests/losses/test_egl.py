import numpy as np
import pytest

from decidewise import DecisionRegressor
from decidewise.losses import Egl, Lodl
from decidewise.losses.egl import half_trained
from decidewise.losses.parts.small_network import SmallNetwork
from decidewise.problems import CountedProblem, TopK


def test_planted_weights_that_depend_on_the_features_are_recovered():
    rng = np.random.default_rng(0)
    X, errors = rng.normal(size=(4000, 2)), rng.normal(size=(4000, 3))
    planted = np.stack([np.exp(0.5 * X[:, 0]), 1 + X[:, 1] ** 2 / 2, np.full(len(X), 0.5)], axis=1)
    network = SmallNetwork.drawn(2, 32, rng, n_outputs=3).fitted(
        X, (planted * errors**2).sum(axis=1), rng, n_steps=3000, factors=errors**2, learning_rate=1e-2
    )
    inside = np.abs(X).max(axis=1) < 1.5
    apart = np.abs(network.outputs(X) - planted)[inside]
    assert apart.mean() < 0.1 * planted[inside].mean()


def test_the_gradient_of_a_network_with_several_outputs():
    rng = np.random.default_rng(0)
    network, X = SmallNetwork.drawn(3, 5, rng, n_outputs=4), rng.normal(size=(6, 3))
    values, slope = network.value_and_slope(X)
    np.testing.assert_allclose(values, network.outputs(X).sum(axis=1))
    for k, shift in enumerate(1e-6 * np.eye(3)):
        ends = [network.value_and_slope(X + s * shift)[0] for s in (1, -1)]
        np.testing.assert_allclose(slope[:, k], (ends[0] - ends[1]) / 2e-6, atol=1e-7)


def test_half_trained_models_are_those_of_gradient_descent():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X -= X.mean(axis=0)
    costs = rng.normal(size=(50, 2))
    spread = costs.std(axis=0)

    (found,) = half_trained(X, costs, spread, 1, np.random.default_rng(7))

    twin = np.random.default_rng(7)
    theta, n_steps = twin.normal(scale=spread / np.sqrt(3), size=(3, 2)), twin.uniform(0, 5)
    rate = 0.5 / np.linalg.norm(X, 2) ** 2
    centred = costs - costs.mean(axis=0)
    path = [theta]
    for _ in range(6):
        path.append(path[-1] - rate * X.T @ (X @ path[-1] - centred))
    ends = [X @ path[int(n_steps) + k] for k in (0, 1)]
    moved = found - costs.mean(axis=0)
    sizes = [np.linalg.norm(part) for part in (moved - ends[0], moved - ends[1], ends[0] - ends[1])]
    assert sizes[0] + sizes[1] < 1.05 * sizes[2]  # between the two whole steps


def test_features_decide_which_costs_count():
    """In the rows of one group the third item is too dear to be chosen, in those of the other it is the best."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(200, 1))
    costs = rng.normal([1.0, 1.1, 9.0], 0.3, size=(200, 3)) + np.where(X > 0, [0, 0, -8.0], 0.0)
    problem = TopK(3, 1, sense="min")
    target = Egl().prepare(problem, costs, X=X)
    shares = target.above / target.above.sum(axis=1, keepdims=True)
    assert shares[X[:, 0] > 0, 2].mean() > 5 * shares[X[:, 0] < 0, 2].mean()
    np.testing.assert_array_equal(target.above, target.below)


def test_it_takes_fewer_solves_than_lodl():
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(30, 2)), rng.normal(size=(30, 4))
    counts = []
    for loss in (Egl(), Lodl()):
        problem = CountedProblem(TopK(4, 2))
        loss.prepare(problem, costs, X=X)
        counts.append(problem.n_solves / 30)
    assert counts == [31, 501]


def test_it_trains_with_features_of_rows_and_of_items():
    rng = np.random.default_rng(0)
    costs = rng.uniform(1, 2, size=(40, 4))
    for X in (rng.normal(size=(40, 3)), rng.normal(size=(40, 4, 2))):
        model = DecisionRegressor(TopK(4, 2), Egl(n_samples=5, n_steps=20), epochs=2, random_state=0).fit(X, costs)
        assert np.isfinite(model.predict(X)).all()


def test_bad_input():
    costs = np.ones((2, 6))
    with pytest.raises(ValueError, match="Egl computes its labels from the features; pass them as X"):
        Egl().prepare(TopK(6, 2), costs)
    with pytest.raises(
        ValueError, match=r"fits 6 weights, and 4 regrets do not determine them\. Pass more rows, or raise"
    ):
        Egl(n_samples=2).prepare(TopK(6, 2), costs, X=np.ones((2, 1)))
    with pytest.raises(ValueError, match="learning_rate"):
        Egl(learning_rate=0)
