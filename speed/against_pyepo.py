"""Train the paper's linear predictor with our trainer and with PyEPO and Gurobi: seconds, ratio and final regret.

Run: `make race`, or `python speed/against_pyepo.py [problem or method ...]` with the `peers` extra installed. Both
sides run 100 epochs of Adam over 200 samples in batches of 32, from the same least-squares start, after a warm-up of
one epoch; the times include the labels. PyEPO solves with Gurobi; our solvers are compiled and exact, and need no
licence. PyEPO has no LAVA, so ours is set beside its SPO+.

The second table has the time to a given regret: how long each side trains, labels included, until its regret on 1,000
other rows is at most that of PyEPO after all epochs plus 0.1 points. PyEPO's regrets are taken after every epoch, ours
after 1, 2, 5, 10, 20, 50 and 100, each in a training of its own, and that of the exact WISE fit, which has no epochs.
Taking regrets does not count.
"""

import sys
from functools import partial
from time import perf_counter
from typing import NamedTuple

import gurobipy
import pyepo
import torch
from pyepo.model.grb import knapsackModel, portfolioModel, shortestPathModel
from sklearn.linear_model import LinearRegression
from torch.utils.data import DataLoader

from benchmark import Bench, Measured, parser
from decidewise.data import make_knapsack, make_portfolio, make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.losses import CavePlus, Lava, Pfy, SpoPlus
from decidewise.models import DecisionRegressor, WiseRegressor

N_TRAIN, N_TEST, EPOCHS, BATCH = 200, 1_000, 100, 32
STEPS = (1, 2, 5, 10, 20, 50, 100)
WITHIN = 0.5


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


def regret_of(task, prediction):
    """Return the regret on the test rows of what a function predicts from their features."""
    _, test = task.data.split(N_TRAIN)
    return normalized_regret(test.problem, prediction(test.X), test.costs)


def train_ours(task, loss, epochs):
    train, _ = task.data.split(N_TRAIN)
    return DecisionRegressor(
        train.problem,
        loss,
        protocol="paper",  # as PyEPO trains
        init="mse",
        epochs=epochs,
        batch_size=BATCH,
        learning_rate=task.learning_rate,
        random_state=0,
    ).fit(train.X, train.costs)


def train_theirs(task, method, epochs):
    """Return the seconds up to the end of each epoch, and the regrets there."""
    train, _ = task.data.split(N_TRAIN)
    torch.manual_seed(0)
    start, aside, reached = perf_counter(), 0.0, []
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
        pause = perf_counter()
        with torch.no_grad():
            regret = regret_of(task, lambda X: network(torch.tensor(X).float()).numpy())
        aside += perf_counter() - pause
        reached.append((perf_counter() - start - aside, regret))
    return reached


RACES = [
    ("shortest path", "spo+", SpoPlus(), 40),
    ("knapsack", "spo+", SpoPlus(), 100),
    ("portfolio", "spo+", SpoPlus(), 20),
    ("shortest path", "pfy", Pfy(n_samples=3), 40),
    ("knapsack", "pfy", Pfy(n_samples=3), 100),
    ("portfolio", "pfy", Pfy(n_samples=3), 20),
    ("shortest path", "cave+", CavePlus(), 5),
    ("knapsack", "cave+", CavePlus(relaxed=False), 5),
]


def race(bench, task, name, method, loss, target, epochs):
    """Train both sides; return PyEPO's seconds and regrets after every epoch, and our training."""
    train_ours(task, loss, 1), train_theirs(task, method, 1)
    reached = train_theirs(task, method, epochs)
    (ours,) = bench.time(partial(train_ours, task, loss, epochs), rounds=3, warm=False)
    regrets = regret_of(task, ours.result.predict), reached[-1][1]
    same = f"regret {regrets[0]:.2f} %, theirs {regrets[1]:.2f} %"
    theirs, is_same = Measured(reached[-1][0], "wall"), abs(regrets[0] - regrets[1]) <= WITHIN
    bench.claim(f"{method}, {name}", ours, theirs, peer="PyEPO", at_least=target, same=same, is_same=is_same)
    return reached


def beside(bench, task, name, reached, epochs):
    """Set LAVA, which PyEPO does not have, beside PyEPO's SPO+."""
    train_ours(task, Lava(), 1)
    (ours,) = bench.time(partial(train_ours, task, Lava(), epochs), rounds=3, warm=False)
    seconds, regret = reached[-1]
    same = f"regret {regret_of(task, ours.result.predict):.2f} %, theirs {regret:.2f} %"
    bench.claim(f"lava, {name}", ours, Measured(seconds, "wall"), peer="PyEPO's spo+", same=same)


def to_regret(bench, task, name, method, loss, reached, epochs):
    """State how long each side trains until its regret is that of PyEPO's end, plus 0.1 points."""
    level = reached[-1][1] + 0.1
    theirs = Measured(next(seconds for seconds, regret in reached if regret <= level), "wall")
    trainings = {f"{method}, epochs: {n}": partial(train_ours, task, loss, n) for n in STEPS if n <= epochs}
    train, _ = task.data.split(N_TRAIN)
    exact = {"WISE, exact": lambda: WiseRegressor().fit(train.X, train.costs)} if method == "spo+" else {}
    for works in (trainings, exact):
        for what, work in works.items():
            (ours,) = bench.time(work, rounds=3, warm=False)
            regret = regret_of(task, ours.result.predict)
            if regret <= level or what == list(works)[-1]:
                same = f"to {level:.2f} %; ours {regret:.2f} %"
                is_same = regret <= level
                bench.claim(f"{name}, {what}", ours, theirs, peer=f"PyEPO's {method}", same=same, is_same=is_same)
                break


def main(arguments):
    gurobipy.setParam("OutputFlag", 0)
    known, only = tasks(), arguments.only
    epochs = 5 if arguments.quick else EPOCHS
    races = [race for race in RACES if not only or race[0] in only or race[1] in only]
    if not races:
        sys.exit(f"there is no such race; problems are {', '.join(known)}, methods spo+, pfy and cave+.")
    title = "Training, against PyEPO with Gurobi"
    with Bench(__file__, title, arguments.quick, clock="wall", warm_up="one epoch of each side") as bench:
        all_reached = []
        bench.group = f"{epochs} epochs, {N_TRAIN} samples, batches of {BATCH}: labels and training"
        for name, method, loss, target in races:
            all_reached.append(race(bench, known[name], name, method, loss, target, epochs))
            if method == "spo+" and name != "portfolio":  # whose region has no vertices
                beside(bench, known[name], name, all_reached[-1], epochs)
        bench.group = "Time to a given regret"
        for (name, method, loss, _), reached in zip(races, all_reached, strict=True):
            to_regret(bench, known[name], name, method, loss, reached, epochs)


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("only", nargs="*", metavar="problem or method", help="only these races; by default all")
    main(options.parse_args())
