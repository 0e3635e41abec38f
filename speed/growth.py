"""Show how time grows: the slope of log time over log size, from 1 for linear to 2 for quadratic.

Run: `python speed/growth.py`. Fits in rows, costs and features (quadratic, because of `X.T @ X`), and in the items of a
shared model; solves in the side of a grid (its edges grow with the square of it), the items of a knapsack, the nodes of
a tour and the side of an assignment. A slope is that of the least-squares line through all sizes. Targets are the
slopes of the arithmetic, plus 0.25: sizes small enough to be timed quickly have costs that do not grow, and large ones
leave the caches. Knapsacks and tours are hard, and no slope is promised.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from benchmark import Bench, Measured, parser, shown
from decidewise import WiseRegressor
from solves import assignment, grid, random_knapsack, tour

SLACK = 0.25
ROWS, COSTS, FEATURES = 20_000, 50, 20


def fit(n=ROWS, d=COSTS, p=FEATURES):
    rng = np.random.default_rng(0)
    X, costs = rng.standard_normal((n, p)), rng.standard_normal((n, d)) + 5
    return lambda: WiseRegressor().fit(X, costs)


def shared_fit(d, n=2_000, q=8):
    rng = np.random.default_rng(0)
    X, costs = rng.standard_normal((n, d, q)), rng.standard_normal((n, d)) + 5
    return lambda: WiseRegressor().fit(X, costs)


def solve(make):
    """Return the function from a size to a work: a batch of the case of that size."""

    def work(size):
        case = make(size, 50)
        return lambda: case.problem.solve(case.costs)

    return work


#: The function from a size to a work, the sizes, and the slope of the arithmetic if there is one.
GROWTH = {
    "fit, rows": (lambda n: fit(n=n), (10_000, 30_000, 100_000, 300_000), 1),
    "fit, costs": (lambda d: fit(d=d), (25, 50, 100, 200), 1),
    "fit, features": (lambda p: fit(p=p), (25, 50, 100, 200), 2),
    "fit of a shared model, items": (shared_fit, (12, 24, 48, 96), 1),
    "shortest path, side of the grid": (solve(grid), (10, 20, 40, 80), 2),
    "assignment, side": (solve(assignment), (10, 20, 40, 80), 3),
    "knapsack, items": (solve(random_knapsack), (15, 30, 60), None),
    "tour, nodes": (solve(tour), (10, 20, 40), None),
}


def slope(sizes, times):
    """Return the slope of the line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


@threadpool_limits.wrap(limits=1)
def main(arguments):
    with Bench(__file__, "Growth", arguments.quick, rounds=2 if arguments.quick else 5) as bench:
        for name, (make, all_sizes, degree) in GROWTH.items():
            sizes = all_sizes[:2] if arguments.quick else all_sizes
            times = [time.value for time in bench.time(*(make(size) for size in sizes))]
            steps = ", ".join(f"{size:,}: {shown(time, 's')}" for size, time in zip(sizes, times, strict=True))
            found = Measured(slope(sizes, times), "processor", bench.rounds, unit="")
            bench.claim(f"{name}: slope", found, at_most=None if degree is None else degree + SLACK, same=steps)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
