"""Confidence intervals of ratios of sums, for rows that are independent or come in an order.

A normalised regret is the ratio `r = Σ a / Σ b` of regrets `a` and sizes `b`, and a mean is the ratio with `b = 1`.
With the residuals `e = a - r · b`, the standard error of `r` is `s = sqrt(Σ e²) / Σ b`. The interval is `r ± q · s`,
where `q` is the quantile of `|r* - r| / s*` over resamples of the rows: a symmetric studentised bootstrap. Because each
resample has its own standard error, `q` is larger than the normal quantile if there are few rows or heavy tails.

For rows in an order the bootstrap draws blocks of consecutive rows, so that neighbours stay together: the sums over a
block take the place of a row. With few blocks `q` grows as the quantile of Student's distribution does.

References
----------
Hall, "On symmetric bootstrap confidence intervals", Journal of the Royal Statistical Society B 50 (1988).
Politis and Romano, "A circular block-resampling procedure for stationary data" (1992).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import Any, Literal, NamedTuple

import numpy as np

from decidewise.kit.checks import FloatArray, as_integer, as_number, as_rng, shown
from decidewise.kit.progress import tracked

#: None: rows are independent. "auto" or an integer: rows are in an order; the length of the blocks that are drawn.
Blocks = Literal["auto"] | int | None

#: The number of row indices that the bootstrap draws at a time: few enough to fit in the processor's cache.
BLOCK_SIZE = 2**16
#: If there are more rows than this, the bootstrap draws from this many groups of rows.
N_GROUPS = 2**16
#: The least number of resamples that one matrix product sums up.
N_AT_ONCE = 8
#: The standard error of a resample counts as at least this part of that of all rows. It matters if the regret comes
#: from a few rows, which a resample may miss: the interval then ends at five times the estimate, not at infinity.
LEAST_ERROR = 0.25
#: Values above minus this, relative to the largest, are negative by rounding only.
ROUNDING = 1e-9
#: Blocks are this many times as long as the rule for the variance says. An interval of few blocks is widened as it
#: should be, one of short blocks is not: by simulation, coverage gains from longer blocks.
BLOCK_FACTOR = 2.0
#: Blocks have at least so many rows, if four of them fit. From few rows in heavy tails the rule cannot see how far
#: they depend on each other; by simulation, blocks that are too long cost less than those that are too short.
LEAST_ROWS = 25


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval.

    Examples
    --------
    >>> regret = Interval(12.5, 11.0, 14.0)
    >>> print(regret, regret.scaled(2.0).high)
    12.50 [11.00, 14.00] 28.0
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:z.2f} [{self.low:z.2f}, {self.high:z.2f}]"

    def scaled(self, factor: float) -> Interval:
        """Return the interval in other units: all three numbers times a positive factor."""
        return Interval(*(factor * value for value in self))


def plus_minus(interval: Interval, unit: str = "") -> str:
    """Return an estimate ± half the width of its interval: two digits of the width, and as many of the estimate.

    >>> plus_minus(Interval(15.12, 7.46, 22.78), " EUR"), plus_minus(Interval(-2345.0, -3023.0, -1667.0))
    ('15.1 ± 7.7 EUR', '-2,340 ± 680')
    """
    width = abs(interval.high - interval.low) / 2
    if not isfinite(width) or not 1e-4 <= width < 1e12:
        return f"{number(interval.estimate)} ± {number(width)}{unit}"
    digits = 1 - floor(log10(width))
    return " ± ".join(f"{round(x, digits):z,.{max(digits, 0)}f}" for x in (interval.estimate, width)) + unit


def number(value: float) -> str:
    """Return a number to three digits, without an exponent where it is readable.

    >>> number(1243.4), number(0.01234), number(-7.0), number(-0.0), number(1e-9)
    ('1,243', '0.0123', '-7', '0', '1e-09')
    """
    value += 0.0  # no minus before a zero
    if value and not 1e-4 <= abs(value) < 1e12:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class Bootstrap:
    """The options of a bootstrap interval, checked.

    Attributes
    ----------
    level : float
        The probability, between 0 and 1, with which the interval should contain the true value.
    n_resamples : int
    rng : numpy.random.Generator
    blocks : None, "auto" or int
        See `regret_interval`.
    """

    level: float
    n_resamples: int
    rng: np.random.Generator
    blocks: Blocks

    @classmethod
    def of(cls, level: float, n_resamples: int, rng: np.random.Generator | None, blocks: Any) -> Bootstrap:
        """Check the options, before any row is solved."""
        if isinstance(blocks, str) and blocks != "auto":
            raise ValueError(f'blocks must be None, "auto" or a number of rows; got {shown(blocks)}.')
        if not (blocks is None or isinstance(blocks, str)):
            blocks = as_integer(blocks, name="blocks")
        return cls(
            as_number(level, name="level", above=0, below=1),
            as_integer(n_resamples, name="n_resamples"),
            np.random.default_rng(0) if rng is None else as_rng(rng),
            blocks,
        )

    def length(self, values: FloatArray, sizes: FloatArray, rows_each: int = 1) -> int:
        """Return the number of rows per block for values (n, k) and sizes (n,): the largest that a column asks for.

        `rows_each` is the number of rows of which each entry is the sum, and the result is then in entries.
        """
        n = len(values)
        if self.blocks is None:
            return 1
        if isinstance(self.blocks, str):
            ratios = values.sum(axis=0) / sizes.sum()
            residuals = [column - ratio * sizes for column, ratio in zip(values.T, ratios, strict=True)]
            return max(block_length(column, rows_each) for column in residuals)
        if self.blocks > max(1, n // 2):
            raise ValueError(
                f"blocks={self.blocks} is too long for {n} rows; at least two blocks must fit. Pass at most {n // 2}, "
                'or "auto".'
            )
        return self.blocks

    def ratios(self, values: FloatArray, sizes: FloatArray, length: int) -> list[list[Interval]]:
        """Return an interval of `Σ values / Σ sizes` for each column of sizes and each column of values.

        All come from the same resamples.

        Parameters
        ----------
        values : ndarray of shape (n, k)
        sizes : ndarray of shape (n, m)
            Not negative, and with a positive sum.
        length : int
            The number of rows per block.
        """
        totals, scale = values.sum(axis=0), sizes.sum(axis=0)
        estimates = totals[:, np.newaxis] / scale  # (k, m), like all arrays of one number per interval below
        drawn = _Units.of(np.column_stack([values, sizes]), length, self.rng)
        values_drawn, sizes_drawn = np.split(drawn.sums, [values.shape[1]], axis=1)
        residuals = values_drawn[:, :, np.newaxis] - estimates * sizes_drawn[:, np.newaxis]
        largest = np.abs(residuals).max(axis=0)  # divide by it first, so that squares stay in range
        residuals /= np.where(largest > 0, largest, 1.0)
        spread = np.sqrt((residuals**2).mean(axis=0))
        residuals /= np.where(spread > 0, spread, 1.0)
        quantiles = np.quantile(self._deviations(drawn, residuals, sizes_drawn / scale), self.level, axis=0)
        margins = quantiles * largest * spread * np.sqrt(drawn.n_independent) / scale
        # Where all rows have the same sign, as regrets have, so have the ends of the interval.
        rounding = ROUNDING * np.abs(values).max(axis=0)
        least = np.where(values.min(axis=0) >= -rounding, 0.0, -np.inf)[:, np.newaxis]
        most = np.where(values.max(axis=0) <= rounding, 0.0, np.inf)[:, np.newaxis]
        lows = np.maximum(estimates - margins, np.minimum(estimates, least))
        highs = np.minimum(estimates + margins, np.maximum(estimates, most))
        return [
            [Interval(*ends) for ends in zip(*column, strict=True)]
            for column in zip(estimates.T.tolist(), lows.T.tolist(), highs.T.tolist(), strict=True)
        ]

    def _deviations(self, drawn: _Units, residuals: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return `|r* - r| / s*` of each resample, for residuals (u, k, m) and sizes (u, m): (n_resamples, k, m)."""
        n_units, k, m = residuals.shape
        products = residuals * sizes[:, np.newaxis]
        flat = [array.reshape(n_units, k * m) for array in (residuals, residuals**2, products)]
        columns = np.column_stack([sizes, sizes**2, *flat])
        # One product for several resamples reads the columns once; each resample is drawn within the cache.
        edges = [*range(0, self.n_resamples, max(N_AT_ONCE, BLOCK_SIZE // n_units)), self.n_resamples]
        deviations = []
        for start, stop in tracked(list(pairwise(edges)), "Resampling rows"):
            sums = drawn.counts(stop - start, self.rng) @ columns
            size, size_squared = sums[:, np.newaxis, :m], sums[:, np.newaxis, m : 2 * m]
            if not size.all():
                raise ValueError(
                    f"too few of the {drawn.n_rows} rows have an optimal value other than 0 for a bootstrap interval. "
                    "Pass more such rows."
                )
            total, squares, product = sums[:, 2 * m :].reshape(-1, 3, k, m).swapaxes(0, 1)
            shift = total / size  # r* - r, up to a factor
            errors = squares - 2 * shift * product + shift**2 * size_squared
            deviations.append(np.abs(total) / np.sqrt(np.maximum(errors, LEAST_ERROR**2 * drawn.n_draws)))
        return np.concatenate(deviations)


class _Units(NamedTuple):
    """What a resample draws: rows, groups of rows or blocks of rows.

    Attributes
    ----------
    sums : ndarray of shape (u, c)
        The sums of c columns over the rows of each unit.
    n_draws : int
        The number of units that a resample draws.
    n_independent : float
        The number of units without overlap that all rows make.
    n_rows : int
    """

    sums: FloatArray
    n_draws: int
    n_independent: float
    n_rows: int

    @classmethod
    def of(cls, columns: FloatArray, length: int, rng: np.random.Generator) -> _Units:
        """Make the units of n rows: blocks if `length` is above 1, and groups if there are too many rows or blocks."""
        n = len(columns)
        if length > 1 and n <= N_GROUPS:
            # Blocks that start at every row; the rows after the last one are the first ones again.
            until = np.cumsum(np.concatenate([np.zeros_like(columns[:1]), columns, columns[: length - 1]]), axis=0)
            return cls(until[length:] - until[:-length], round(n / length), n / length, n)
        if length > 1:
            columns = np.add.reduceat(columns, np.arange(n // length) * length, axis=0)
        if len(columns) > N_GROUPS:
            columns = _grouped(columns, rng)
        return cls(columns, len(columns), len(columns), n)

    def counts(self, n_resamples: int, rng: np.random.Generator) -> FloatArray:
        """Draw units with replacement and return how often each was drawn: (n_resamples, u)."""
        u = len(self.sums)
        step = max(1, BLOCK_SIZE // u)
        counts = np.empty((n_resamples, u))
        for start in range(0, n_resamples, step):
            some = counts[start : start + step]
            drawn = rng.integers(u, size=(len(some), self.n_draws)) + u * np.arange(len(some))[:, np.newaxis]
            some[:] = np.bincount(drawn.ravel(), minlength=some.size).reshape(some.shape)
        return counts


def _grouped(columns: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return column sums over random groups of rows: (n, c) -> (N_GROUPS, c)."""
    group = rng.permutation(len(columns)) % N_GROUPS
    return np.column_stack([np.bincount(group, column, N_GROUPS) for column in columns.T])


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
    least = max(ceil(LEAST_ROWS / rows_each), ceil(n ** (1 / 3)))
    return min(max(1, n // 4), max(least, round(BLOCK_FACTOR * _length_for_the_variance(series))))


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
