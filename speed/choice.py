"""Time the default choice, `WiseRegressorCV(problem)`, against the same candidates scored one by one.

Run: `python speed/choice.py` (about a minute). The choice shares feature steps and ridge paths among candidates, tries
costly ones on one fold first, and does not score that fold again. Target: at most half the processor time of scoring
the candidates that it tried, each alone on all folds.
"""

from time import process_time

from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from decidewise import WiseRegressorCV
from decidewise.data import make_knapsack, make_portfolio, make_shortest_path
from decidewise.models import default_candidates

SETTINGS = {
    "shortest path, degree 8, 1,600 rows": lambda: make_shortest_path(1600, degree=8, seed=0),
    "knapsack, degree 2, 400 rows": lambda: make_knapsack(400, degree=2, seed=0),
    "portfolio, degree 3, 800 rows": lambda: make_portfolio(800, degree=3, seed=0),
}
TARGET = 0.5


def seconds(data, candidates=None):
    """Return the processor time of one choice, and the model."""
    start = process_time()
    model = WiseRegressorCV(data.problem, candidates, rule="minimum", random_state=0).fit(data.X, data.costs)
    return process_time() - start, model


@threadpool_limits.wrap(limits=1)
def main():
    table = Table(title="The default choice, processor time")
    for heading in ("data", "candidates tried", "the choice", "one by one", "ratio", f"≤ {TARGET:g}"):
        table.add_column(heading)
    for name, make in SETTINGS.items():
        data = make()
        seconds(data[:80])  # compiles
        together, model = seconds(data)
        candidates, results = default_candidates(data.X, data.costs), model.cv_results_
        tried = [label for label, n in zip(results["candidate"], results["n_solves"], strict=True) if n]
        alone = sum(seconds(data, {label: candidates[label]})[0] for label in tried)
        ratio = together / alone
        met = "yes" if ratio <= TARGET else "NO"
        table.add_row(name, str(len(tried)), f"{together:.1f} s", f"{alone:.1f} s", f"{ratio:.2f}", met)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
