"""Train a small convolutional network to find its way over maps: images in, the cost of every cell out.

The maps are synthetic terrain, in the manner of the Warcraft maps of Vlastelica et al., "Differentiation of Blackbox
Combinatorial Solvers", ICLR 2020: grass, wood, hills, rock and water, each with a cost to enter. Steps lead to all four
neighbours, so the graph has cycles. The light differs from map to map, and costs vary by half within a kind.

    python examples/terrain_network.py        # needs torch: pip install "decidewise[torch]"
"""

import argparse

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import nn

from decidewise.evaluate import regret_interval
from decidewise.frontends.torch import loss_module
from decidewise.problems import ShortestPath

COSTS = np.array([0.8, 1.5, 3.0, 5.5, 9.0])  # of grass, wood, hills, rock and water
COLOURS = np.array([[0.5, 0.8, 0.3], [0.2, 0.5, 0.2], [0.6, 0.6, 0.4], [0.5, 0.5, 0.5], [0.2, 0.3, 0.8]])
PIXELS = 4  # of a cell, on each side


def roads(side: int) -> ShortestPath:
    """Return the way from the first to the last cell, by steps to all four neighbours."""
    cells = np.arange(side * side).reshape(side, side)
    tails, heads = np.append(cells[:, :-1], cells[:-1]), np.append(cells[:, 1:], cells[1:])
    return ShortestPath.from_edges(np.append(tails, heads), np.append(heads, tails), 0, side * side - 1, lower=0)


def draw_maps(n: int, side: int, rng: np.random.Generator) -> tuple[torch.Tensor, np.ndarray]:
    """Return images (n, 3, side · PIXELS, side · PIXELS) and the cost of each cell (n, side²)."""
    height = gaussian_filter(rng.normal(size=(n, side, side)), (0, 1.2, 1.2))
    kinds = np.searchsorted(np.quantile(height, [0.35, 0.55, 0.75, 0.9]), height)
    costs = COSTS[kinds] * rng.uniform(0.5, 1.5, size=kinds.shape)
    pixels = COLOURS[kinds].repeat(PIXELS, axis=1).repeat(PIXELS, axis=2)
    light = rng.uniform(0.4, 1.3, size=(n, 1, 1, 1))
    images = light * pixels + rng.normal(scale=0.15, size=pixels.shape)
    return torch.tensor(images, dtype=torch.float32).movedim(3, 1), costs.reshape(n, -1)


def train(loss_name: str, images: torch.Tensor, costs: np.ndarray, problem: ShortestPath, epochs: int) -> nn.Module:
    """Return a network from images to the costs of steps; a step costs what its cell costs."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 16, PIXELS, stride=PIXELS),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 1, 1),
        nn.Flatten(),
    )
    entered = torch.tensor(problem.heads)
    criterion = loss_module(loss_name, problem)
    paid = torch.tensor(costs[:, problem.heads], dtype=torch.float32)
    size = paid.norm(dim=1).mean() if loss_name == "wise" else 1.0  # WISE predicts directions, whose length is 1
    target = criterion.prepare(paid)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(20):
            loss = criterion(network(images[rows])[:, entered] / size, paid[rows], target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network


def main(n_train: int = 300, n_test: int = 500, side: int = 10, epochs: int = 60) -> None:
    """Print the regret of three losses with one network on maps that none of them has seen."""
    problem, rng = roads(side), np.random.default_rng(0)
    images, costs = draw_maps(n_train + n_test, side, rng)
    for loss_name in ("mse", "wise", "spo+"):
        network = train(loss_name, images[:n_train], costs[:n_train], problem, epochs)
        with torch.no_grad():
            prediction = network(images[n_train:])[:, problem.heads].double().numpy()
        regret = regret_interval(problem, prediction, costs[n_train:, problem.heads])
        print(f"{loss_name:4} regret {regret} %, {100 * (prediction < 0).mean():.1f} % of its predictions below zero")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("n-train", 300), ("n-test", 500), ("side", 10), ("epochs", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    main(**vars(parser.parse_args()))
