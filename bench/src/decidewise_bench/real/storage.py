"""A battery on a day-ahead market, with two published forecasts of every price."""

from __future__ import annotations

import numpy as np

from decidewise.data import Dataset
from decidewise.problems import Storage
from decidewise.rows.columns import NamedColumns
from decidewise_bench.real.files import find_file
from decidewise_bench.real.windows import as_dataset, before, take_window

HOURS = 24


def day_ahead_storage(n: int, *, seed: int, windows: int, step: int, file: str) -> Dataset:
    """Read hourly prices and decide, one day ahead, when a battery of four hours buys and sells.

    Lago et al., Forecasting day-ahead electricity prices (Applied Energy, 2021), publish the prices of five markets and
    two forecasts of each price: of a deep network ("the given forecast") and of a LASSO-type model.

    Parameters
    ----------
    n, seed, windows, step
        See `take_window`.
    file : str
        A table with the columns time, price, dnn_forecast and lear_forecast, one row per hour.
    """
    table = NamedColumns.of(find_file(file))
    price, network, lasso = (
        column.reshape(-1, HOURS) for column in table.numbers(["price", "dnn_forecast", "lear_forecast"]).T
    )
    days = table.keys("time")[::HOURS].astype("datetime64[D]")
    hour = 2 * np.pi * np.arange(HOURS) / HOURS
    yesterday = before(price, 1)
    features = {
        "network": network,
        "yesterday": yesterday,
        "lasso": lasso,
        "last week": before(price, 7),
        "mean of yesterday": yesterday.mean(axis=1, keepdims=True),
        "sine of the hour": np.sin(hour),
        "cosine of the hour": np.cos(hour),
    }
    battery = Storage(HOURS, power=1.0, energy=4.0, efficiency=0.9)
    return take_window(as_dataset(features, price, battery, days), n, seed, windows=windows, step=step)
