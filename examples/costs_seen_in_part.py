"""Can a model learn to decide from the costs of what was chosen alone? It can, if all is chosen now and then.

Run: `python examples/costs_seen_in_part.py` (20 seconds). It prints the table of `docs/notes/costs_seen_in_part.md`:
the regret in percent of shortest paths on a 5 × 5 grid, averaged over draws. What is seen are the edges of one path for
each row, drawn by chance or chosen by a rule in 70 % of the rows, or each cost with probability 0.3. The last two
columns see all costs.
"""

import numpy as np
from rich.console import Console
from rich.table import Table

from decidewise import WiseRegressor, normalized_regret
from decidewise.data import Dataset, make_shortest_path

FIRST_SEED = 4_200
N_TEST = 1_000
N_BEFORE = 50  # rows of full costs that the rule was made from


def main(draws: int = 8, rows: tuple[int, ...] = (500, 2000), degrees: tuple[int, ...] = (4, 8)) -> None:
    methods = {
        "least squares": WiseRegressor(exponent=0, missing="ignore"),
        "WISE": WiseRegressor(missing="ignore"),
    }
    table = Table("seen", "degree", "rows", *methods, *(f"{name}, all seen" for name in methods))
    for seen_by, see in SEEN.items():
        for degree in degrees:
            for n in rows[-1:] if see is by_a_rule else rows:  # with few rows, some edges are in no path of a rule
                regrets = np.zeros((draws, 2, len(methods)))
                for draw in range(draws):
                    data = make_shortest_path(N_BEFORE + n + N_TEST, degree=degree, seed=FIRST_SEED + draw)
                    before, later = data.split(N_BEFORE)
                    train, test = later.split(n)
                    seen = see(before, train, np.random.default_rng(draw))
                    for k, costs in enumerate((np.where(seen, train.costs, np.nan), train.costs)):
                        for j, model in enumerate(methods.values()):
                            predicted = model.fit(train.X, costs).predict(test.X)
                            regrets[draw, k, j] = normalized_regret(test.problem, predicted, test.costs)
                table.add_row(seen_by, str(degree), str(n), *(f"{mean:.1f}" for mean in regrets.mean(axis=0).ravel()))
    Console(width=110).print(table)


def any_path(before: Dataset, train: Dataset, rng: np.random.Generator) -> np.ndarray:
    """Return the edges of one path for each row, drawn by chance."""
    paths = np.unique(train.problem.solve(rng.exponential(size=(20_000, train.problem.n_costs))), axis=0)
    return paths[rng.integers(len(paths), size=len(train))] > 0


def by_a_rule(before: Dataset, train: Dataset, rng: np.random.Generator) -> np.ndarray:
    """Return the edges of the path that a rule made from earlier rows chose in 70 % of the rows."""
    rule = WiseRegressor(exponent=0).fit(before.X, before.costs)
    chosen = train.problem.solve(rule.predict(train.X)) > 0
    return np.where(rng.random((len(train), 1)) < 0.7, chosen, any_path(before, train, rng))


def some_costs(before: Dataset, train: Dataset, rng: np.random.Generator) -> np.ndarray:
    """Return three costs of ten, and at least one of each row."""
    draws = rng.random(train.costs.shape)
    return draws <= np.maximum(0.3, draws.min(axis=1, keepdims=True))


SEEN = {"a path by chance": any_path, "a path by a rule (70 %)": by_a_rule, "30 % of the costs": some_costs}

if __name__ == "__main__":
    main()
