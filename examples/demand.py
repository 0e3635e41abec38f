"""How much to stock when the demand is not known? Seven ways, on three kinds of demand.

A stock is chosen from a list of levels, and what each level would have cost is known once the demand is. The first four
ways are the usual ones; two more predict the cost of each level, and the choice has all of them and more.

    python examples/demand.py
"""

from __future__ import annotations

import numpy as np

from decidewise import GeneralizedLinear, WiseRegressor, WiseRegressorCV
from decidewise.evaluate import Hindsight
from decidewise.models import NearestScenarios, ResidualScenarios
from decidewise.problems import Levels, level_costs, lost_sales, newsvendor

N_TRAIN, N_TEST = 400, 1000


def gamma(rng: np.random.Generator) -> tuple[Levels, np.ndarray, np.ndarray]:
    """Six shops that share a stock; the demand is skewed, and its spread grows with its mean."""
    X = rng.normal(size=(N_TRAIN + N_TEST, 4))
    mean = 10 * np.exp(0.5 * X @ np.random.default_rng(1).normal(size=(4, 6)))
    problem = Levels([np.arange(0, 61, 5)] * 6, budget=150, cost=newsvendor(over=1, under=4))
    return problem, X, rng.gamma(2.0, mean / 2.0)


def intermittent(rng: np.random.Generator) -> tuple[Levels, np.ndarray, np.ndarray]:
    """Eight spare parts that nobody wants on most days; what is not sold loses most of its price."""
    X = rng.normal(size=(N_TRAIN + N_TEST, 4))
    score = X @ np.random.default_rng(2).normal(size=(4, 8))
    wanted = rng.uniform(size=score.shape) < 1 / (1 + np.exp(1.5 - score))
    problem = Levels([np.arange(9)] * 8, budget=20, cost=lost_sales(price=10, cost=4, salvage=1))
    return problem, X, wanted * rng.negative_binomial(2, 0.4, size=score.shape) * 1.0


PLANS = np.array([[a, b] for a in range(0, 60, 10) for b in range(0, 60, 10)], dtype=float)


def second_stage(plan: np.ndarray, demand: np.ndarray) -> np.ndarray:
    """Return minus the profit of a plan for two products; half of those who find one sold out take the other."""
    stock = PLANS[int(plan[0])]
    sold = np.minimum(stock, demand)
    left, unmet = stock - sold, demand - sold
    sold = sold + np.minimum(left, unmet[..., ::-1] / 2)
    return stock @ [4.0, 3.0] - sold @ [10.0, 9.0]


def substitution(rng: np.random.Generator) -> tuple[Levels, np.ndarray, np.ndarray]:
    """Two products that replace each other: one decision on both, of a list of 36 plans."""
    X = rng.normal(size=(N_TRAIN + N_TEST, 4))
    mean = 15 * np.exp(0.5 * X @ np.random.default_rng(3).normal(size=(4, 2)))
    return Levels([np.arange(len(PLANS))], cost=second_stage), X, rng.gamma(2.0, mean / 2.0)


def regrets(problem: Levels, X: np.ndarray, demand: np.ndarray) -> dict[str, float]:
    """Return the regret of each way in percent, on the rows that no model has seen."""
    train, test = slice(N_TRAIN), slice(N_TRAIN, None)
    table = level_costs(demand, problem.levels, problem.cost)
    truth = Hindsight.of(problem, table[test])
    choice = WiseRegressorCV(problem, max_solves=200_000, random_state=0)
    of_demand = {
        "point forecast": GeneralizedLinear(),
        "forecast + residuals": ResidualScenarios(),
        "nearest neighbours": NearestScenarios(),
    }
    of_levels = {"least squares": GeneralizedLinear(), "WISE": WiseRegressor()}
    found = {"sample average": np.tile(table[train].mean(axis=0), (N_TEST, 1))}
    for name, model in of_demand.items():
        found[name] = problem.as_costs(model.fit(X[train], demand[train]).predict(X[test]))
    found |= {name: model.fit(X[train], table[train]).predict(X[test]) for name, model in of_levels.items()}
    found["choice"] = choice.fit(X[train], demand[train]).predict(X[test])
    return {name: 100 * truth.regret(costs).sum() / np.abs(truth.best).sum() for name, costs in found.items()}


def main(draws: int = 4) -> None:
    """Print the regret of each way for each kind of demand, with its standard error over the draws."""
    kinds = {"gamma": gamma, "intermittent": intermittent, "substitution": substitution}
    found = {
        kind: [regrets(*make(np.random.default_rng(draw))) for draw in range(draws)] for kind, make in kinds.items()
    }
    print(f"{'regret, %':22}" + "".join(f"{kind:>17}" for kind in kinds))
    for name in found["gamma"][0]:
        line = f"{name:22}"
        for own in found.values():
            values = np.array([draw[name] for draw in own])
            line += f"{values.mean():9.1f} ±{values.std(ddof=min(1, draws - 1)) / draws**0.5:6.1f}"
        print(line)


if __name__ == "__main__":
    main()
