"""Time a comparison of two models over a million rows, and the intervals in it.

Run: `python speed/compare.py`. Targets: under 15 seconds on two cores; intervals at least 8 times as fast as those of
a bootstrap that draws every row; peak extra memory below 1.5 times that of the costs. The bootstrap of every row is
timed on `N_GROUPS` rows, the largest number that `compare` draws row by row, and its time is scaled up.
"""

import numpy as np

from benchmark import Bench, parser, peak_megabytes
from decidewise.evaluate import Hindsight, compare, compare_regrets
from decidewise.evaluate.intervals import N_GROUPS
from decidewise.problems import ShortestPath

N, N_RESAMPLES = 1_000_000, 2_000


def main(arguments):
    n = N // 10 if arguments.quick else N
    problem = ShortestPath(5, 5)
    rng = np.random.default_rng(0)
    costs = rng.uniform(1, 2, size=(n, problem.n_costs))
    predictions = {name: costs + rng.uniform(-size, size, size=costs.shape) for name, size in (("a", 0.3), ("b", 0.4))}
    title, what = "Comparing two models", f"5×5 shortest path, {n:,} rows, {N_RESAMPLES:,} resamples"
    with Bench(__file__, title, arguments.quick, rounds=1, warm_up="a comparison of ten rows") as bench:
        compare(problem, {"a": costs[:10]}, costs[:10])  # loads every library before memory is measured
        before = peak_megabytes()
        (whole,) = bench.time(
            lambda: compare(problem, predictions, costs, n_resamples=N_RESAMPLES), warm=False, clock="wall"
        )
        extra = peak_megabytes() - before
        bench.claim(f"compare, {what}", whole, at_most=15)
        bench.claim("memory that it adds, at its peak", extra, unit="MB", at_most=1.5 * costs.nbytes / 2**20)

        truth = Hindsight.of(problem, costs)
        regrets = {name: truth.regret(prediction) for name, prediction in predictions.items()}
        few = slice(N_GROUPS)
        some = Hindsight(problem, truth.costs[few], truth.best[few])
        some_regrets = {name: regret[few] for name, regret in regrets.items()}
        grouped, plain = bench.time(
            lambda: compare_regrets(truth, regrets, n_resamples=N_RESAMPLES),
            lambda: compare_regrets(some, some_regrets, n_resamples=N_RESAMPLES // 10),
            warm=False,
        )
        same = f"theirs is scaled up from {N_GROUPS:,} rows and {N_RESAMPLES // 10} resamples"
        scaled = plain.per(N_GROUPS / n / 10)
        bench.claim("its intervals", grouped, scaled, peer="with every row drawn", at_least=8, same=same)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
