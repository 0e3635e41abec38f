"""Train until the validation regret stops falling, as the authors of LAVA do, with PyEPO's losses and with ours.

Run: `python speed/lava_protocol.py` with the `peers` extra installed. The protocol is that of Berden et al.,
"Solver-Free Decision-Focused Learning for Linear Optimization Problems" (2025): shortest paths on a 5×5 grid, degree 8,
no noise, 500 rows to train, 500 to validate and 1,000 to test; a linear network, Adam at a rate of 0.01, batches of 32.
The regret of the validation rows is taken after every tenth epoch; training ends when it has not fallen by 1 % three
times in a row, and the best network is kept. Two draws in place of their five.

Both sides run in the same loop of torch, on one thread, from the same start and with the same batches; only the loss
differs, and with it the solver: Gurobi for PyEPO, ours for ours. Seconds are those of the labels and of the steps up to
the best network; taking regrets does not count. PyEPO has no LAVA, so ours is set beside its SPO+. The exact WISE fit
and the choice, which sees the training rows alone, need no loop.
"""

import copy
from functools import partial
from statistics import mean
from time import perf_counter

import gurobipy
import numpy as np
import pyepo
import torch
from pyepo.model.grb import shortestPathModel

from benchmark import Bench, Measured, parser
from decidewise.data import make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.frontends.torch import loss_module
from decidewise.models import WiseRegressor, WiseRegressorCV

ROWS = {"train": 500, "validate": 500, "test": 1_000}
BATCH, RATE, EVERY, PATIENCE, LEAST_GAIN = 32, 0.01, 10, 3, 0.01
SEEDS, MOST_EPOCHS = (0, 1), 10_000


class Ours:
    """One of our losses, with its labels."""

    def __init__(self, name, data):
        self.loss = loss_module(name, data.problem, **({"n_samples": 1} if name == "pfy" else {}))
        self.costs = torch.tensor(data.costs)
        self.target = self.loss.prepare(self.costs)

    def value(self, prediction, rows):
        """Return the mean loss of some rows."""
        return self.loss(prediction, self.costs[rows], self.target[rows])


class Theirs:
    """One of PyEPO's losses, with its labels."""

    def __init__(self, name, data):
        self.name, model = name, shortestPathModel((5, 5))
        known = {
            "spo+": pyepo.func.SPOPlus,
            "pfy": pyepo.func.perturbedFenchelYoung,
            "cave+": pyepo.func.coneAlignedCosine,
        }
        settings = {"pfy": {"n_samples": 1, "sigma": 1.0}, "cave+": {"max_iter": 3}}.get(name, {})
        self.loss = known[name](model, **settings)
        if name == "cave+":
            dataset = pyepo.data.dataset.optDatasetConstrs(model, data.X, data.costs)
            self.rows = [dataset[row] for row in range(len(dataset))]
            return
        dataset = pyepo.data.dataset.optDataset(model, data.X, data.costs)
        self.parts = [torch.as_tensor(part).double() for part in (dataset.costs, dataset.sols, dataset.objs)]

    def value(self, prediction, rows):
        """Return the mean loss of some rows."""
        if self.name == "cave+":
            batch = pyepo.data.dataset.collate_tight_constraints([self.rows[row] for row in rows])
            return self.loss(prediction, batch[4])
        costs, decisions, values = (part[rows] for part in self.parts)
        return (
            self.loss(prediction, costs, decisions, values) if self.name == "spo+" else self.loss(prediction, decisions)
        )


def parts_of(seed):
    """Return the rows to train, to validate and to test."""
    data = make_shortest_path(sum(ROWS.values()), degree=8, noise=0.0, seed=seed)
    train, rest = data.split(ROWS["train"])
    return train, *rest.split(ROWS["validate"])


def regret(network, data):
    """Return the regret of a network, in percent."""
    with torch.no_grad():
        prediction = network(torch.tensor(data.X)).numpy()
    return normalized_regret(data.problem, prediction, data.costs)


