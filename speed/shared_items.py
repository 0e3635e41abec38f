"""Time the exact fit of one model shared by all items against the bare products on the long table.

Run: `python speed/shared_items.py`. Target: WISE and least squares on n=100,000 rows, 48 items and 8 features take at
most 1.5 times the processor time of `XᵀWX` and `XᵀWy`, as one product of `[X, y]` and `W[X, y]` (n·d, q + 1), once with
`W[X, y]` ready in memory, and once with the weighting counted. The long table is ready in both cases.
"""

from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from decidewise import GeneralizedLinear, WiseRegressor

N, D, Q, ROUNDS = 100_000, 48, 8, 9


def seconds(function):
    start = process_time()
    function()
    return process_time() - start


def main():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D, Q))
    costs = rng.standard_normal((N, D)) + 5
    table = np.concatenate([X, costs[:, :, None]], axis=2).reshape(-1, Q + 1)
    weights = np.repeat(np.linalg.norm(costs, axis=1), D)[:, None]
    weighted = table * weights
    cases = {
        "bare products, rows weighted before": lambda: table.T @ weighted,
        "bare products and the weighting": lambda: table.T @ (table * weights),
        "WiseRegressor().fit": lambda: WiseRegressor().fit(X, costs),
        "GeneralizedLinear().fit": lambda: GeneralizedLinear().fit(X, costs),
    }
    times = {name: [] for name in cases}
    with threadpool_limits(1):  # several threads of BLAS would wait for each other in the bare products
        for _ in range(ROUNDS):  # in turn, so that a busy moment of the machine hits all
            for name, case in cases.items():
                times[name].append(seconds(case))
    shown = Table(title=f"Exact fit shared by all items, n={N:,}, d={D}, q={Q}, processor time")
    for heading in ("what", "measured", "over the first", "over the second", "target", "met"):
        shown.add_column(heading)
    bare = [min(measured) for measured in list(times.values())[:2]]
    for name, measured in times.items():
        ratios = [min(measured) / other for other in bare]
        met = "" if name.startswith("bare") else ", ".join("yes" if ratio <= 1.5 else "NO" for ratio in ratios)
        shown.add_row(name, f"{1e3 * min(measured):.0f} ms", *map("{:.2f}".format, ratios), met and "≤ 1.5", met)
    Console().print(shown)


if __name__ == "__main__":
    main()
