"""Regret beside known costs: shortest paths whose travel times are predicted and whose tolls are known.

Run: `python examples/known_costs.py` (about a minute). It prints the table of `docs/known_costs.md`: mean regret in
percent over the seeds, on a 5×5 grid with 400 training rows and tolls as large as the mean cost.
"""

import sys

import numpy as np
from rich.console import Console
from rich.table import Table

from decidewise import GeneralizedLinear, WiseRegressor, normalized_regret
from decidewise.data import Dataset, make_shortest_path
from decidewise.kit.scaling import norms
from decidewise.problems import KnownCosts, ShortestPath

DEGREES = (1, 4, 8)
COLUMNS = ("least squares", "WISE plus tolls", "weight ‖u + b‖", "lifted", "lifted, iterated", "true mean")


def main(n_seeds: int = 8, n_test: int = 2_000) -> None:
    table = Table("tolls", "degree", *COLUMNS)
    for by_row in (False, True):
        for degree in DEGREES:
            found = [regrets(degree, seed, n_test, by_row=by_row) for seed in range(n_seeds)]
            means = np.mean([list(row.values()) for row in found], axis=0)
            table.add_row("by row" if by_row else "fixed", str(degree), *(f"{mean:.2f}" for mean in means))
    Console().print(table)


def regrets(degree: int, seed: int, n_test: int, *, by_row: bool) -> dict[str, float]:
    data = make_shortest_path(400 + n_test, degree=degree, seed=seed)
    shape = data.costs.shape if by_row else data.costs.shape[1:]
    tolls = np.random.default_rng(seed).uniform(0, 2 * data.costs.mean(), size=shape)
    everyone = Dataset(data.X, data.costs, KnownCosts(data.problem, tolls), data.mean_costs)
    train, test = everyone.split(400)
    train_tolls, test_tolls = (tolls[:400], tolls[400:]) if by_row else (tolls, tolls)

    def regret(model: object) -> float:
        return normalized_regret(test.problem, model.fit(train.X, train.costs).predict(test.X), test.costs)

    lifted = lifted_wise(train, train_tolls).predict(test.X)
    size = np.maximum(lifted[:, -1:], 1e-9)  # of one toll, on the scale of the predicted direction
    return {
        "least squares": regret(GeneralizedLinear()),
        "WISE plus tolls": regret(WiseRegressor()),
        "weight ‖u + b‖": total_regret(test, test_tolls, lifted[:, :-1] + size * test_tolls),
        "lifted": regret(WiseRegressor(lifted=True)),
        "lifted, iterated": regret(WiseRegressor(scale="iterated", lifted=True)),
        "true mean": normalized_regret(test.problem, test.mean_costs, test.costs),
    }


def lifted_wise(train: Dataset, tolls: np.ndarray) -> GeneralizedLinear:
    """Fit targets `(u, 1)/‖c‖` with weights `‖c‖`, for costs `c` of travel times `u` and tolls `b`."""
    sizes = norms(train.costs + tolls)
    targets = np.column_stack([train.costs, np.ones(len(sizes))]) / sizes[:, None]
    return GeneralizedLinear().fit(train.X, targets, sizes)


def total_regret(test: Dataset, tolls: np.ndarray, prediction: np.ndarray) -> float:
    """Return the regret of decisions for a prediction of travel times and tolls together, at any scale."""
    return normalized_regret(ShortestPath(5, 5), prediction, test.costs + tolls)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