def train(side, name, seed, most_epochs):
    """Return the seconds up to the best network, its test regret, and the epochs of the whole training."""
    data, validation, test = parts_of(seed)
    torch.manual_seed(seed)
    network = torch.nn.Linear(data.X.shape[1], data.costs.shape[1], dtype=torch.float64)
    optimizer, order = torch.optim.Adam(network.parameters(), lr=RATE), np.random.default_rng(seed)
    features = torch.tensor(data.X)
    begin = perf_counter()
    loss = side(name, data)
    seconds = perf_counter() - begin
    best, level, waited = (np.inf, network, seconds), np.inf, 0
    for epoch in range(most_epochs):
        begin = perf_counter()
        for rows in np.array_split(order.permutation(len(features)), -(-len(features) // BATCH)):
            value = loss.value(network(features[rows]), torch.as_tensor(rows))
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        seconds += perf_counter() - begin
        if epoch % EVERY and epoch + 1 < most_epochs:
            continue
        found = regret(network, validation)
        if found < best[0]:
            best = found, copy.deepcopy(network), seconds
        waited = 0 if found < (1 - LEAST_GAIN) * level else waited + 1
        level = found if waited == 0 else level
        if waited >= PATIENCE:
            break
    return best[2], regret(best[1], test), epoch + 1


def fit_all(make, draws):
    """Return a model for each draw, fitted on its training rows."""
    return [make(data.problem).fit(data.X, data.costs) for data, _, _ in draws]


def main(arguments):
    gurobipy.setParam("OutputFlag", 0)
    torch.set_num_threads(1)
    seeds, most_epochs = (SEEDS[:1], 21) if arguments.quick else (SEEDS, MOST_EPOCHS)
    title = "Training by the protocol of LAVA's authors, against PyEPO with Gurobi"
    with Bench(__file__, title, arguments.quick, clock="wall", warm_up="one epoch of each side") as bench:
        bench.group = f"Until the validation regret stops falling, means over {len(seeds)} draws"

        def mean_of(side, name):
            train(side, name, seeds[0], 1)
            results = [train(side, name, seed, most_epochs) for seed in seeds]
            seconds, regrets, epochs = (mean(column) for column in zip(*results, strict=True))
            return Measured(seconds, "wall", len(seeds)), regrets, epochs

        peers = {}
        for name in ("spo+", "pfy", "cave+"):
            peers[name] = theirs, their_regret, their_epochs = mean_of(Theirs, name)
            ours, our_regret, epochs = mean_of(Ours, name)
            same = f"regret {our_regret:.2f} %, theirs {their_regret:.2f} %; {epochs:.0f} and {their_epochs:.0f} epochs"
            bench.claim(name, ours, theirs, peer="PyEPO", at_least=1.0, same=same)
        theirs, their_regret, _ = peers["spo+"]
        ours, our_regret, epochs = mean_of(Ours, "lava")
        same = f"regret {our_regret:.2f} %, theirs {their_regret:.2f} %; {epochs:.0f} epochs"
        bench.claim("lava", ours, theirs, peer="PyEPO's spo+", same=same)
        draws = [parts_of(seed) for seed in seeds]
        makers = {
            "WISE, exact": lambda problem: WiseRegressor(),
            "the choice": lambda p: WiseRegressorCV(p, random_state=0),
        }
        for name, make in makers.items():
            (ours,) = bench.time(partial(fit_all, make, draws), rounds=1 if name == "the choice" else None)
            regrets = [
                normalized_regret(test.problem, model.predict(test.X), test.costs)
                for model, (_, _, test) in zip(ours.result, draws, strict=True)
            ]
            same = f"regret {mean(regrets):.2f} %, theirs {their_regret:.2f} %"
            bench.claim(name, ours.per(len(seeds)), theirs, peer="PyEPO's spo+", same=same)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
