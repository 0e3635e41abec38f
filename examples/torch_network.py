"""Train a small neural network to choose shortest paths, with several losses, and compare its decisions.

Needs torch: pip install "decidewise[torch]".
"""

import torch
from torch import nn

from decidewise.data import Dataset, make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.frontends.torch import loss_module


def train(loss_name: str, data: Dataset, epochs: int) -> nn.Module:
    torch.manual_seed(0)
    X, costs = (torch.tensor(array, dtype=torch.float32) for array in (data.X, data.costs))
    network = nn.Sequential(nn.Linear(X.shape[1], 32), nn.ReLU(), nn.Linear(32, costs.shape[1]))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)

    criterion = loss_module(loss_name, data.problem)
    target = criterion.prepare(costs)  # optimal decisions, if the loss needs them, are solved here once
    for _ in range(epochs):
        for rows in torch.randperm(len(data)).split(32):
            loss = criterion(network(X[rows]), costs[rows], target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network


def main(n_train: int = 1000, n_test: int = 1000, epochs: int = 50) -> None:
    train_data, test_data = make_shortest_path(n_train + n_test, degree=6, seed=0).split(n_train)
    features = torch.tensor(test_data.X, dtype=torch.float32)
    for loss_name in ("mse", "wise", "spo+"):
        network = train(loss_name, train_data, epochs)
        with torch.no_grad():
            prediction = network(features)
        regret = normalized_regret(test_data.problem, prediction, test_data.costs)
        print(f"{loss_name:4} test regret {regret:5.2f} %")


if __name__ == "__main__":
    main()
