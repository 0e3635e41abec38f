"""Run a plant at predicted prices, so that its power changes little from hour to hour.

python examples/smooth_schedule.py
"""

import numpy as np

from decidewise import WiseRegressorCV
from decidewise.evaluate import normalized_regret
from decidewise.problems import QuadraticProgram

HOURS, NEEDED, DAYS = 24, 10.0, 300


def main() -> None:
    """Print schedules for one day, and the regret of a model for the prices of many."""
    rng = np.random.default_rng(0)
    change = np.eye(HOURS)[1:] - np.eye(HOURS)[:-1]
    X = rng.normal(size=(DAYS, 4))
    shape = np.sin(np.arange(HOURS) * 2 * np.pi / 24 + np.arange(4)[:, None])
    prices = 40 + 8 * X @ shape + rng.normal(0, 4, size=(DAYS, HOURS))

    for weight in (0.0, 10.0, 100.0):  # euros for a change of power by 1
        plant = QuadraticProgram(
            2 * weight * change.T @ change, A_eq=np.ones((1, HOURS)), b_eq=[NEEDED], upper=np.ones(HOURS)
        )
        print(f"a change costs {weight:3.0f}:", plant.solve(prices[0]).round(2) + 0.0)
    model = WiseRegressorCV(plant, cv=3).fit(X[:200], prices[:200])
    regret = normalized_regret(plant, model.predict(X[200:]), prices[200:])
    print(f"regret of the model that was chosen: {regret:.2f} %")


if __name__ == "__main__":
    main()
