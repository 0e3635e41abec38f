"""The losses as torch modules: the values and gradients of the NumPy losses, through any network."""

import copy
import importlib
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from decidewise.evaluate import normalized_regret
from decidewise.losses import Loss, Pfy, SpoPlus, Target, registry
from decidewise.problems import Ball, Knapsack, ShortestPath, TopK

torch = pytest.importorskip("torch")
from decidewise.frontends.torch import LossModule, loss_module  # noqa: E402

torch.set_num_threads(1)  # threads that wait for each other make tiny networks slow
PROBLEMS = {
    "path": ShortestPath(3, 3),
    "knapsack": Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0], [4.0, 2.0, 6.0, 3.0, 5.0]], [12.0, 10.0]),
}
#: `implicit` and `compact` refuse paths, and `egl` needs features; the last two are tried on their own.
ON_POLYTOPES = [name for name in registry if name not in ("implicit", "compact", "egl")]
PAIRS = [
    *(
        pytest.param(name, problem, id=f"{name}-{where}")
        for name in ON_POLYTOPES
        for where, problem in PROBLEMS.items()
    ),
    pytest.param("implicit", Ball(5), id="implicit-ball"),
    pytest.param("compact", PROBLEMS["knapsack"], id="compact-knapsack"),
]
N, N_FEATURES = 20, 4


def draw(problem, dtype=torch.float64):
    """Return features, costs and a linear layer with predictions so close to each other that every loss has a slope."""
    rng = np.random.default_rng(1)
    X = torch.tensor(rng.normal(scale=0.3, size=(N, N_FEATURES)), dtype=dtype)
    costs = torch.tensor(rng.uniform(0.5, 2.0, size=(N, problem.n_costs)), dtype=dtype)
    torch.manual_seed(0)
    layer = torch.nn.Linear(N_FEATURES, problem.n_costs, dtype=dtype)
    return X, costs, layer


def numpy_loss(name, problem, prediction, costs):
    """Return what the NumPy loss says of the same batch and noise."""
    loss = registry[name]()
    rng = np.random.default_rng(0)
    target = loss.prepare(problem, costs.numpy(), rng=rng.spawn(1)[0])
    return loss.value_and_grad(prediction.detach().numpy(), target, rng)


@pytest.mark.parametrize(("name", "problem"), PAIRS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_gradient_of_a_network_follows_from_the_loss_by_the_chain_rule(name, problem, dtype):
    X, costs, layer = draw(problem, dtype)
    prediction = layer(X)

    value = loss_module(name, problem)(prediction, costs)
    (3 * value).backward()

    values, gradient = numpy_loss(name, problem, prediction, costs)
    tolerance = {"rtol": 1e-12, "atol": 1e-12} if dtype is torch.float64 else {"rtol": 1e-4, "atol": 1e-5}
    assert value.dtype == layer.weight.grad.dtype == dtype
    assert gradient.any()
    np.testing.assert_allclose(value.item(), values.mean(), **tolerance)
    np.testing.assert_allclose(layer.weight.grad, 3 * gradient.T @ X.numpy() / N, **tolerance)
    np.testing.assert_allclose(layer.bias.grad, 3 * gradient.mean(axis=0), **tolerance)


@pytest.mark.parametrize("name", [*ON_POLYTOPES, "egl"])
def test_labels_can_be_prepared_once(name):
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem)
    rows = torch.tensor([4, 0, 7, 5])
    module, loss = loss_module(name, problem, reduction="none"), registry[name]()

    values = module(layer(X[rows]), costs[rows], module.prepare(costs, X)[rows])

    target = loss.prepare(problem, costs.numpy(), X=X.numpy(), rng=np.random.default_rng(0).spawn(1)[0])[rows.numpy()]
    expected, _ = loss.value_and_grad(layer(X[rows]).detach().numpy(), target, np.random.default_rng(0))
    np.testing.assert_allclose(values.detach(), expected, rtol=1e-12, atol=1e-12)


def test_prepared_labels_are_not_solved_again(monkeypatch):
    problem = ShortestPath(3, 3)
    X, costs, layer = draw(problem)
    module = loss_module("spo+", problem)
    target = module.prepare(costs)
    solved, minimize = [], problem.minimize
    monkeypatch.setattr(problem, "minimize", lambda rows: solved.append(len(rows)) or minimize(rows))

    module(layer(X), costs, target)
    assert sum(solved) == N
    module(layer(X), costs)
    assert sum(solved) == 3 * N


