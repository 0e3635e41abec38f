"""Least squares, WISE and WISE with an iterated scale, on real and on synthetic data.

It prints the tables of `docs/notes/scales.md`: normalised test regret in percent. Day-ahead prices of Nord Pool and
Germany with two published forecasts (`epf_NP.csv` and `epf_DE.csv` of jeslago/epftoolbox, with columns time, price,
dnn_forecast, lear_forecast) are read from the folder `--data`, by default `../shared/data`; without them, the tables
are of synthetic data alone. Days are split by time. No setting is chosen on test rows, and the seeds are used nowhere
else.

    python examples/scales.py [--trials 8] [--n-test 1000] [--data FOLDER]

It takes a minute or two.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from decidewise import WiseRegressor, normalized_regret
from decidewise.data import Dataset, make_knapsack, make_portfolio, make_shortest_path, make_storage
from decidewise.problems import Storage

FIRST_SEED = 100
DATA = Path(__file__).parents[2] / "shared" / "data"
LINEAR = {
    "least squares": WiseRegressor(exponent=0),
    "WISE": WiseRegressor(),
    "iterated": WiseRegressor(scale="iterated"),
}
BATTERY = Storage(24, power=1.0, energy=4.0, efficiency=0.9)
#: The generators of the paper's three problems, with the instances of its tables; training rows and degrees.
MADE: list[tuple[str, Callable[..., Dataset], int, tuple[int, ...]]] = [
    ("shortest path", make_shortest_path, 200, (1, 4, 6, 8)),
    ("shortest path", make_shortest_path, 1600, (4, 6, 8)),
    ("knapsack", partial(make_knapsack, instance_seed=42), 800, (1, 2, 4)),
    ("portfolio", partial(make_portfolio, instance_seed=42, factor_noise=False), 200, (1, 3, 7)),
]


def main(trials: int = 8, n_test: int = 1_000, data: Path = DATA) -> None:
    markets = {name: data / f"epf_{name}.csv" for name in ("NP", "DE") if (data / f"epf_{name}.csv").exists()}
    console = Console(width=120)
    with warnings.catch_warnings(), threadpool_limits(1):  # small matrices: threads would only wait for each other
        warnings.simplefilter("ignore", ConvergenceWarning)
        console.print(linear_models(markets, trials, n_test))
        console.print(any_learner(markets, trials, n_test))


def linear_models(markets: dict[str, Path], trials: int, n_test: int) -> Table:
    table = Table("linear models", *LINEAR)
    if markets:
        found = [regrets(LINEAR.values(), *forecast_data(path)) for path in markets.values()]
        table.add_row(f"storage, {' / '.join(markets)}, forecasts as shared features", *joined(found))
    for name, make, n, degrees in MADE:
        found = [mean_regrets(LINEAR.values(), partial(make, degree=degree), n, trials, n_test) for degree in degrees]
        table.add_row(f"{name} n={n}, degree {' / '.join(map(str, degrees))}", *joined(found))
    return table


def any_learner(markets: dict[str, Path], trials: int, n_test: int) -> Table:
    names = [*markets, "made", "made with spikes"]
    table = Table(f"battery, {' / '.join(names)}", "plain", "WISE unit", "WISE mean", "WISE iterated")
    for learner in (Ridge(1000.0), Lasso(0.1), MLPRegressor(hidden_layer_sizes=(50,), random_state=0)):
        scaled = make_pipeline(StandardScaler(), learner)
        models = [WiseRegressor(scaled, exponent=0)]
        models += [WiseRegressor(scaled, scale=scale) for scale in ("unit", "mean", "iterated")]
        found = [regrets(models, *lagged_data(path)) for path in markets.values()]
        for spike_rate in (0.0, 0.01):
            make = partial(make_storage, degree=3, spike_rate=spike_rate)
            found.append(mean_regrets(models, make, 600, trials, n_test))
        table.add_row(type(learner).__name__, *joined(found))
    return table


def mean_regrets(models: Any, make: Callable[..., Dataset], n: int, trials: int, n_test: int) -> list[float]:
    """Return the mean regret of each model over the trials."""
    seeds = range(FIRST_SEED, FIRST_SEED + trials)
    return list(np.mean([regrets(models, *make(n + n_test, seed=seed).split(n)) for seed in seeds], axis=0))


def regrets(models: Any, train: Dataset, test: Dataset) -> list[float]:
    return [
        normalized_regret(test.problem, model.fit(train.X, train.costs).predict(test.X), test.costs) for model in models
    ]


def joined(found: list[list[float]]) -> list[str]:
    """Return one cell for each model, with its regrets in all settings."""
    return [" / ".join(f"{regret:.3g}" for regret in of_model) for of_model in zip(*found, strict=True)]


def read_market(path: Path) -> np.ndarray:
    """Return each price with its two forecasts, (days, 24, 3)."""
    with path.open() as lines:
        names = ("price", "dnn_forecast", "lear_forecast")
        rows = [[float(row[name] or "nan") for name in names] for row in csv.DictReader(lines)]
    days = np.array(rows).reshape(-1, 24, 3)
    return days[np.isfinite(days).all(axis=(1, 2))]


def forecast_data(path: Path) -> tuple[Dataset, Dataset]:
    """Return the two halves of the days; features are the two forecasts of each hour, for one model of all hours."""
    days = read_market(path)
    return Dataset(days[:, :, 1:], days[:, :, 0], BATTERY).split(len(days) // 2)


def lagged_data(path: Path) -> tuple[Dataset, Dataset]:
    """Return the two halves of the days; features are the prices of the two days before, and the mean of the last."""
    prices = read_market(path)[:, :, 0]
    X = np.column_stack([prices[1:-1], prices[:-2], prices[1:-1].mean(axis=1)])
    return Dataset(X, prices[2:], BATTERY).split(len(X) // 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare scales of WISE.")
    parser.add_argument("--trials", type=int, default=8, help="draws of synthetic data (default 8)")
    parser.add_argument("--n-test", type=int, default=1_000, help="test rows of each draw (default 1,000)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the day-ahead prices")
    arguments = parser.parse_args()
    main(arguments.trials, arguments.n_test, arguments.data)
