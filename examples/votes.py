"""How the votes of the choice should be counted when SPO+ is among its candidates, and what corrected models gain.

`WiseRegressorCV` averages all candidates that cannot be told from the best: half of the weight is one vote for each of
them, and half is fitted on the predictions of held-out rows. This script counts otherwise: votes alone, one vote for
each family of models, more votes for candidates nearer to the best, the best alone, or weights that SPO+ trains on the
predictions of held-out rows. It also leaves out least squares corrected by trees. The data are made: the paper's
problems, batteries, and markets in the order of time with a forecast and yesterday's costs among the features of each
item, as real tasks have them. What is printed is the regret on new rows, in percent above or below that of the default,
averaged over all data sets.

    python examples/votes.py [--seeds 6]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.signal import lfilter
from sklearn.base import clone

from decidewise import DecisionRegressor, WiseRegressorCV, normalized_regret
from decidewise.data import Dataset, make_knapsack, make_shortest_path, make_storage
from decidewise.kit.progress import tracked
from decidewise.kit.scaling import unit_rows
from decidewise.models import AveragedRegressor, TimeFolds, default_candidates
from decidewise.models.selection.null_models import NullModels
from decidewise.models.selection.weights import null_share
from decidewise.problems import Knapsack, Problem, Storage, TopK

FIRST_SEED, N_TRAIN, N_TEST = 9_400, 300, 600
CORRECTED = "least squares + trees"
RULES = ("equal votes", "one vote per family", "nearer ones count more", "the best alone", "trained with SPO+")
COLUMNS = (*RULES, f"without {CORRECTED}")
FOLDS = TimeFolds(4)
MEAN = "training mean"
#: The family of a candidate by a word in its name, the first that fits.
FAMILIES = ("spo+", "smooth", "quadratic", "trees", "gamma", "poisson", "log", "wise", "least squares")


def market(n: int, seed: int, problem: Problem) -> Dataset:
    """Draw days of prices: a level and a shape that persist, noise of a size that differs by seed, and a forecast."""
    rng, d, earlier = np.random.default_rng(seed), problem.n_costs, 8
    noise, skill, bend = rng.uniform(0.3, 0.9), rng.uniform(0.2, 0.95), rng.choice([0.0, 0.0, 0.2, 0.4])

    def persistent(coefficient: float, width: int) -> np.ndarray:
        shocks = np.sqrt(1 - coefficient**2) * rng.normal(size=(n + earlier, width))
        return lfilter([1.0], [1.0, -coefficient], shocks, axis=0)

    time = 2 * np.pi * np.arange(d) / d
    waves = np.stack([np.cos(time), np.sin(time), np.cos(2 * time), np.sin(2 * time)])
    known = persistent(0.7, 4) @ (waves * rng.uniform(0.1, 0.4, (4, 1)))
    known /= known.std()
    level = 40 * np.exp(0.35 * persistent(0.9, 1))
    shape = 1.4 + 0.35 * np.sin(time - 2) + 0.3 * (known + bend * (known**3 - 2 * known))  # no line has this bend
    means, errors = level * np.maximum(shape, 0.05), noise * persistent(0.6, d)
    costs = np.maximum(means * (1 + errors), 8)
    forecast = means * (1 + 0.5 * skill * errors) * np.exp(0.5 * (1 - skill) * rng.normal(size=costs.shape))
    yesterday, last_week = (np.roll(costs, lag, axis=0) for lag in (1, 7))
    wide = np.ones_like(costs)
    features = [forecast, yesterday, known, last_week, np.sin(time) * wide, np.cos(time) * wide, level * wide]
    return Dataset(np.stack(features, axis=2)[earlier:], costs[earlier:], problem)


WEIGHTS = np.random.default_rng(5).choice([3.0, 5.0, 7.0], (1, 48))
MARKETS = {
    "battery": Storage(24, 1.0, 4.0, efficiency=0.9),
    "cheapest 5 of 24": TopK(24, 5, sense="min"),
    "knapsack of 48": Knapsack(WEIGHTS, [60.0]),
    "best 3 of 7": TopK(7, 3, sense="max"),
}
MADE: dict[str, Callable[..., Dataset]] = {
    "shortest path": make_shortest_path,
    "knapsack": make_knapsack,
    "storage": make_storage,
}
DATA: dict[str, Callable[[int, int], Dataset]] = {
    **{f"market, {name}": partial(market, problem=problem) for name, problem in MARKETS.items()},
    **{
        f"{name}, degree {degree}": lambda n, seed, make=make, degree=degree: make(n, degree=degree, seed=seed)
        for name, make in MADE.items()
        for degree in (1, 4)
    },
}


def trained(choice: WiseRegressorCV, train: Dataset, start: np.ndarray) -> np.ndarray:
    """Return the weights that SPO+ finds for members with a start: their held-out predictions are features of items."""
    folds = list(FOLDS.split(train.X))
    held = np.concatenate([late for _, late in folds])
    size = np.linalg.norm(train.costs[held], axis=1).mean()
    predicted, places = [], np.flatnonzero(start)
    for place in places:
        _, model = choice.best_estimator_.estimators[place]
        parts = [clone(model).fit(train.X[early], train.costs[early]).predict(train.X[late]) for early, late in folds]
        predicted.append(size * unit_rows(np.concatenate(parts)))
    model = DecisionRegressor(train.problem, "spo+", init=np.append(0.0, start[places]), epochs=30, random_state=0)
    weights = np.zeros(len(start))
    weights[places] = np.maximum(model.fit(np.stack(predicted, axis=2), train.costs[held]).coef_, 0)
    return weights if weights.any() else start


def votes(choice: WiseRegressorCV, rule: str, train: Dataset) -> np.ndarray:
    """Return other weights for the members of a choice; the share of the training mean stays as it is."""
    names, results = choice.members_, choice.cv_results_
    places = [list(results["candidate"]).index(name) for name in names]
    gaps, errors = (results[key][places] for key in ("difference", "difference_standard_error"))
    close = gaps <= errors
    if rule == "equal votes":
        found = close.astype(float)
    elif rule == "one vote per family":
        families = [next((family for family in FAMILIES if family in name), name) for name in names]
        sizes = Counter(family for family, is_close in zip(families, close, strict=True) if is_close)
        found = np.array([is_close and 1 / sizes[family] for family, is_close in zip(families, close, strict=True)])
    elif rule == "nearer ones count more":
        found = close * (1 - np.divide(gaps, errors, out=np.zeros_like(gaps), where=errors > 0))
    elif rule == "trained with SPO+":
        found = trained(choice, train, close / close.sum())
    else:
        found = np.array([name == choice.best_name_ for name in names], dtype=float)
    _, share = null_share(results, NullModels((MEAN,), (MEAN,)))
    return (1 - share) * found / found.sum() + share * np.array([name == MEAN for name in names])


def regrets(data: Dataset, *, has_forecast: bool) -> list[float]:
    """Return the regret on new rows of the default, of each rule, and without corrected models."""
    train, test = data[:N_TRAIN], data[N_TRAIN:]
    forecast = {"forecast": 0, "yesterday": 1} if has_forecast else None
    candidates = default_candidates(train.X, train.costs, forecast=forecast)

    def chosen() -> WiseRegressorCV:
        choice = WiseRegressorCV(train.problem, candidates, cv=FOLDS, train_solves=500_000, random_state=0)
        return choice.fit(train.X, train.costs)

    def regret(model: Any) -> float:
        return normalized_regret(test.problem, model.predict(test.X), test.costs)

    choice = chosen()
    found, average = [regret(choice)], choice.best_estimator_
    for rule in RULES:
        if isinstance(average, AveragedRegressor):
            average.set_params(weights=votes(choice, rule, train))
        found.append(regret(average))
    candidates.pop(CORRECTED, None)
    return [*found, regret(chosen())]


def main(n_seeds: int = 6, names: tuple[str, ...] = tuple(DATA)) -> None:
    found: dict[str, list[list[float]]] = {name: [] for name in names}
    for name, seed in tracked([(name, seed) for seed in range(n_seeds) for name in names], "Choosing"):
        data = DATA[name](N_TRAIN + N_TEST, FIRST_SEED + seed)
        found[name].append(regrets(data, has_forecast=name.startswith("market")))
    table = Table("data", "default, regret %", *COLUMNS)
    for name, rows in found.items():
        mean = np.mean(rows, axis=0)
        table.add_row(name, f"{mean[0]:.2f}", *(f"{value:.2f}" for value in mean[1:]))
    Console(width=130).print(table)
    every = np.array([row for rows in found.values() for row in rows])
    changes = 100 * (every[:, 1:] / every[:, :1] - 1)
    for rule, change in zip(COLUMNS, changes.T, strict=True):
        error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.nan
        lower, higher = (change < 0).sum(), (change > 0).sum()
        print(f"{rule}: {change.mean():+.2f} ± {error:.2f} % of the default; lower on {lower}, higher on {higher}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count the votes of the choice in other ways, on synthetic data.")
    parser.add_argument("--seeds", type=int, default=6, help="data sets of each kind (default 6)")
    main(parser.parse_args().seeds)
