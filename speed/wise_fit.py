"""Time the exact WISE fit against the matrix products that it contains, and measure the memory that it adds.

Run: `python speed/wise_fit.py`. Targets: at most 1.5 times the time of `X.T @ X` and `X.T @ Y`; under 100 MB on top of
the data.
"""

import resource
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from decidewise import WiseRegressor

N, P, D, REPEATS = 500_000, 50, 100, 7


def best_seconds(function):
    seconds = []
    for _ in range(REPEATS):
        start = perf_counter()
        function()
        seconds.append(perf_counter() - start)
    return min(seconds)


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    costs = rng.standard_normal((N, D))
    costs += 5  # in place, since the memory of a temporary copy would hide what the fit adds
    WiseRegressor().fit(X[:10_000], costs[:10_000])  # loads every library before memory is measured

    before = peak_megabytes()
    WiseRegressor().fit(X, costs)
    extra = peak_megabytes() - before

    # Both in turn, so that a busy moment of the machine hits both.
    products, fits = [], []
    for _ in range(3):
        products.append(best_seconds(lambda: (X.T @ X, X.T @ costs)))
        fits.append(best_seconds(lambda: WiseRegressor().fit(X, costs)))
    ratio = min(fits) / min(products)

    table = Table(title=f"Exact WISE fit, n={N:,}, p={P}, d={D}")
    for heading in ("what", "measured", "target", "met"):
        table.add_column(heading)
    table.add_row("bare products X'X and X'Y", f"{1e3 * min(products):.0f} ms", "", "")
    table.add_row("WiseRegressor().fit", f"{1e3 * min(fits):.0f} ms", "", "")
    table.add_row("ratio", f"{ratio:.2f}", "≤ 1.5", "yes" if ratio <= 1.5 else "NO")
    table.add_row("peak extra memory", f"{extra:.0f} MB", "< 100 MB", "yes" if extra < 100 else "NO")
    Console().print(table)


if __name__ == "__main__":
    main()
