"""What the choice makes of truths that were made to mislead it, and which rule it should choose by.

Run: `python examples/blind_spots.py` (some minutes; `--quick` for one seed and fewer truths). It prints the table of
`docs/notes/model_choice.md`: the regret in percent on new rows, averaged over the seeds, of the training mean, of least
squares and of the choice by five rules: the simplest candidate within one standard error of the lowest regret, the
lowest, the average of all within one standard error, this average drawn to the training mean as far as it is not proven
to decide better, and the default, in which half of the weights are also fitted. The floor is the regret of the true
expected costs.
"""

import sys
from collections.abc import Callable, Mapping

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.dummy import DummyRegressor

from decidewise import GeneralizedLinear, WiseRegressorCV, normalized_regret
from decidewise.data import Dataset, make_knapsack, make_portfolio, make_shortest_path
from decidewise.models import AveragedRegressor, default_candidates
from decidewise.models.selection.null_models import NullModels
from decidewise.models.selection.weights import average_weights
from decidewise.problems import ShortestPath, TopK

GRID = ShortestPath(5, 5)
RULES = ("simplest", "lowest", "average", "drawn to the mean", "half fitted")
COLUMNS = ("floor", "mean", "least squares", *RULES)
FIRST_SEED = 7_000  # far from those of the paper's plans
N_TEST = 2_000


def main(n_seeds: int = 3, truths: tuple[str, ...] | None = None) -> None:
    table = Table("truth", "rows", *COLUMNS, "chosen (last seed)")
    excess = []
    for name in truths or TRUTHS:
        n, make = TRUTHS[name]
        found = [regrets(make(n + N_TEST, FIRST_SEED + seed).split(n)) for seed in range(n_seeds)]
        means = np.mean([row for row, _ in found], axis=0)
        excess.append(means[-len(RULES) :] / means[-len(RULES) :].min() - 1)
        table.add_row(name, str(n), *(f"{mean:.2f}" for mean in means), found[-1][1])
    Console(width=130).print(table)
    over = ", ".join(f"{name} {value:.1%}" for name, value in zip(RULES, np.mean(excess, axis=0), strict=True))
    print(f"On average above the best of the five rules: {over}.")


def regrets(data: tuple[Dataset, Dataset]) -> tuple[list[float], str]:
    train, test = data
    choice = WiseRegressorCV(train.problem, random_state=0).fit(train.X, train.costs)
    # The candidates are in the order from the simplest to the most complex, so one fit gives all rules.
    candidates, results = default_candidates(train.X, train.costs), choice.cv_results_
    drawn = average_weights(results, null=NullModels.of(choice.candidates_))
    close = list(average_weights(results))
    members = [(name, candidates[name]) for name in {**dict.fromkeys(close), **drawn}]
    average = AveragedRegressor(members).fit(train.X, train.costs)
    fitted = dict(zip((name for name, _ in members), average.estimators_, strict=True))

    def averaged(weights: Mapping[str, float]) -> AveragedRegressor:
        chosen = [(name, fitted[name]) for name in weights]
        return AveragedRegressor.of_fitted(chosen, train.costs.shape[1], weights=list(weights.values()))

    models = {
        "mean": DummyRegressor().fit(train.X, train.costs),
        "least squares": GeneralizedLinear().fit(train.X, train.costs),
        "simplest": fitted[close[0]],
        "lowest": fitted[choice.best_name_],
        "average": averaged(average_weights(results)),
        "drawn to the mean": averaged(drawn),
        "half fitted": choice,
    }
    floor = normalized_regret(test.problem, test.mean_costs, test.costs)
    scores = [normalized_regret(test.problem, model.predict(test.X), test.costs) for model in models.values()]
    share = f", {choice.weights_.get('training mean', 0):.0%} mean"
    return [floor, *scores], f"{len(close)}: {choice.best_name_}{share}"


def noisy(X: np.ndarray, means: np.ndarray, rng: np.random.Generator) -> Dataset:
    return Dataset(X, means * rng.uniform(0.5, 1.5, means.shape), GRID, means)


