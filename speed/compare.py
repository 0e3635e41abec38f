"""Time a comparison of two models over a million rows, and the intervals in it.

Run: `python speed/compare.py`. Targets: under 15 seconds on two cores; intervals at least 8 times as fast as those of
a bootstrap that draws every row; peak extra memory below 1.5 times that of the costs. The bootstrap of every row is
timed on `N_GROUPS` rows, the largest number that `compare` draws row by row, and its time is scaled up.
"""

import resource
from time import perf_counter, process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from decidewise.evaluate import Hindsight, compare, compare_regrets
from decidewise.evaluate.intervals import N_GROUPS
from decidewise.problems import ShortestPath

N, N_RESAMPLES = 1_000_000, 2_000


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def processor_seconds(function):
    start = process_time()
    function()
    return process_time() - start


def main():
    problem = ShortestPath(5, 5)
    rng = np.random.default_rng(0)
    costs = rng.uniform(1, 2, size=(N, problem.n_costs))
    predictions = {name: costs + rng.uniform(-size, size, size=costs.shape) for name, size in (("a", 0.3), ("b", 0.4))}
    compare(problem, {"a": costs[:10]}, costs[:10])  # loads every library before memory is measured

    before = peak_megabytes()
    start = perf_counter()
    compare(problem, predictions, costs, n_resamples=N_RESAMPLES)
    seconds = perf_counter() - start
    extra = peak_megabytes() - before

    truth = Hindsight.of(problem, costs)
    regrets = {name: truth.regret(prediction) for name, prediction in predictions.items()}
    grouped = processor_seconds(lambda: compare_regrets(truth, regrets, n_resamples=N_RESAMPLES))
    few = slice(N_GROUPS)
    some = Hindsight(problem, truth.costs[few], truth.best[few])
    some_regrets = {name: regret[few] for name, regret in regrets.items()}
    share = N_GROUPS / N / 10
    plain = processor_seconds(lambda: compare_regrets(some, some_regrets, n_resamples=N_RESAMPLES // 10)) / share

    table = Table(title=f"compare, 5×5 shortest path, {N:,} rows, {N_RESAMPLES:,} resamples")
    for heading in ("what", "measured", "target", "met"):
        table.add_column(heading)

    def report(what, measured, target="", met=None):
        table.add_row(what, measured, target, "" if met is None else "yes" if met else "NO")

    report("compare", f"{seconds:.1f} s", "< 15 s", seconds < 15)
    report("its intervals", f"{grouped:.1f} s")
    report("intervals with every row drawn", f"{plain:.1f} s")
    report("ratio", f"{plain / grouped:.1f}", "≥ 8", plain / grouped >= 8)
    limit = 1.5 * costs.nbytes / 2**20
    report("peak extra memory", f"{extra:.0f} MB", f"< {limit:.0f} MB", extra < limit)
    Console().print(table)


if __name__ == "__main__":
    main()
