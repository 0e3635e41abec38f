"""Time the log-linear models of all outputs at once against scikit-learn's models, fitted one output at a time.

Run: `python speed/generalized_linear.py`. Target: at least 20 times as fast as either of scikit-learn's solvers, at a
tolerance at which the coefficients agree to within 1e-6. Both run on one thread, which suits matrices of this size.
"""

from functools import partial

import numpy as np
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from threadpoolctl import threadpool_limits

from benchmark import Bench, parser
from decidewise import GeneralizedLinear

N, P, D, TARGET = 1000, 10, 190, 20
PEERS = {
    "poisson": PoissonRegressor(alpha=0, max_iter=1000),
    "gamma": GammaRegressor(alpha=0, max_iter=1000),
    "tweedie": TweedieRegressor(power=1.5, alpha=0, max_iter=1000),
}
SOLVERS = ("lbfgs", "newton-cholesky")


def loop(peer, X, costs):
    return np.array([peer.fit(X, column).coef_ for column in costs.T])


@threadpool_limits.wrap(limits=1)
def main(arguments):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    costs = np.exp(0.3 * X @ rng.normal(size=(P, D))) * rng.uniform(0.5, 1.5, size=(N, D))
    rounds = 1 if arguments.quick else 5
    with Bench(__file__, "Log-linear models", arguments.quick, clock="wall", rounds=rounds) as bench:
        for deviance, peer in PEERS.items():
            for solver in SOLVERS:
                peer.set_params(solver=solver, tol=1e-7)
                fit = partial(GeneralizedLinear(deviance).fit, X, costs)
                ours, theirs = bench.time(fit, partial(loop, peer, X, costs))
                gap = np.abs(ours.result.coef_ - theirs.result).max()
                name = f"{deviance}, n={N:,}, p={P}, {D} outputs"
                same = f"same coefficients: they differ by {gap:.0e}"
                by = f"scikit-learn, {solver}"
                bench.claim(name, ours, theirs, peer=by, at_least=TARGET, same=same, is_same=gap < 1e-6)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
