"""How many consecutive rows a block of the bootstrap should have, chosen from the data."""

from __future__ import annotations

from math import ceil, log10

import numpy as np

from decidewise.kit.checks import FloatArray

#: Blocks are this many times as long as the rule for the variance says. An interval of few blocks is widened as it
#: should be, one of short blocks is not: by simulation, coverage gains from longer blocks.
FACTOR = 2.0
#: Blocks have at least so many rows, if four of them fit. From few rows in heavy tails the rule cannot see how far
#: they depend on each other; by simulation, blocks that are too long cost less than those that are too short.
LEAST = 25


def block_length(series: FloatArray, rows_each: int = 1) -> int:
    """Return the length of the blocks for a series (n,) in its order: at least 25 rows and `n^(1/3)`, at most `n / 4`.

    If an entry is the sum over several rows, `rows_each` is their number; the length is still in entries.

    The rule estimates the spectrum at zero with a flat-top window, up to the lag after which autocorrelations are
    negligible, and takes the length at which the variance of a circular block bootstrap has the least mean squared
    error, `(2 G² / D)^(1/3) · n^(1/3)` with `G = Σ |k| R(k)` and `D = 4/3 · (Σ R(k))²`. Twice this length is returned.

    References
    ----------
    Politis and White, "Automatic block-length selection for the dependent bootstrap" (2004); corrected with Patton
    (2009).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=1_000)
    >>> block_length(noise), block_length(np.convolve(noise, np.ones(30)))
    (25, 104)
    """
    n = len(series)
    least = max(ceil(LEAST / rows_each), ceil(n ** (1 / 3)))
    return min(max(1, n // 4), max(least, round(FACTOR * _length_for_the_variance(series))))


def _length_for_the_variance(series: FloatArray) -> float:
    n = len(series)
    deviations = series - series.mean()
    largest = np.abs(deviations).max()
    if n < 4 or largest == 0:
        return 1.0
    spectrum = np.fft.rfft(deviations / largest, 2 * n)
    covariances = np.fft.irfft(np.abs(spectrum) ** 2)[:n] / n
    run = max(5, ceil(log10(n) ** 0.5))  # so many negligible autocorrelations in a row end the dependence
    last = min(n - 1, ceil(n**0.5) + run)
    bound = 2 * (log10(n) / n) ** 0.5
    large = np.flatnonzero(np.abs(covariances[1 : last + 1]) >= bound * covariances[0]) + 1
    # The lag before the first run of negligible ones.
    ends = np.concatenate([[0], large, [last + 1]])
    lag = max(1, int(ends[:-1][np.diff(ends) > run][0]) if (np.diff(ends) > run).any() else int(large[-1]))
    window = min(2 * lag, last)
    lags = np.arange(1, window + 1)
    weighted = np.minimum(1.0, 2 * (1 - lags / window)) * covariances[1 : window + 1]
    slope, level = 2 * (lags * weighted).sum(), covariances[0] + 2 * weighted.sum()
    if level <= 0:
        return 1.0
    return float((1.5 * slope**2 / level**2 * n) ** (1 / 3))
