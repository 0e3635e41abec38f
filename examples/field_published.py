"""Why published numbers differ from ours: how much a draw of data does, and how much the length of training.

Shortest path on a 5x5 grid, degree 6, noise 0.3, 320 training rows, 10,000 test rows, a linear model from a random
start: Adam as the paper runs it, without any tuning.
"""

from collections.abc import Sequence

import numpy as np

from decidewise import DecisionRegressor, GeneralizedLinear
from decidewise.data import make_shortest_path
from decidewise.evaluate import Hindsight
from decidewise.losses import Dbb, Dpo, Lodl, Loss, Mse, SpoPlus

#: Loss, learning rate, epochs.
TRAININGS: list[tuple[Loss, float, int]] = [
    (Mse(), 1e-2, 50), (Mse(), 1e-3, 50), (SpoPlus(), 1e-2, 50), (SpoPlus(), 1e-3, 50), (SpoPlus(), 1e-3, 20),
    (Dpo(), 1e-2, 50), (Lodl(), 1e-2, 50), (Lodl(), 1e-3, 50), (Lodl(), 1e-3, 20), (Dbb(10.0), 1e-2, 50),
    (Dbb(10.0), 1e-3, 20), (Dbb(10.0), 1e-3, 10), (Dbb(10.0), 1e-3, 3), (Dbb(0.001), 1e-2, 30),
]  # fmt: skip


def main(seeds: Sequence[int] = (42, 43, 44), draws: int = 30, n_test: int = 10_000) -> None:
    regrets = []
    for seed in range(42, 42 + draws):
        train, test = make_shortest_path(400 + n_test, degree=6, noise=0.3, seed=seed).split(400)
        model = GeneralizedLinear().fit(train.X[:320], train.costs[:320])
        regrets.append(Hindsight.of(test.problem, test.costs).normalized_regret(model.predict(test.X)))
    print(
        f"least squares on {draws} draws: {np.mean(regrets):.2f} % on average, standard deviation {np.std(regrets):.2f}"
    )
    print("| loss | rate | epochs | regret on each draw, % |")
    print("|---|---:|---:|---|")
    for loss, rate, epochs in TRAININGS:
        found = []
        for seed in seeds:
            train, test = make_shortest_path(400 + n_test, degree=6, noise=0.3, seed=seed).split(400)
            model = DecisionRegressor(
                train.problem,
                loss,
                protocol="paper",
                init="torch",
                epochs=epochs,
                learning_rate=rate,
                random_state=seed,
            ).fit(train.X[:320], train.costs[:320])
            found.append(Hindsight.of(test.problem, test.costs).normalized_regret(model.predict(test.X)))
        print(f"| {loss} | {rate:g} | {epochs} | {', '.join(f'{regret:.1f}' for regret in found)} |", flush=True)


if __name__ == "__main__":
    main()