def test_reductions():
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem)
    gradients = {}
    for reduction in ("mean", "sum", "none"):
        layer.zero_grad()
        value = loss_module("spo+", problem, reduction=reduction)(layer(X), costs)
        value.sum().backward()
        gradients[reduction] = layer.weight.grad.clone()
        assert value.shape == ((N,) if reduction == "none" else ())
    torch.testing.assert_close(gradients["sum"], N * gradients["mean"])
    torch.testing.assert_close(gradients["none"], gradients["sum"])


@pytest.mark.parametrize("name", ["mse", "wise"])
def test_native_losses_are_differentiable_twice_and_in_the_costs(name, monkeypatch):
    problem = TopK(6, 2)
    monkeypatch.setattr(problem, "minimize", lambda costs: pytest.fail("solved"))
    X, costs, layer = draw(problem)
    inputs = layer(X[:4]).detach().requires_grad_(), costs[:4].requires_grad_()
    module = loss_module(name, problem)

    assert torch.autograd.gradcheck(module, inputs)
    assert torch.autograd.gradgradcheck(module, inputs)


@pytest.mark.parametrize("name", ["ltr-pointwise", "ltr-listwise"])
def test_smooth_losses_pass_torch_s_own_check(name):
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem)
    module = loss_module(name, problem)
    target = module.prepare(costs)

    prediction = layer(X).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda p: module(p, costs, target), (prediction,))


def test_a_solver_loss_has_no_second_derivative():
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem)
    value = loss_module("spo+", problem)(layer(X), costs)
    (gradient,) = torch.autograd.grad(value, layer.weight, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        gradient.sum().backward()


def test_costs_get_no_gradient_from_a_solver_loss():
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem)
    costs.requires_grad_()
    loss_module("spo+", problem)(layer(X), costs).backward()
    assert costs.grad is None


@pytest.mark.parametrize("name", ["wise", "spo+"])
def test_double_precision_costs_do_not_change_the_precision_of_the_network(name):
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem, torch.float32)
    assert loss_module(name, problem)(layer(X), costs.double()).dtype == torch.float32


def test_noise_is_new_in_each_call_and_reproducible_from_the_seed():
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem)
    modules = [loss_module("pfy", problem, seed=seed) for seed in (5, 5, 6)]
    modules.append(copy.deepcopy(modules[0]))
    first, same, other, copied = ([module(layer(X), costs).item() for _ in range(2)] for module in modules)
    assert first == same == copied
    assert first[0] != first[1]
    assert first[0] != other[0]


@pytest.mark.parametrize(("name", "parameters"), [("wise", {}), ("spo+", {}), ("pfy", {"sigma": 0.3})])
def test_training_a_network_reduces_the_regret(name, parameters):
    problem = PROBLEMS["path"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, N_FEATURES))
    costs = torch.tensor(np.exp(X @ rng.normal(size=(N_FEATURES, problem.n_costs)) / 2))
    X = torch.tensor(X)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(N_FEATURES, 16), torch.nn.ReLU(), torch.nn.Linear(16, problem.n_costs)
    ).double()
    module = loss_module(name, problem, **parameters)
    target = module.prepare(costs)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)

    def test_regret():
        with torch.no_grad():
            return normalized_regret(problem, network(X[200:]), costs[200:])

    before = test_regret()
    for _ in range(20):
        for rows in torch.randperm(200).split(50):
            optimizer.zero_grad()
            module(network(X[rows]), costs[rows], target[rows]).backward()
            optimizer.step()
    assert test_regret() < before / 3


def test_a_loss_can_be_given_as_an_object_or_registered_by_the_user(monkeypatch):
    @dataclass(frozen=True)
    class Regret(Loss):
        gradient = "surrogate"

        def evaluate(self, prediction, target, rng):
            decisions = target.minimize(prediction)
            return (target.costs * decisions).sum(axis=1) - target.values, -decisions

    monkeypatch.setitem(registry, "regret", Regret)
    problem = PROBLEMS["knapsack"]
    X, costs, layer = draw(problem)
    by_name = loss_module("regret", problem)(layer(X), costs)
    assert by_name.item() > 0
    assert by_name == loss_module(Regret(), problem)(layer(X), costs)
    assert loss_module("pfy", problem, n_samples=3).loss == Pfy(n_samples=3)


