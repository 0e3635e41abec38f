"""LANCER with a network that may fall where an error grows, and with one that may not.

LANCER trains on a network `M((p - c)²)` of the squared errors, fitted to regrets. A free network falls along some
errors, and training finds them. The table has the regrets of three draws of shortest paths (degree 6, 200 rows) in
percent, from a start at least squares.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from decidewise import DecisionRegressor, normalized_regret
from decidewise.data import Dataset, make_shortest_path
from decidewise.kit.errors import TrainingWarning
from decidewise.losses import Lancer
from decidewise.models import GeneralizedLinear

SETTINGS = {
    "rising": Lancer(),
    "free": Lancer(rising=False),
    "free, ten times the steps": Lancer(rising=False, n_steps=1000),
    "free, ten times the samples and steps": Lancer(rising=False, n_samples=100, n_steps=1000),
    "free, refreshed in every epoch": Lancer(rising=False, refresh_every=1),
}


def fit(loss: Lancer, train: Dataset, rate: float) -> DecisionRegressor:
    """Train a linear model from a start at least squares."""
    model = DecisionRegressor(train.problem, loss, init="mse", epochs=20, learning_rate=rate, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # that the start had a lower loss, and is kept
        return model.fit(train.X, train.costs)


def main(n_test: int = 2000, seeds: Sequence[int] = (42, 43, 44), rates: Sequence[float] = (0.003, 0.01, 0.03)) -> None:
    draws = [make_shortest_path(200 + n_test, degree=6, seed=seed).split(200) for seed in seeds]

    def regrets(build: Callable[[Dataset], Any]) -> str:
        found = [normalized_regret(test.problem, build(train).predict(test.X), test.costs) for train, test in draws]
        return ", ".join(f"{regret:.1f}" for regret in found)

    print("| network | rate | regret of each draw, % |")
    print("|---|---:|---|")
    print(f"| least squares, the start | | {regrets(lambda train: GeneralizedLinear().fit(train.X, train.costs))} |")
    for name, loss in SETTINGS.items():
        for rate in rates:
            print(f"| {name} | {rate:g} | {regrets(partial(fit, loss, rate=rate))} |", flush=True)


if __name__ == "__main__":
    main()