def rules(n: int, seed: int) -> Dataset:
    """Costs are sums of rules such as "if the second feature is above 0.3 and the fourth above -0.1"."""
    rng = np.random.default_rng(seed)
    X, means = rng.normal(size=(n, 5)), np.ones((n, GRID.n_costs))
    for cost in np.repeat(np.arange(GRID.n_costs), 3):
        (first, second), (low, high) = rng.integers(5, size=2), rng.normal(0, 0.5, size=2)
        means[:, cost] += rng.uniform(0, 3) * ((X[:, first] > low) & (X[:, second] > high))
    return noisy(X, means, rng)


def waves(n: int, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    means = np.exp(np.sin(X @ rng.normal(size=(5, GRID.n_costs)) + rng.uniform(0, 6, GRID.n_costs)))
    return noisy(X, means, rng)


def network(n: int, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    hidden = np.maximum(X @ rng.normal(size=(5, 16)) + 0.5 * rng.normal(size=16), 0)
    means = 0.3 + np.maximum(0.5 * hidden @ rng.normal(size=(16, GRID.n_costs)), 0)
    return noisy(X, means, rng)


def zeros(n: int, seed: int) -> Dataset:
    data, rng = make_shortest_path(n, degree=6, seed=seed), np.random.default_rng(seed)
    return Dataset(data.X, data.costs * (rng.random(data.costs.shape) > 0.01), GRID, 0.99 * data.mean_costs)


def rare(n: int, seed: int) -> Dataset:
    data, rng = make_shortest_path(n, degree=4, seed=seed), np.random.default_rng(seed)
    factors = np.where(rng.random(data.costs.shape) < 0.002, 50.0, 1.0)
    return Dataset(data.X, data.costs * factors, GRID, data.mean_costs)


def sizes(n: int, seed: int) -> Dataset:
    data, rng = make_shortest_path(n, degree=4, seed=seed), np.random.default_rng(seed)
    return Dataset(data.X, data.costs * np.exp(1.5 * rng.normal(size=(n, 1))), GRID, data.mean_costs)


def items(signal: float) -> Callable[[int, int], Dataset]:
    """Draw returns of 20 items with heavy tails, of which to pick 3; six features say something, or nothing."""

    def make(n: int, seed: int) -> Dataset:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 20, 6))
        means = 0.1 * rng.normal(size=20) + signal * X @ rng.normal(size=6) / np.sqrt(6)
        noise = rng.standard_t(4, size=(n, 20)) + rng.standard_t(4, size=(n, 1))
        return Dataset(X, means + noise / np.sqrt(2), TopK(20, 3), means)

    return make


def noise(n: int, seed: int) -> Dataset:
    """Costs that have nothing to do with the features."""
    rng = np.random.default_rng(seed)
    means = np.broadcast_to(rng.uniform(2, 4, GRID.n_costs), (n, GRID.n_costs))
    return Dataset(rng.normal(size=(n, 5)), means * rng.gamma(4, 0.25, means.shape), GRID, means)


def path(degree: int, n_features: int = 5) -> Callable[[int, int], Dataset]:
    return lambda n, seed: make_shortest_path(n, degree=degree, seed=seed, n_features=n_features)


TRUTHS: dict[str, tuple[int, Callable[[int, int], Dataset]]] = {
    "rules": (300, rules),
    "waves": (200, waves),
    "network": (200, network),
    "1 % of the costs zero": (200, zeros),
    "rare costs times 50": (200, rare),
    "size unrelated to direction": (200, sizes),
    "60 features": (30, path(4, 60)),
    "shortest path, degree 1": (200, path(1)),
    "shortest path, degree 4": (400, path(4)),
    "shortest path, degree 8": (200, path(8)),
    "knapsack, degree 1": (100, lambda n, seed: make_knapsack(n, degree=1, seed=seed)),
    "knapsack, degree 4": (400, lambda n, seed: make_knapsack(n, degree=4, seed=seed)),
    "portfolio, degree 1": (200, lambda n, seed: make_portfolio(n, degree=1, seed=seed, factor_noise=False)),
    "portfolio, degree 7": (400, lambda n, seed: make_portfolio(n, degree=7, seed=seed, factor_noise=False)),
    "no signal": (100, noise),
    "20 items, no signal": (100, items(0.0)),
    "20 items, no signal, more rows": (400, items(0.0)),
    "20 items, faint signal": (100, items(0.2)),
    "20 items, faint signal, more rows": (400, items(0.2)),
}


if __name__ == "__main__":
    quick = "--quick" in sys.argv[1:]
    main(1, ("rules", "network", "1 % of the costs zero", "shortest path, degree 4")) if quick else main()
