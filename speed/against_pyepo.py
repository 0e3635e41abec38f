"""Train the paper's linear predictor with our trainer and with PyEPO and Gurobi: seconds, ratio and final regret.

Run: `make race`, or `python speed/against_pyepo.py [problem or method ...]` with the `peers` extra installed. Both
sides run 100 epochs of Adam over 200 samples in batches of 32, from the same least-squares start, after a warm-up of
one epoch; the times include the labels. PyEPO solves with Gurobi; our solvers are compiled and exact, and need no
licence.
"""

import sys
from time import perf_counter
from typing import NamedTuple

import gurobipy
import numpy as np
import pyepo
import torch
from pyepo.model.grb import knapsackModel, portfolioModel, shortestPathModel
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.linear_model import LinearRegression
from torch.utils.data import DataLoader

from decidewise.data import make_knapsack, make_portfolio, make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.losses import CavePlus, Pfy, SpoPlus
from decidewise.models import DecisionRegressor

N_TRAIN, N_TEST, EPOCHS, BATCH = 200, 1_000, 100, 32


class Task(NamedTuple):
    """A problem with its data, PyEPO's model of it, and Adam's learning rate."""

    data: object
    peer_model: object
    learning_rate: float


def tasks():
    n = N_TRAIN + N_TEST
    path = make_shortest_path(n, degree=4, seed=42)
    knapsack = make_knapsack(n, degree=4, seed=42)
    portfolio = make_portfolio(n, degree=3, seed=42)
    gamma = portfolio.problem.risk / portfolio.problem.covariance.mean()
    return {
        "shortest path": Task(path, shortestPathModel((5, 5)), 5e-3),
        "knapsack": Task(knapsack, knapsackModel(knapsack.problem.weights, knapsack.problem.capacities), 5e-3),
        "portfolio": Task(portfolio, at_most_one(portfolioModel(25, portfolio.problem.covariance, gamma)), 1e-3),
    }


def at_most_one(model):
    """Turn PyEPO's `Σ x = 1` into the paper's `Σ x ≤ 1`, so that both sides train on the same feasible set."""
    (budget,) = model._model.getConstrs()
    budget.Sense = gurobipy.GRB.LESS_EQUAL
    model._model.update()
    return model


def train_ours(task, loss, epochs):
    train, test = task.data.split(N_TRAIN)
    model = DecisionRegressor(
        train.problem,
        loss,
        protocol="paper",  # as PyEPO trains
        init="mse",
        epochs=epochs,
        batch_size=BATCH,
        learning_rate=task.learning_rate,
        random_state=0,
    )
    start = perf_counter()
    model.fit(train.X, train.costs)
    seconds = perf_counter() - start
    return seconds, normalized_regret(test.problem, model.predict(test.X), test.costs)


def train_theirs(task, method, epochs):
    train, test = task.data.split(N_TRAIN)
    torch.manual_seed(0)
    start = perf_counter()
    cave = method == "cave+"
    dataset_class = pyepo.data.dataset.optDatasetConstrs if cave else pyepo.data.dataset.optDataset
    dataset = dataset_class(task.peer_model, train.X, train.costs)
    collate = {"collate_fn": pyepo.data.dataset.collate_tight_constraints} if cave else {}
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, **collate)
    network = torch.nn.Linear(train.X.shape[1], train.costs.shape[1])
    fit = LinearRegression().fit(train.X, train.costs)
    with torch.no_grad():
        network.weight.copy_(torch.tensor(fit.coef_))
        network.bias.copy_(torch.tensor(fit.intercept_))
    criterion = {
        "spo+": lambda: pyepo.func.SPOPlus(task.peer_model),
        "pfy": lambda: pyepo.func.perturbedFenchelYoung(task.peer_model, n_samples=3, sigma=1.0),
        "cave+": lambda: pyepo.func.coneAlignedCosine(task.peer_model, max_iter=3),
    }[method]()
    optimizer = torch.optim.Adam(network.parameters(), lr=task.learning_rate)
    for _ in range(epochs):
        for batch in loader:
            prediction = network(batch[0].float())
            if method == "spo+":
                value = criterion(prediction, *(part.float() for part in batch[1:4]))
            elif method == "pfy":
                value = criterion(prediction, batch[2].float())
            else:
                value = criterion(prediction, batch[4])
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
    seconds = perf_counter() - start
    with torch.no_grad():
        prediction = network(torch.tensor(test.X).float()).numpy()
    return seconds, normalized_regret(test.problem, prediction, test.costs)


RACES = [
    ("shortest path", "spo+", SpoPlus(), 40),
    ("knapsack", "spo+", SpoPlus(), 100),
    ("portfolio", "spo+", SpoPlus(), 20),
    ("shortest path", "pfy", Pfy(n_samples=3), 40),
    ("knapsack", "pfy", Pfy(n_samples=3), 100),
    ("portfolio", "pfy", Pfy(n_samples=3), 20),
    ("shortest path", "cave+", CavePlus(), 5),
    ("knapsack", "cave+", CavePlus(), 5),
]


def main(only):
    gurobipy.setParam("OutputFlag", 0)
    known = tasks()
    table = Table(title=f"{EPOCHS} epochs, {N_TRAIN} samples, batches of {BATCH}: labels and training")
    for heading in ("problem", "method", "ours", "PyEPO", "ratio", "target", "met", "regret ours", "regret PyEPO"):
        table.add_column(heading, justify="left" if heading in ("problem", "method") else "right")
    races = [race for race in RACES if not only or race[0] in only or race[1] in only]
    for problem, method, loss, target in track(races, "Racing", console=Console(stderr=True)):
        task = known[problem]
        train_ours(task, loss, 1), train_theirs(task, method, 1)
        theirs, their_regret = train_theirs(task, method, EPOCHS)
        runs = [train_ours(task, loss, EPOCHS) for _ in range(3)]
        ours, our_regret = np.median([seconds for seconds, _ in runs]), runs[0][1]
        ratio = theirs / ours
        table.add_row(
            problem,
            method,
            f"{ours:.3f} s",
            f"{theirs:.2f} s",
            f"{ratio:.0f}",
            f"≥ {target}",
            "yes" if ratio >= target and abs(our_regret - their_regret) <= 0.5 else "NO",
            f"{our_regret:.2f} %",
            f"{their_regret:.2f} %",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
