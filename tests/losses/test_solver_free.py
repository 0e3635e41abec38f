"""The norm-weighted cosine and one-sided squares."""

import numpy as np
import pytest

from decidewise.losses import Cosine, OneSided, cosine
from decidewise.problems import Ball, LinearProgram, ShortestPath, Storage, TopK


def test_the_cosine_is_least_in_the_direction_of_the_mean():
    rng = np.random.default_rng(0)
    costs = rng.gamma(2.0, size=(4_000, 3)) * rng.lognormal(size=(4_000, 1))
    mean = costs.mean(axis=0)

    at_mean = cosine(np.tile(mean, (4_000, 1)), costs).mean()
    for direction in rng.normal(size=(20, 3)):
        assert cosine(np.tile(mean + 0.3 * direction, (4_000, 1)), costs).mean() > at_mean
    assert cosine(np.tile(7 * mean, (4_000, 1)), costs).mean() == pytest.approx(at_mean)


def test_the_cosine_at_zero_and_at_extremes():
    loss = Cosine()
    costs = np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 0.0], [3e200, 4e200]])
    target = loss.prepare(TopK(2, 1), costs)

    values, gradient = loss.value_and_grad(
        np.array([[0.0, 0.0], [6e250, 8e250], [1.0, 1.0], [4e-50, -3e-50]]), target, None
    )

    np.testing.assert_allclose(values, [5.0, 0.0, 0.0, 5e200], atol=1e-12)
    np.testing.assert_array_equal(gradient[[0, 2]], 0.0)


def test_torch_differentiates_the_cosine_as_we_do():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    prediction, costs = rng.normal(size=(2, 6, 4))
    prediction[2] = 0.0
    leaf = torch.tensor(prediction, requires_grad=True)

    cosine(leaf, torch.tensor(costs)).sum().backward()

    _, gradient = Cosine().value_and_grad(prediction, Cosine().prepare(TopK(4, 1), costs), None)
    np.testing.assert_allclose(leaf.grad.numpy(), gradient, atol=1e-12)


@pytest.mark.parametrize("problem", [ShortestPath(3, 3), TopK(6, 2)], ids=lambda problem: type(problem).__name__)
def test_no_one_sided_error_means_no_regret(problem):
    rng = np.random.default_rng(0)
    costs = rng.uniform(0.5, 2.0, size=(200, problem.n_costs))
    decisions, sign = problem.solve(costs), -1 if problem.sense == "max" else 1
    # Cheaper than true where the decision takes it, and dearer where it does not; for a maximisation the reverse.
    prediction = costs + sign * rng.uniform(0, 3, size=costs.shape) * np.where(decisions == 1, -1, 1)
    loss = OneSided(rho=0.0)

    values, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), None)

    assert not values.any()
    assert not gradient.any()
    np.testing.assert_array_equal(problem.solve(prediction), decisions)
    far, _ = OneSided(rho=0.5).value_and_grad(prediction, OneSided(rho=0.5).prepare(problem, costs), None)
    np.testing.assert_allclose(far, 0.5 * ((prediction - costs) ** 2).sum(axis=1))


@pytest.mark.parametrize(
    "problem", [Ball(3), Storage(4, power=1.0, energy=2.0), LinearProgram([[2.0, 2.0]], [3.0], upper=1, sense="max")]
)
def test_other_decisions_than_zeros_and_ones_are_refused(problem):
    costs = np.full((2, problem.n_costs), 2.0) + np.arange(problem.n_costs)

    with pytest.raises(ValueError, match=r"OneSided needs decisions of zeros and ones.*Choose a loss"):
        OneSided().prepare(problem, costs)
