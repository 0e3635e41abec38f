"""Time the log-linear models of all outputs at once against scikit-learn's models, fitted one output at a time.

Run: `python speed/generalized_linear.py`. Target: at least 20 times as fast as either of scikit-learn's solvers, at a
tolerance at which the coefficients agree to within 1e-6. Both run on one thread, which suits matrices of this size.
"""

from functools import partial
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from threadpoolctl import threadpool_limits

from decidewise import GeneralizedLinear

N, P, D, REPEATS, TARGET = 1000, 10, 190, 5, 20
PEERS = {
    "poisson": PoissonRegressor(alpha=0, max_iter=1000),
    "gamma": GammaRegressor(alpha=0, max_iter=1000),
    "tweedie": TweedieRegressor(power=1.5, alpha=0, max_iter=1000),
}
SOLVERS = ("lbfgs", "newton-cholesky")


def best_seconds(*functions):
    """Return the shortest time of each function; they run in turn, so that a busy moment of the machine hits all."""
    seconds = np.empty((REPEATS, len(functions)))
    for repeat in range(REPEATS):
        for i, function in enumerate(functions):
            start = perf_counter()
            function()
            seconds[repeat, i] = perf_counter() - start
    return seconds.min(axis=0)


def loop(peer, X, costs):
    return np.array([peer.fit(X, column).coef_ for column in costs.T])


@threadpool_limits.wrap(limits=1)
def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    costs = np.exp(0.3 * X @ rng.normal(size=(P, D))) * rng.uniform(0.5, 1.5, size=(N, D))

    table = Table(title=f"Log-linear models, n={N:,}, p={P}, {D} outputs")
    for heading in ("deviance", "ours", "scikit-learn", "", "difference", "ratio", f"≥ {TARGET}"):
        table.add_column(heading)
    for deviance, peer in PEERS.items():
        model = GeneralizedLinear(deviance).fit(X, costs)
        for solver in SOLVERS:
            peer.set_params(solver=solver, tol=1e-7)
            ours, theirs = best_seconds(partial(model.fit, X, costs), partial(loop, peer, X, costs))
            difference = np.abs(model.coef_ - loop(peer, X, costs)).max()
            table.add_row(
                deviance,
                f"{1e3 * ours:.0f} ms",
                solver,
                f"{1e3 * theirs:.0f} ms",
                f"{difference:.0e}",
                f"{theirs / ours:.0f}",
                "yes" if theirs >= TARGET * ours else "NO",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
