"""Time the exact fit of one model shared by all items against the bare products on the long table.

Run: `python speed/shared_items.py`. Target: WISE and least squares on n=100,000 rows, 48 items and 8 features take at
most 1.5 times the processor time of `XᵀWX` and `XᵀWy`, as one product of `[X, y]` and `W[X, y]` (n·d, q + 1), once with
`W[X, y]` ready in memory, and once with the weighting counted. The long table is ready in both cases.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from benchmark import Bench, parser
from decidewise import GeneralizedLinear, WiseRegressor

N, D, Q, TARGET = 100_000, 48, 8, 1.5


@threadpool_limits.wrap(limits=1)  # several threads of BLAS would wait for each other in the bare products
def main(arguments):
    n = N // 10 if arguments.quick else N
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D, Q))
    costs = rng.standard_normal((n, D)) + 5
    table = np.concatenate([X, costs[:, :, None]], axis=2).reshape(-1, Q + 1)
    weights = np.repeat(np.linalg.norm(costs, axis=1), D)[:, None]
    weighted = table * weights
    title = f"One model for {D} items, exact"
    with Bench(__file__, title, arguments.quick, rounds=9) as bench:
        ready, weighting, wise, squares = bench.time(
            lambda: table.T @ weighted,
            lambda: table.T @ (table * weights),
            lambda: WiseRegressor().fit(X, costs),
            lambda: GeneralizedLinear().fit(X, costs),
        )
        for what, ours in (("WISE", wise), ("least squares", squares)):
            for by, theirs in (("products, rows weighted before", ready), ("products and the weighting", weighting)):
                name = f"{what}, n={n:,}, d={D}, q={Q}"
                bench.claim(name, ours, theirs, peer=by, at_most=TARGET, same="a part of the fit")


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
