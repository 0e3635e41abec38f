"""Weekly portfolios of twenty stocks."""

from __future__ import annotations

import numpy as np

from decidewise.data import Dataset
from decidewise.kit.checks import FloatArray
from decidewise.problems import Portfolio
from decidewise_bench.real.files import find_file
from decidewise_bench.real.windows import as_dataset, before, mean_before, take_window

DAYS, YEAR = 5, 52
#: The weeks of which a covariance is estimated.
_COVARIANCE = 2 * YEAR


def weekly_portfolios(n: int, *, seed: int, windows: int, step: int, file: str) -> Dataset:
    """Distribute a budget over stocks each week; a week is five trading days, and costs are returns in percent.

    The covariance is that of the two years before each week, and the variance allowed that of equal weights. The given
    forecast is the mean return of the year before.

    Parameters
    ----------
    n, seed, windows, step
        See `take_window`.
    file : str
        Daily prices in CSV: a line of names, then the date and one price per stock in each line.
    """
    table = np.loadtxt(find_file(file), delimiter=",", skiprows=1, dtype=str)[::DAYS]  # which unpacks .gz
    days, prices = table[:, 0].astype("datetime64[D]"), table[:, 1:].astype(float)
    returns = 100 * (prices[1:] / prices[:-1] - 1)
    yesterday = before(returns, 1)
    features = {
        "mean of a year": mean_before(returns, YEAR),
        "last week": yesterday,
        "mean of 4 weeks": mean_before(returns, 4),
        "mean of 13 weeks": mean_before(returns, 13),
        "deviation of 13 weeks": np.sqrt(mean_before(returns**2, 13)),
        "mean of all stocks": yesterday.mean(axis=1, keepdims=True),
    }
    covariances = _covariances_before(returns)
    risk = covariances.mean(axis=(1, 2))
    first = _COVARIANCE
    features = {name: np.broadcast_to(values, returns.shape)[first:] for name, values in features.items()}
    problem = Portfolio(covariances, risk)
    data = as_dataset(features, returns[first:], problem, days[1:][first:])
    return take_window(data, n, seed, windows=windows, step=step)


def _covariances_before(returns: FloatArray) -> FloatArray:
    """Return the covariance (k, d, d) of the weeks before each week but the first `_COVARIANCE`.

    Entries outside the diagonal are shrunk by a tenth, so that no portfolio looks riskless.
    """
    found = np.array([np.cov(returns[i - _COVARIANCE : i].T) for i in range(_COVARIANCE, len(returns))])
    diagonal = found * np.eye(returns.shape[1])
    return diagonal + 0.9 * (found - diagonal)
