"""CaVE gives the values and gradients of PyEPO 2.2.7, whose constraints come from Gurobi and projections from Clarabel.

With many steps PyEPO projects exactly; with 3 it is CaVE+, and every one of its steps is taken here too. CaVE hybrid is
compared where it draws nothing: PyEPO draws once for a batch, decidewise for each row.
"""

import numpy as np
import pytest

from decidewise.losses import Cave, CaveHybrid, CavePlus
from decidewise.problems import Knapsack, ShortestPath

pytest.importorskip("pyepo")
pytest.importorskip("gurobipy")
torch = pytest.importorskip("torch")
from pyepo.data.dataset import collate_tight_constraints, optDatasetConstrs  # noqa: E402
from pyepo.func import coneAlignedCosine  # noqa: E402
from pyepo.func.cave import _clarabel_settings  # noqa: E402
from pyepo.model.grb import knapsackModel, shortestPathModel  # noqa: E402

N = 40


def path():
    costs = np.random.default_rng(0).uniform(0.5, 2.0, size=(N, 40))
    return ShortestPath(5, 5), shortestPathModel((5, 5)), costs


def knapsack():
    rng = np.random.default_rng(0)
    weights, capacity = rng.integers(300, 800, size=(2, 16)) / 100, np.array([20.0, 20.0])
    costs = np.ceil(rng.uniform(0.0, 20.0, size=(N, 16)))
    costs += rng.uniform(0.0, 1e-3, size=costs.shape)  # no two decisions tie
    return Knapsack(weights, capacity), knapsackModel(weights, capacity), costs


@pytest.mark.parametrize("make", [path, knapsack])
@pytest.mark.parametrize("noise", [0.3, 3.0])
@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (Cave(relaxed=False), {"max_iter": 200}),
        (CavePlus(relaxed=False), {"max_iter": 3}),
        (CavePlus(max_iter=2, relaxed=False), {"max_iter": 2}),
        (CaveHybrid(solve_ratio=0.0, relaxed=False), {"solve_ratio": 0.0}),
        (CaveHybrid(solve_ratio=0.0, inner_ratio=0.5, relaxed=False), {"solve_ratio": 0.0, "inner_ratio": 0.5}),
    ],
)
def test_values_and_gradients(make, noise, loss, options):
    problem, model, costs = make()
    prediction = costs + noise * np.random.default_rng(1).normal(size=costs.shape) * costs.std()
    dataset = optDatasetConstrs(model, np.zeros((N, 1)), costs)
    constraints = collate_tight_constraints([dataset[i] for i in range(N)])[-1]
    tensor = torch.tensor(prediction, requires_grad=True)
    # Clarabel's gap of 1e-8 allows an error of 1e-4 in the projection, and so in the gradient; let it go on.
    settings = _clarabel_settings(options.get("max_iter", 3))
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    theirs = coneAlignedCosine(model, reduction="none", **options)(tensor, constraints)
    theirs.sum().backward()

    values, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))

    np.testing.assert_allclose(values, theirs.detach().numpy(), rtol=0, atol=1e-6)
    np.testing.assert_allclose(gradient, tensor.grad.numpy(), rtol=0, atol=1e-6)
