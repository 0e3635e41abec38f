"""The pool losses and the Frank–Wolfe losses of PyEPO 2.2.7, side by side in a minimisation and in a maximisation.

The pools are equal because `solve_ratio=0` keeps PyEPO's as its dataset made it.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from decidewise.losses import Cmap, LtrListwise, LtrPairwise, LtrPointwise, Nce, Rfwo, Rfy
from decidewise.problems import Knapsack, ShortestPath

pyepo = pytest.importorskip("pyepo")
pytest.importorskip("gurobipy")
torch = pytest.importorskip("torch")
from pyepo.model.grb import knapsackModel, shortestPathModel  # noqa: E402

N = 60
POOL_LOSSES = [
    (Nce(), "noiseContrastiveEstimation", "decisions"),
    (Cmap(), "contrastiveMAP", "decisions"),
    (LtrPointwise(), "pointwiseLearningToRank", "costs"),
    (LtrPairwise(), "pairwiseLearningToRank", "costs"),
    (LtrListwise(), "listwiseLearningToRank", "costs"),
]


def path():
    return ShortestPath(4, 4), shortestPathModel((4, 4))


def knapsack():
    weights = np.random.default_rng(1).uniform(3.0, 8.0, size=(2, 10)).round(1)
    model = knapsackModel(weights, np.array([20.0, 22.0]))
    model._model.Params.MIPGap = 0.0
    return Knapsack(weights, [20.0, 22.0]), model


@pytest.fixture(scope="module", params=[path, knapsack], ids=lambda build: build.__name__)
def case(request):
    problem, model = request.param()
    rng = np.random.default_rng(0)
    # PyEPO solves for float32 costs; these are the same in both.
    costs = rng.uniform(0.5, 2.0, size=(N, problem.n_costs)).astype(np.float32).astype(np.float64)
    dataset = pyepo.data.dataset.optDataset(model, np.zeros((N, 1)), costs)
    return SimpleNamespace(
        problem=problem,
        model=model,
        dataset=dataset,
        costs=costs,
        decisions=problem.solve(costs),
        prediction=costs * rng.uniform(0.5, 2.0, size=costs.shape),
        sign=-1.0 if problem.sense == "max" else 1.0,
    )


def ours(case, loss):
    return loss.value_and_grad(case.prediction, loss.prepare(case.problem, case.costs), np.random.default_rng(0))


def theirs(case, module, *labels):
    prediction = torch.tensor(case.prediction, requires_grad=True)
    values = module(prediction, *map(torch.tensor, labels))
    values.sum().backward()
    return values.detach().numpy(), prediction.grad.numpy()


def pool_module(case, name):
    return getattr(pyepo.func, name)(case.model, solve_ratio=0, reduction="none", dataset=case.dataset)


def test_pools(case):
    pool = Nce().prepare(case.problem, case.costs).pool.decisions
    np.testing.assert_array_equal(pool, pool_module(case, "NCE").solpool.numpy())
    assert len(pool) > 5


@pytest.mark.parametrize(("loss", "name", "label"), POOL_LOSSES, ids=[name for _, name, _ in POOL_LOSSES])
def test_pool_losses(case, loss, name, label):
    values, gradient = ours(case, loss)

    peer_values, peer_gradient = theirs(case, pool_module(case, name), getattr(case, label))

    np.testing.assert_allclose(values, peer_values, atol=1e-6)
    np.testing.assert_allclose(gradient, peer_gradient, atol=1e-6)
    assert np.abs(gradient).max() > 0.01


def test_listwise_with_rare_decisions(case):
    """PyEPO gives every decision a true probability of at least 1e-8, even where it is next to impossible."""
    sharp = SimpleNamespace(**{**vars(case), "costs": 50 * case.costs, "prediction": 50 * case.prediction})
    values, _ = ours(sharp, LtrListwise())

    peer_values, _ = theirs(sharp, pool_module(sharp, "listwiseLearningToRank"), sharp.costs)

    # In float64 the true probabilities need no floor: with it they sum to more than one.
    assert np.all(peer_values >= values)
    assert np.abs(peer_values - values).max() > 1e-6
    np.testing.assert_allclose(peer_values, values, rtol=1e-3, atol=1e-3)


@pytest.fixture
def few(case):
    """Ten rows, each of which takes PyEPO a hundred solves at its own tolerance and many thousands at a lower one."""
    return SimpleNamespace(
        **{name: value[:10] if isinstance(value, np.ndarray) else value for name, value in vars(case).items()}
    )


def test_rfy(few):
    values, gradient = ours(few, Rfy())

    module = pyepo.func.regularizedFrankWolfeFenchelYoung(few.model, reduction="none")
    peer_values, peer_gradient = theirs(few, module, few.decisions)

    np.testing.assert_allclose(values, peer_values, atol=1e-6)
    np.testing.assert_allclose(gradient, peer_gradient, atol=1e-4)
    assert np.abs(gradient).max() > 0.01


def test_rfwo(few):
    values, gradient = ours(few, Rfwo())

    layer = pyepo.func.regularizedFrankWolfeOpt(few.model)
    costs, optimal = torch.tensor(few.costs), torch.tensor(few.decisions)
    peer = theirs(few, lambda prediction: few.sign * (costs * (layer(prediction) - optimal)).sum(axis=1))

    np.testing.assert_allclose(values, peer[0], atol=1e-4)
    np.testing.assert_allclose(gradient, peer[1], atol=1e-5)  # PyEPO adds a ridge of 1e-6
    assert np.abs(gradient).max() > 0.01
