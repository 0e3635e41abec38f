import numpy as np
import pytest

from decidewise.losses import Wise, wise
from decidewise.problems import Ball


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    prediction, costs = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    costs[2] = 0.0
    return prediction, costs


def by_definition(prediction, costs):
    return np.array(
        [
            0.0 if not c.any() else np.linalg.norm(c) * ((p - c / np.linalg.norm(c)) ** 2).sum()
            for p, c in zip(prediction, costs, strict=True)
        ]
    )


def gradient_by_definition(prediction, costs):
    return 2 * (np.linalg.norm(costs, axis=1, keepdims=True) * prediction - costs)


def test_value_and_gradient_are_those_of_the_definition(batch):
    prediction, costs = batch
    np.testing.assert_allclose(wise(prediction, costs), by_definition(prediction, costs), rtol=1e-12)
    loss = Wise()
    values, gradient = loss.value_and_grad(prediction, loss.prepare(Ball(4), costs), np.random.default_rng(0))
    np.testing.assert_allclose(values, by_definition(prediction, costs), rtol=1e-12)
    np.testing.assert_allclose(gradient, gradient_by_definition(prediction, costs), rtol=1e-12, atol=1e-15)


def test_torch_differentiates_the_plain_function(batch):
    torch = pytest.importorskip("torch")
    prediction, costs = batch
    leaf = torch.tensor(prediction, requires_grad=True)
    values = wise(leaf, torch.tensor(costs))
    values.sum().backward()
    np.testing.assert_allclose(values.detach().numpy(), by_definition(prediction, costs), rtol=1e-12)
    np.testing.assert_allclose(leaf.grad.numpy(), gradient_by_definition(prediction, costs), rtol=1e-12, atol=1e-15)
    assert wise(leaf.float(), torch.tensor(costs).float()).dtype == torch.float32


def test_jax_differentiates_the_plain_function(batch):
    jax = pytest.importorskip("jax")
    prediction, costs = (jax.numpy.asarray(a, dtype="float32") for a in batch)
    gradient = jax.jit(jax.grad(lambda p: wise(p, costs).sum()))(prediction)
    np.testing.assert_allclose(gradient, gradient_by_definition(*batch), rtol=1e-4, atol=1e-5)


def test_one_row_gives_one_number(batch):
    prediction, costs = batch
    assert wise(prediction[0], costs[0]) == pytest.approx(wise(prediction, costs)[0])


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_extreme_costs_scale_the_loss(batch, size):
    prediction, costs = batch
    np.testing.assert_allclose(wise(prediction, size * costs) / size, wise(prediction, costs), rtol=1e-9)
    target = Wise().prepare(Ball(4), size * costs)
    values, gradient = Wise().value_and_grad(prediction, target, np.random.default_rng(0))
    np.testing.assert_allclose(values / size, wise(prediction, costs), rtol=1e-9)
    np.testing.assert_allclose(gradient / size, gradient_by_definition(prediction, costs), rtol=1e-9, atol=1e-15)


def test_eps_clamps_small_norms_only():
    prediction, costs = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[3e-9, 4e-9], [3.0, 4.0]])
    clamped = wise(prediction, costs, eps=1e-3)
    direction = costs[0] / 1e-3
    assert clamped[0] == pytest.approx(1e-3 * ((prediction[0] - direction) ** 2).sum())
    assert clamped[1] == wise(prediction, costs)[1]


def test_continuous_at_a_zero_cost():
    prediction = np.array([[5.0, -3.0]])
    sizes = np.array([1e-3, 1e-6, 1e-9])
    values = [wise(prediction, size * np.array([[0.6, 0.8]]))[0] for size in sizes]
    np.testing.assert_allclose(values, values[0] * sizes / sizes[0], rtol=1e-6)
    assert wise(prediction, np.zeros((1, 2)))[0] == 0
