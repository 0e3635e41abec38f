"""LANCER with a network that may fall where an error grows, and with one that may not.

LANCER trains on a network `M((p - c)²)` of the squared errors, fitted to regrets. A free network falls along some
errors, and training finds them. The table has the regrets of three draws of shortest paths (degree 6, 200 rows) in
percent, from a start at least squares.
"""

import warnings

from decidewise import DecisionRegressor, normalized_regret
from decidewise.data import make_shortest_path
from decidewise.errors import TrainingWarning
from decidewise.losses import Lancer
from decidewise.models import GeneralizedLinear

SETTINGS = {
    "rising": Lancer(),
    "free": Lancer(rising=False),
    "free, ten times the steps": Lancer(rising=False, n_steps=1000),
    "free, ten times the samples and steps": Lancer(rising=False, n_samples=100, n_steps=1000),
    "free, refreshed in every epoch": Lancer(rising=False, refresh_every=1),
}


def main(
    n_test: int = 2000, seeds: tuple[int, ...] = (42, 43, 44), rates: tuple[float, ...] = (0.003, 0.01, 0.03)
) -> None:
    draws = [make_shortest_path(200 + n_test, degree=6, seed=seed).split(200) for seed in seeds]

    def row(name: str, rate: str, models: list[DecisionRegressor] | list[GeneralizedLinear]) -> None:
        regrets = [
            normalized_regret(test.problem, model.predict(test.X), test.costs)
            for model, (_, test) in zip(models, draws, strict=True)
        ]
        print(f"| {name} | {rate} | {', '.join(f'{regret:.1f}' for regret in regrets)} |", flush=True)

    print("| network | rate | regret of each draw, % |")
    print("|---|---:|---|")
    row("least squares, the start", "", [GeneralizedLinear().fit(train.X, train.costs) for train, _ in draws])
    for name, loss in SETTINGS.items():
        for rate in rates:
            row(
                name,
                f"{rate:g}",
                [
                    DecisionRegressor(
                        train.problem, loss, init="mse", epochs=20, learning_rate=rate, random_state=0
                    ).fit(train.X, train.costs)
                    for train, _ in draws
                ],
            )


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # that the start was better
        main()
