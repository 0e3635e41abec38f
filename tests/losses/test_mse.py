import numpy as np
import pytest
from sklearn.metrics import mean_squared_error

from decidewise.losses import Mse, mse
from decidewise.problems import Ball


def test_the_mean_of_all_values_is_scikit_learns():
    rng = np.random.default_rng(0)
    prediction, costs = rng.normal(size=(7, 3)), rng.normal(size=(7, 3))
    values, _ = Mse().value_and_grad(prediction, Mse().prepare(Ball(3), costs), rng)
    assert values.mean() == pytest.approx(mean_squared_error(costs, prediction))
    np.testing.assert_allclose(mse(prediction, costs), values)


def test_torch_differentiates_the_plain_function_like_ours():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    prediction, costs = rng.normal(size=(7, 3)), rng.normal(size=(7, 3))
    leaf = torch.tensor(prediction, requires_grad=True)
    mse(leaf, torch.tensor(costs)).sum().backward()
    _, gradient = Mse().value_and_grad(prediction, Mse().prepare(Ball(3), costs), rng)
    np.testing.assert_allclose(leaf.grad.numpy(), gradient)
