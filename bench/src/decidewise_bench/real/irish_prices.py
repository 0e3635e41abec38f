"""Half-hourly prices of the Irish electricity market, and what to decide at them one day ahead."""

from __future__ import annotations

from zipfile import ZipFile

import numpy as np

from decidewise.data import Dataset
from decidewise.kit.checks import FloatArray
from decidewise.problems import TopK
from decidewise.problems.contract import Problem
from decidewise_bench.real.files import find_file
from decidewise_bench.real.scheduling import PERIODS, read_instance, schedule
from decidewise_bench.real.windows import as_dataset, before, take_window

_PRICES = "data/prices2013.dat"
#: The columns of the file that are read, by name. Of the last four fields, which the rules of the challenge forbid as
#: features since they are known only afterwards, the price is the cost and the others are not read. Neither is the
#: weather, which is missing on every fifth day.
_COLUMNS = {
    "holiday": 2,
    "weekday": 3,
    "day": 5,
    "month": 6,
    "year": 7,
    "wind": 9,
    "load": 10,
    "forecast": 11,
    "price": 17,
}


def cheapest_slots(n: int, *, seed: int, windows: int, step: int, file: str, k: int = 10) -> Dataset:
    """Choose the `k` cheapest half-hours of a day.

    The data are those of the ICON challenge on forecasting and scheduling; the given forecast is that of the market's
    operator, one day ahead.

    Parameters
    ----------
    n, seed, windows, step
        See `take_window`.
    file : str
        The archive of the challenge.
    """
    with ZipFile(find_file(file)) as archive:
        data = _days(archive, TopK(PERIODS, k, sense="min"))
    return take_window(data, n, seed, windows=windows, step=step)


def scheduled_tasks(n: int, *, seed: int, windows: int, step: int, file: str, instance: str) -> Dataset:
    """Schedule the tasks of one instance of the challenge, such as "load1/day01.txt", at the prices of each day."""
    with ZipFile(find_file(file)) as archive:
        data = _days(archive, schedule(read_instance(archive.read(instance).decode("ascii"))))
    return take_window(data, n, seed, windows=windows, step=step)


def _days(archive: ZipFile, problem: Problem) -> Dataset:
    with archive.open(_PRICES) as lines:
        table = np.loadtxt(lines, quotechar='"', usecols=tuple(_COLUMNS.values()))  # the header is a comment
    column: dict[str, FloatArray] = {
        name: values.reshape(-1, PERIODS) for name, values in zip(_COLUMNS, table.T, strict=True)
    }
    price, yesterday = column["price"], before(column["price"], 1)
    time = 2 * np.pi * np.arange(PERIODS) / PERIODS
    features = {
        "forecast": column["forecast"],
        "yesterday": yesterday,
        "last week": before(price, 7),
        "mean of yesterday": yesterday.mean(axis=1, keepdims=True),
        "load": column["load"],
        "wind": column["wind"],
        "weekend": np.isin(column["weekday"], (0, 6)).astype(float),
        "holiday": column["holiday"],
        "sine of the time": np.sin(time),
        "cosine of the time": np.cos(time),
    }
    year, month, day = (column[name][:, 0].astype(int) for name in ("year", "month", "day"))
    days = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    return as_dataset(features, price, problem, days.astype("datetime64[D]") + (day - 1))
