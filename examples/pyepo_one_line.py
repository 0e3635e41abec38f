"""A training loop written for PyEPO, with one line changed: the loss.

Needs PyEPO and its solver: pip install "decidewise[peers]".
"""

import pyepo
import torch
from pyepo.data.dataset import optDataset
from pyepo.model.grb import shortestPathModel
from torch.utils.data import DataLoader

from decidewise.frontends.torch import loss_module
from decidewise.problems import from_pyepo


def train(criterion: torch.nn.Module, loader: DataLoader, epochs: int) -> torch.nn.Module:
    """Train a linear predictor; the loop is the same for both libraries' losses."""
    torch.manual_seed(0)
    network = torch.nn.Linear(5, 40)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(epochs):
        for features, costs, _solutions, _objectives in loader:
            loss = criterion(network(features), costs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network


def main(n_train: int = 200, n_test: int = 1000, epochs: int = 50) -> None:
    model = shortestPathModel((5, 5))
    X, costs = pyepo.data.shortestpath.genData(n_train + n_test, 5, (5, 5), deg=6, noise_width=0.5, seed=42)
    train_loader = DataLoader(optDataset(model, X[:n_train], costs[:n_train]), batch_size=32, shuffle=True)
    test_loader = DataLoader(optDataset(model, X[n_train:], costs[n_train:]), batch_size=n_test)

    # `from_pyepo` takes any PyEPO model; `decidewise.problems.ShortestPath(5, 5)` is the same problem, solved faster.
    problem = from_pyepo(model)
    criteria = {
        "PyEPO, PG": pyepo.func.perturbationGradient(model, sigma=1.0),  # the line that changes
        "decidewise, PG": loss_module("pg", problem, h=1.0),
        "decidewise, SPO+": loss_module("spo+", problem),  # needs no solutions and objectives, unlike PyEPO's
        "decidewise, WISE": loss_module("wise", problem),  # needs no solver
    }
    for name, criterion in criteria.items():
        regret = pyepo.metric.regret(train(criterion, train_loader, epochs), model, test_loader)
        print(f"{name:17} test regret {100 * regret:5.2f} %")


if __name__ == "__main__":
    main()
