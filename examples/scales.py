"""Least squares, WISE and WISE with an iterated scale, on real and on made data.

Run: `python examples/scales.py` (some minutes). It prints the tables of `docs/bregman.md`: normalised test regret in
percent. Day-ahead prices of Nord Pool and Germany with two published forecasts (`epf_NP.csv` and `epf_DE.csv` of
jeslago/epftoolbox, with columns time, price, dnn_forecast, lear_forecast) are read from the folder `--data`, by default
`../shared/data`; without them, the tables are of made data alone. Days are split by time. No setting is
chosen on test rows.
"""

import argparse
import csv
import warnings
from collections.abc import Callable
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

from decidewise import WiseRegressor, normalized_regret
from decidewise.data import Dataset, make_knapsack, make_portfolio, make_shortest_path, make_storage
from decidewise.measure import transform
from decidewise.problems import Storage
from decidewise.scaling import norms

MARKETS = ("NP", "DE")
LINEAR = {
    "least squares": WiseRegressor(exponent=0),
    "WISE": WiseRegressor(),
    "iterated": WiseRegressor(scale="iterated"),
}
BATTERY = Storage(24, power=1.0, energy=4.0, efficiency=0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--n-test", type=int, default=1_000)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    arguments = parser.parse_args()
    markets = [market for market in MARKETS if (arguments.data / f"epf_{market}.csv").exists()]
    linear = Table("linear models", *LINEAR)
    for market in markets:
        row = shared_regrets(*read_market(arguments.data / f"epf_{market}.csv"))
        linear.add_row(f"storage, {market}, forecasts as shared features", *(f"{regret:.2f}" for regret in row))
    for name, make, n, degrees in made_data():
        found = np.array([[regrets(make, n, degree, arguments) for degree in degrees]])[0]
        cells = (" / ".join(f"{regret:.3g}" for regret in column) for column in found.T)
        linear.add_row(f"{name} n={n}, degree {' / '.join(map(str, degrees))}", *cells)
    Console().print(linear)
    learners = Table("battery, any learner", "plain", "WISE unit", "WISE mean", "WISE iterated")
    for name, data in battery_data(arguments.data, markets).items():
        for learner in learners_of_the_battery():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                row = learner_regrets(learner, *data)
            learners.add_row(f"{name}: {type(learner[-1]).__name__}", *(f"{regret:.1f}" for regret in row))
    Console().print(learners)


def made_data() -> list[tuple[str, Callable[..., Dataset], int, tuple[int, ...]]]:
    return [
        ("shortest path", make_shortest_path, 200, (1, 4, 6, 8)),
        ("shortest path", make_shortest_path, 1600, (4, 6, 8)),
        ("knapsack", make_knapsack, 800, (1, 2, 4)),
        ("portfolio", make_portfolio, 200, (1, 3, 7)),
    ]


def regrets(make: Callable[..., Dataset], n: int, degree: int, arguments: argparse.Namespace) -> list[float]:
    """Return the mean regret of each linear model over the trials."""
    found = []
    for seed in range(arguments.trials):
        train, test = make(n + arguments.n_test, degree=degree, seed=seed).split(n)
        found.append([regret(model, train, test) for model in LINEAR.values()])
    return list(np.mean(found, axis=0))


def regret(model: Any, train: Dataset, test: Dataset) -> float:
    return normalized_regret(test.problem, model.fit(train.X, train.costs).predict(test.X), test.costs)


def read_market(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return two forecasts (days, 24, 2) of each price, and the prices (days, 24)."""
    with path.open() as lines:
        names = ("price", "dnn_forecast", "lear_forecast")
        rows = [[float(row[name] or "nan") for name in names] for row in csv.DictReader(lines)]
    days = np.array(rows).reshape(-1, 24, 3)
    days = days[np.isfinite(days).all(axis=(1, 2))]
    return days[:, :, 1:], days[:, :, 0]


def shared_regrets(forecasts: np.ndarray, prices: np.ndarray) -> list[float]:
    """Return the regrets of one linear model for all hours, trained on the first half of the days."""
    half = len(prices) // 2
    test = forecasts[half:]
    plain = shared_fit(forecasts[:half], prices[:half], np.ones(half))
    sizes, (weights, targets) = norms(prices[:half]), transform(prices[:half])
    predictions = [plain(test), shared_fit(forecasts[:half], targets, weights)(test)]
    model = plain
    for _ in range(6):
        scale = norms(model(forecasts[:half]))
        scale = np.maximum(scale * sizes.mean() / scale.mean(), 0.1 * sizes.mean())
        weights, targets = transform(prices[:half], scale=scale)
        model = shared_fit(forecasts[:half], targets, weights)
    return [normalized_regret(BATTERY, prediction, prices[half:]) for prediction in (*predictions, model(test))]


def shared_fit(features: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Fit one weighted least squares on the long table of all days and hours, and return its predictor."""
    long = np.column_stack([features.reshape(-1, features.shape[2]), np.ones(targets.size)])
    root = np.sqrt(weights).repeat(targets.shape[1])
    coefficients, *_ = np.linalg.lstsq(long * root[:, None], targets.ravel() * root, rcond=None)
    return lambda some: some @ coefficients[:-1] + coefficients[-1]


def battery_data(folder: Path, markets: list[str]) -> dict[str, tuple[Dataset, Dataset]]:
    """Return training and test days, whose features are the prices of the two days before."""
    made = make_storage(1_000, degree=3, seed=0, spike_rate=0.0).split(600)
    result = {"made": made}
    for market in markets:
        _, prices = read_market(folder / f"epf_{market}.csv")
        X = np.column_stack([prices[1:-1], prices[:-2], prices[1:-1].mean(axis=1)])
        result[market] = Dataset(X, prices[2:], BATTERY).split(len(X) // 2)
    return result


def learners_of_the_battery() -> list[Any]:
    return [
        make_pipeline(StandardScaler(), learner)
        for learner in (Ridge(1000.0), Lasso(0.1), MLPRegressor(hidden_layer_sizes=(50,), random_state=0))
    ]


def learner_regrets(learner: Any, train: Dataset, test: Dataset) -> list[float]:
    models = [WiseRegressor(learner, exponent=0)]
    models += [WiseRegressor(learner, scale=scale) for scale in ("unit", "mean", "iterated")]
    return [regret(model, train, test) for model in models]


if __name__ == "__main__":
    main()