@dataclass(frozen=True)
class Cubic(Loss):
    """A loss of one's own with a native form that has a parameter, and labels from the features without it."""

    scale: float = 2.0
    gradient = "exact"
    solves = False
    requires = frozenset({"features"})
    target_type = Target

    def native(self, prediction, costs):
        return self.scale * ((prediction - costs) ** 3).sum(-1)

    def label(self, problem, costs, X, rng):
        labelled.append((X, rng.random()))
        return super().label(problem, costs, X, rng)

    def evaluate(self, prediction, target, rng):
        residual = prediction - target.costs
        return self.scale * (residual**3).sum(axis=1), 3 * self.scale * residual**2


@dataclass(frozen=True)
class CubicOnHost(Cubic):
    native = None


labelled = []


def test_a_loss_of_ones_own_runs_natively_where_it_has_a_native_form():
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem)
    labelled.clear()
    module = loss_module(Cubic(), problem)
    assert torch.autograd.gradgradcheck(lambda prediction: module(prediction, costs), layer(X))
    assert not labelled
    on_host = loss_module(CubicOnHost(), problem)
    target = on_host.prepare(costs, X)
    torch.testing.assert_close(on_host(layer(X), costs, target), module(layer(X), costs))


def test_labels_from_features_and_random_numbers():
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem)
    labelled.clear()
    on_host = loss_module(CubicOnHost(), problem)
    on_host.prepare(costs, X)
    on_host.prepare(costs, X)
    np.testing.assert_array_equal(labelled[0][0], X)
    assert labelled[0][1] != labelled[1][1]
    assert on_host.rng.random() == np.random.default_rng(0).random()  # the noise of the loss is as it was
    with pytest.raises(ValueError, match="CubicOnHost computes its labels from the features; pass them as X"):
        on_host(layer(X), costs)


def test_the_module_shows_what_it_is_made_of():
    shown = repr(loss_module("pfy", PROBLEMS["path"], sigma=0.5))
    assert "Pfy(n_samples=10, sigma=0.5)" in shown
    assert "ShortestPath" in shown


def test_bad_arguments():
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem)
    module = loss_module("wise", problem)

    with pytest.raises(ValueError, match=r"loss must be one of .*got 'spo'"):
        loss_module("spo", problem)
    with pytest.raises(ValueError, match=r"got loss=SpoPlus\(\)\. Set sigma in it"):
        loss_module(SpoPlus(), problem, sigma=1.0)
    with pytest.raises(ValueError, match="reduction must be one of 'mean', 'sum', 'none'; got 'max'"):
        loss_module("wise", problem, reduction="max")
    with pytest.raises(ValueError, match="Rfwo needs a region with flat faces, and Ball"):
        loss_module("rfwo", Ball(3))
    shapes = r"must both have the shape \(batch, 12\).*prediction\.shape=\(20, 12\) and costs\.shape=\(20, 1\)"
    with pytest.raises(ValueError, match=shapes):
        module(layer(X), costs[:, :1])
    with pytest.raises(ValueError, match=r"prediction\.shape=\(12,\)"):
        module(layer(X)[0], costs[0])
    with pytest.raises(ValueError, match="prediction must be finite; row 0, column 0 has NaN"):
        loss_module("spo+", problem)(layer(X * torch.nan), costs)


@pytest.mark.parametrize("name", ["mse", "spo+"])
def test_only_a_tensor_of_floats_is_a_prediction_and_any_array_of_numbers_are_costs(name):
    problem = PROBLEMS["path"]
    X, costs, layer = draw(problem)
    module = loss_module(name, problem)

    for bad in (costs.numpy(), costs.tolist(), None, costs.long()):
        with pytest.raises(TypeError, match=r"prediction must be a torch\.Tensor of floats"):
            module(bad, costs)
    with pytest.raises(TypeError, match="a target comes after the costs"):
        module(layer(X), module.prepare(costs))
    for bad in ("x", None, costs.numpy().astype(str)):
        with pytest.raises(ValueError, match="costs must be an array of real numbers"):
            module(layer(X), bad)
    expected = module(layer(X), costs)
    assert module(layer(X), costs.numpy()) == expected
    assert module(layer(X), costs.double().tolist()) == expected
    for bad in (-1, "x", None):
        with pytest.raises(ValueError, match="seed must be"):
            loss_module(name, problem, seed=bad)
    with pytest.raises(TypeError, match="problem must be a decidewise problem"):
        loss_module(name, None)
    with pytest.raises(ValueError, match="loss must be one of"):
        LossModule(None, problem)


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "decidewise.frontends.torch")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'needs torch: pip install "decidewise\[torch\]"'):
        importlib.import_module("decidewise.frontends.torch")
