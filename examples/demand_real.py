"""How much to bake and to cook? The ways of `examples/demand.py` on the demand of 35 shops and of 7 dishes.

The data come with the package ddop, and are read as `decidewise real run` reads them: windows in the order of time. The
levels are quantiles of the training demand; all items share a budget of 1.1 times their mean demand.

    python examples/demand_real.py
"""

from __future__ import annotations

import numpy as np
from sklearn.dummy import DummyRegressor

from decidewise import GeneralizedLinear, WiseRegressor, WiseRegressorCV
from decidewise.data import Dataset
from decidewise.evaluate import Hindsight
from decidewise.kit.errors import InputError
from decidewise.models import DemandRegressor, NearestScenarios, ResidualScenarios
from decidewise.problems import Levels, newsvendor
from decidewise_bench.real.demand import bakery, restaurant

#: Reads a window, the file, and the number of training rows.
TASKS = {"restaurant": (restaurant, "yaz_data.csv", 361), "bakery": (bakery, "bakery_data.csv", 730)}
WINDOWS, STEP, N_LEVELS = 8, 45, 9


def regrets(data: Dataset, n: int) -> dict[str, float]:
    """Return the regret of each way in percent, on the rows after the first n."""
    X, demand, later = data.X[:n], data.costs[:n], data.X[n:]
    shares = np.linspace(0.05, 0.98, N_LEVELS - 1)
    levels = [np.unique([0.0, *np.quantile(own, shares).round()]) for own in demand.T]
    problem = Levels(levels, budget=1.1 * demand.sum(axis=1).mean(), cost=newsvendor(over=1, under=3))
    known, ridge = problem.with_demand(demand), WiseRegressor(GeneralizedLinear(alpha=1.0), exponent=0.0)
    ways = {
        "sample average": DummyRegressor(),
        "point forecast": DemandRegressor(GeneralizedLinear(), known),
        "forecast + residuals": DemandRegressor(ResidualScenarios(), known),
        "nearest neighbours": DemandRegressor(NearestScenarios(), known),
        "corrected scenarios": DemandRegressor(ResidualScenarios(), known, ridge),
        "least squares": GeneralizedLinear(),
        "WISE": WiseRegressor(),
    }
    choice = WiseRegressorCV(problem, ways, random_state=0).fit(X, demand, times=np.arange(n))
    features, costs = problem.demand_table.features(X), problem.as_costs(demand, realised=True)
    truth, found = Hindsight.of(problem, data.costs[n:]), {"choice": choice.predict(later)}
    for name, model in ways.items():
        model.fit(features, costs)
        found[name] = np.reshape(model.predict(problem.demand_table.features(later)), (len(later), -1))
    order = [*ways, "choice"]
    return {name: 100 * truth.regret(found[name]).sum() / truth.best.sum() for name in order}


def main(tasks: tuple[str, ...] = tuple(TASKS), windows: int = WINDOWS) -> None:
    """Print the regret of each way, with its standard error over the windows, and what it is above the choice."""
    for task in tasks:
        read, file, n = TASKS[task]
        path = f"ddop:datasets/data/{file}"
        try:
            rows = [
                regrets(read(n + STEP, seed=window, windows=WINDOWS, step=STEP, file=path), n)
                for window in range(windows)
            ]
        except InputError as missing:
            print(f"{task} is left out: {missing}")
            continue
        print(f"{task + ', regret %':24}{'mean':>8}{'':9}{'above the choice':>20}")
        for name in rows[0]:
            own = np.array([row[name] for row in rows])
            above = own - [row["choice"] for row in rows]
            errors = [values.std(ddof=min(1, windows - 1)) / windows**0.5 for values in (own, above)]
            print(f"{name:24}{own.mean():8.1f} ±{errors[0]:6.1f}{above.mean():12.1f} ±{errors[1]:6.1f}")


if __name__ == "__main__":
    main()
