import numpy as np

from decidewise.losses import Nce
from decidewise.problems import ShortestPath, TopK


def test_the_value_is_the_mean_over_the_pool():
    rng = np.random.default_rng(0)
    problem = ShortestPath(3, 3)
    prediction, costs = rng.normal(size=(2, 30, problem.n_costs))
    optimal = problem.solve(costs)
    pool = np.array(sorted({tuple(decision) for decision in optimal}))

    values, gradient = Nce().value_and_grad(prediction, Nce().prepare(problem, costs), rng)

    assert len(pool) < 30
    for i in range(30):
        np.testing.assert_allclose(values[i], np.mean([prediction[i] @ (optimal[i] - v) for v in pool]))
        np.testing.assert_allclose(gradient[i], np.mean([optimal[i] - v for v in pool], axis=0), atol=1e-15)


def test_subtracting_the_costs_leaves_the_gradient():
    rng = np.random.default_rng(1)
    prediction, costs = rng.normal(size=(2, 30, 6))
    target = Nce().prepare(TopK(6, 2), costs)

    _, gradient = Nce().value_and_grad(prediction, target, rng)
    _, variant = Nce().value_and_grad(prediction - costs, target, rng)

    np.testing.assert_array_equal(gradient, variant)


def test_one_decision_alone_has_nothing_to_beat():
    target = Nce().prepare(TopK(3, 1), [[3.0, 1.0, 2.0], [2.0, 1.0, 1.0]])

    values, gradient = Nce().value_and_grad(np.ones((2, 3)), target, np.random.default_rng(0))

    assert not values.any()
    assert not gradient.any()
