"""Shortest paths on grids of growing size with a small network: ours beside the published numbers of DYS-Net's authors.

McKenzie, Heaton & Fung, "Differentiating Through Integer Linear Programs with Quadratic Regularization and Davis-Yin
Splitting" (TMLR, 2024), compare a layer that differentiates a quadratic program, their own, and perturbed optimisers.
Degree 4, noise 0.5, 1,000 rows. The learning rate is that with the lowest regret on 200 rows apart.
`main(authors=True, epochs=100, rates=(1e-2,))` trains nearly as their code does: batches of 256, the rate falls where
the regret on these rows no longer does, and the best epoch on them counts.

Needs torch: pip install "decidewise[torch]".
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import nn

from decidewise.data import Dataset, make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.frontends.torch import loss_module
from decidewise.losses import Dpo, Dys, Loss, Mse, Qptl, SpoPlus

LOSSES: dict[str, Loss] = {
    "QP layer": Qptl(lambd=1.0),
    "DYS-Net": Dys(),
    "DPO": Dpo(n_samples=3, sigma=1.0),
    "SPO+": SpoPlus(),
    "MSE": Mse(),
}
PUBLISHED = {
    "QP layer": {5: 8.0, 10: 10.8, 20: 12.1, 30: 16.8},
    "DYS-Net": {5: 8.8, 10: 11.6, 20: 11.2, 30: 11.6},
    "DPO": {5: 9.3, 10: 23.4, 20: 47.9, 30: 77.1},
}


def fit(
    loss: Loss, train: Dataset, epochs: int, rate: float, seed: int, batch: int = 32, held_out: Dataset | None = None
) -> nn.Module:
    """Train a network with one hidden layer of 32 units by Adam; with rows held out, keep the best epoch on them."""
    torch.manual_seed(seed)
    X, costs = (torch.tensor(array, dtype=torch.float32) for array in (train.X, train.costs))
    network = nn.Sequential(nn.Linear(X.shape[1], 32), nn.LeakyReLU(0.1), nn.Linear(32, costs.shape[1]))
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    falling = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    criterion = loss_module(loss, train.problem)
    target = criterion.prepare(costs)
    best, lowest = network, np.inf
    for _ in range(epochs):
        for rows in torch.randperm(len(train)).split(batch):
            value = criterion(network(X[rows]), costs[rows], target[rows])
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        if held_out is not None:
            falling.step(now := regret(network, held_out))
            if now < lowest:
                best, lowest = deepcopy(network), now
    return best


def regret(network: nn.Module, data: Dataset) -> float:
    """Return the normalised regret of a network's decisions in percent."""
    with torch.no_grad():
        prediction = network(torch.tensor(data.X, dtype=torch.float32))
    return normalized_regret(data.problem, prediction, data.costs)


def main(
    grids: Sequence[int] = (5, 10),
    losses: Sequence[str] = tuple(LOSSES),
    rows: int = 1000,
    epochs: int = 20,
    trials: int = 2,
    rates: Sequence[float] = (1e-3, 1e-2),
    authors: bool = False,
) -> None:
    print("| grid | loss | ours, by trial | published | rates chosen |")
    print("|---:|---|---|---:|---|")
    for size in grids:
        for name in losses:
            found, chosen = [], []
            for trial in range(trials):
                data = make_shortest_path(rows + 1200, degree=4, noise=0.5, grid=(size, size), seed=42 + trial)
                train, rest = data.split(rows)
                held_out, test = rest.split(200)
                own: dict[str, Any] = {"batch": 256, "held_out": held_out} if authors else {}
                fitted = [fit(LOSSES[name], train, epochs, rate, trial, **own) for rate in rates]
                best = int(np.argmin([regret(network, held_out) for network in fitted]))
                found.append(regret(fitted[best], test))
                chosen.append(rates[best])
            ours = ", ".join(f"{value:.1f}" for value in found)
            published = PUBLISHED.get(name, {}).get(size, "")
            print(
                f"| {size} | {name} | {ours} | {published} | {', '.join(f'{rate:g}' for rate in chosen)} |", flush=True
            )


if __name__ == "__main__":
    main()
