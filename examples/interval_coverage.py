"""Show how often the intervals of `compare` contain the true value: few and many rows, heavy tails, rows in an order.

The regrets and optimal values of two models are drawn from distributions whose true ratios are known: light tails,
lognormal ones, and 100,000 rows of shortest paths of degree 8, with WISE and least squares fitted on 300 others. In an
order, each row depends on the one before it: the logarithms of the optimal value and of the regret (or their ranks, for
light tails and paths) follow autoregressions with the given coefficient. An interval of 95 % should contain the true
value in 95 of 100 rounds. The percentile interval, for comparison, is the range of the middle 95 % of the resampled
ratios.

    python examples/interval_coverage.py [--rounds 100]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from math import exp, sqrt

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.signal import lfilter
from scipy.special import ndtr

from decidewise import GeneralizedLinear, WiseRegressor
from decidewise.data import make_shortest_path
from decidewise.evaluate import Hindsight, compare_regrets
from decidewise.evaluate.intervals import Blocks
from decidewise.kit.checks import FloatArray
from decidewise.problems import Ball

LEVEL, N_RESAMPLES = 0.95, 500
SIZES = (50, 200, 1_000)
#: Coefficient of the autoregression, and the blocks that the bootstrap draws.
ORDERS: tuple[tuple[float, Blocks], ...] = ((0.0, None), (0.0, "auto"), (0.5, None), (0.5, "auto"), (0.8, "auto"))


def autoregression(n: int, coefficient: float, rng: np.random.Generator) -> FloatArray:
    """Draw a stationary series (n,) whose values have the standard normal distribution."""
    noise = rng.normal(size=n)
    noise[1:] *= sqrt(1 - coefficient**2)
    return np.asarray(lfilter([1.0], [1.0, -coefficient], noise))


def light(n: int, coefficient: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return optimal values between 1 and 2 and the regrets of two models, both zero in about 40 % of the rows."""
    best, first, second = (ndtr(autoregression(n, coefficient, rng)) for _ in range(3))
    best = 1 + best
    return best, best * np.maximum(0, first - 0.4), best * np.maximum(0, second - 0.45)


def heavy(n: int, coefficient: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lognormal optimal values and regrets that are zero in half of the rows, with a lognormal tail."""
    best, first, second = (autoregression(n, coefficient, rng) for _ in range(3))
    best = np.exp(best)
    return best, 0.2 * best * np.exp(first) * (first > 0), 0.15 * best * np.exp(second) * (second > 0)


@cache
def population() -> FloatArray:
    """Return optimal values and the regrets of WISE and of least squares (3, 100,000), by the sum of the regrets."""
    train, test = make_shortest_path(100_300, degree=8, seed=9008).split(300)
    truth = Hindsight.of(test.problem, test.costs)
    models = [model.fit(train.X, train.costs) for model in (WiseRegressor(), GeneralizedLinear())]
    rows = np.array([truth.best, *(truth.regret(model.predict(test.X)) for model in models)])
    return rows[:, np.argsort(rows[1] + rows[2], kind="stable")]


def paths(n: int, coefficient: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw rows of the population; their ranks by regret follow an autoregression."""
    every = population()
    best, first, second = every[:, (ndtr(autoregression(n, coefficient, rng)) * every.shape[1]).astype(int)]
    return best, first, second


def ratios_of_paths() -> tuple[tuple[float, float], float]:
    best, first, second = population().mean(axis=1)
    return (first / best, second / best), best


#: The function that draws; and one that returns the true ratios of the two models, and the mean of the optimal value.
TAILS = {
    "light": (light, lambda: ((0.6**2 / 2, 0.55**2 / 2), 1.5)),
    "heavy": (heavy, lambda: ((0.2 * exp(0.5) * ndtr(1), 0.15 * exp(0.5) * ndtr(1)), exp(0.5))),
    "paths": (paths, ratios_of_paths),
}


def percentile_interval(values: FloatArray, sizes: FloatArray, rng: np.random.Generator) -> FloatArray:
    n = len(values)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
    ratios = (counts @ values) / (counts @ sizes)
    return np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])


def coverage(tails: str, coefficient: float, blocks: Blocks, n: int, rounds: int) -> tuple[FloatArray, float]:
    """Return the share of intervals with the true value (regret, difference, per row, percentile), and block length."""
    draw, truths = TAILS[tails]
    (first, second), mean_best = truths()
    hits, lengths = np.zeros(4), []
    for trial in range(rounds):
        rng = np.random.default_rng([n, trial, round(10 * coefficient)])
        best, *regrets = draw(n, coefficient, rng)
        truth = Hindsight(Ball(1), np.ones((n, 1)), best)
        models = dict(zip("ab", regrets, strict=True))
        found = compare_regrets(truth, models, level=LEVEL, n_resamples=N_RESAMPLES, rng=rng, blocks=blocks)
        intervals = [
            (100 * first, found[0].regret[1:]),
            (100 * (second - first), found[1].difference[1:]),
            (first * mean_best, found[0].mean_regret[1:]),
        ]
        if blocks is None:
            intervals.append((first, percentile_interval(regrets[0], best, rng)))
        hits[: len(intervals)] += [low <= true <= high for true, (low, high) in intervals]
        lengths.append(found.block_length)
    return hits / rounds, float(np.median(lengths))


def main(rounds: int = 100, sizes: Sequence[int] = SIZES) -> None:
    error = 100 * sqrt(LEVEL * (1 - LEVEL) / rounds)
    table = Table(
        title=f"Intervals of {100 * LEVEL:g} % that contain the true value, % of {rounds} rounds",
        caption=f"The standard error of a share is {error:.1f} points.",
    )
    headings = ("tails", "rows", "blocks", "n", "length", "regret", "difference", "regret per row", "percentile")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in headings[:3] else "right")
    for tails in TAILS:
        for coefficient, blocks in ORDERS:
            rows = f"AR({coefficient:g})" if coefficient else "independent"
            for n in sizes:
                shares, length = coverage(tails, coefficient, blocks, n, rounds)
                cells = [f"{100 * share:.1f}" for share in shares[: 4 if blocks is None else 3]]
                table.add_row(tails, rows, str(blocks), f"{n:,}", f"{length:g}", *cells)
        table.add_section()
    Console(width=110).print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the coverage of the intervals of `compare`.")
    parser.add_argument("--rounds", type=int, default=100, help="simulated tables per line (default 100)")
    main(parser.parse_args().rounds)
