"""Show what `DecisionRegressor` reaches by default with SPO+: against its start, and against published numbers.

The data are shortest paths on a 5×5 grid with the numbers of PyEPO (5 features, noise of half-width 0.5); each trial is
a new instance. The start is the exact WISE fit, and the floor is the regret of the true expected costs. The published
numbers of SPO+ are those of its original authors' setting with 1,000 training rows.

    python examples/spo_plus.py [--trials 5] [--rows 1000]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from decidewise import DecisionRegressor, TrainingWarning, WiseRegressor
from decidewise.data import make_shortest_path
from decidewise.evaluate import Hindsight

#: Published regret of SPO+ with 1,000 training rows in percent, by degree.
PUBLISHED = {1: 15.77, 2: 10.68, 4: 7.78, 6: 8.33, 8: 10.66}
N_TEST, FIRST_SEED = 2_000, 700


def regrets(degree: int, n_rows: int, seed: int) -> list[float]:
    """Return the regret of the start, of SPO+ and of the expected costs on one instance."""
    train, test = make_shortest_path(n_rows + N_TEST, degree=degree, seed=seed).split(n_rows)
    truth = Hindsight.of(test.problem, test.costs)
    models = WiseRegressor(), DecisionRegressor(train.problem, "spo+", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # the start may be the best
        predictions = [model.fit(train.X, train.costs).predict(test.X) for model in models]
    return [truth.normalized_regret(prediction) for prediction in (*predictions, test.mean_costs)]


def main(trials: int = 5, rows: int = 1_000, degrees: Sequence[int] = tuple(PUBLISHED)) -> None:
    table = Table(
        title=f"Shortest path, {rows:,} training rows, mean regret % of {trials} trials",
        caption="± is the standard error of the mean over the trials.",
    )
    for heading in ("degree", "start", "SPO+", "SPO+ minus start", "published", "floor"):
        table.add_column(heading, justify="right")
    for degree in degrees:
        found = np.array([regrets(degree, rows, FIRST_SEED + trial) for trial in range(trials)])
        (start, trained, floor), gain = found.mean(axis=0), found[:, 1] - found[:, 0]
        errors = np.array([found[:, 1].std(), gain.std()]) / np.sqrt(max(1, trials - 1))
        table.add_row(
            str(degree),
            f"{start:.2f}",
            f"{trained:.2f} ± {errors[0]:.2f}",
            f"{gain.mean():+.2f} ± {errors[1]:.2f}",
            f"{PUBLISHED[degree]:.2f}" if rows == 1_000 else "",
            f"{floor:.2f}",
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the regret of SPO+ by DecisionRegressor's defaults.")
    parser.add_argument("--trials", type=int, default=5, help="instances per degree (default 5)")
    parser.add_argument("--rows", type=int, default=1_000, help="training rows (default 1,000)")
    arguments = parser.parse_args()
    main(arguments.trials, arguments.rows)
