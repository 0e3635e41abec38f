"""Demand of the next day: the stores of a bakery, the dishes of a restaurant."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decidewise.data import Dataset
from decidewise.kit.checks import FloatArray
from decidewise.problems import TopK
from decidewise.rows.columns import NamedColumns
from decidewise_bench.real.files import find_file
from decidewise_bench.real.windows import as_dataset, before, mean_before, take_window

WEEK = 7


def bakery(n: int, *, seed: int, windows: int, step: int, file: str, product: int = 101, k: int = 10) -> Dataset:
    """Choose the `k` stores of a bakery chain with the largest demand for a product on the next day.

    The data come with the package ddop: 35 stores on 1,215 days. The given forecast is the mean of the same weekday in
    the four weeks before. Weather is left out, since only what was observed is in the data.

    Parameters
    ----------
    n, seed, windows, step
        See `take_window`.
    file : str
        The table of features, bakery_data.csv; the demand is in bakery_target.csv beside it.
    """
    table, demand = _read(file, "demand")
    names = ("store", "product", "is_schoolholiday", "is_holiday", "promotion_currentweek", "promotion_lastweek")
    store, number, school, holiday, promotion, promoted = table.numbers(names).T
    days, stores = table.keys("date").astype("datetime64[D]"), np.unique(store)
    rows = np.flatnonzero(number == product)
    rows = rows[np.lexsort((store[rows], days[rows]))]
    days = days[rows].reshape(-1, len(stores))[:, 0]
    by_store = {
        "school holiday": school,
        "holiday": holiday,
        "promotion": promotion,
        "promotion last week": promoted,
    }
    more = {name: values[rows].reshape(-1, len(stores)) for name, values in by_store.items()}
    data = _tomorrow(demand[rows].reshape(-1, len(stores)), days, more, k)
    return take_window(data, n, seed, windows=windows, step=step)


def restaurant(n: int, *, seed: int, windows: int, step: int, file: str, k: int = 3) -> Dataset:
    """Choose the `k` dishes of a restaurant with the largest demand on the next day it is open.

    As in `bakery`; `file` is yaz_data.csv, and yaz_target.csv is beside it, with one column per dish.
    """
    table, demand = _read(file)
    open_days = np.flatnonzero(table.numbers(["is_closed"])[:, 0] == 0)
    days = table.keys("date").astype("datetime64[D]")[open_days]
    holiday = table.numbers(["is_holiday"])[open_days]
    data = _tomorrow(demand[open_days], days, {"holiday": holiday}, k)
    return take_window(data, n, seed, windows=windows, step=step)


def _read(file: str, *columns: str) -> tuple[NamedColumns, FloatArray]:
    """Return the features and the demand, in the same order; of all columns, if none are named."""
    path = find_file(file)
    targets = NamedColumns.of(path.with_name(path.name.replace("_data", "_target")))
    demand = targets.numbers(columns or targets.names)
    return NamedColumns.of(path), demand[:, 0] if columns else demand


def _tomorrow(demand: FloatArray, days: npt.NDArray[np.datetime64], more: dict[str, FloatArray], k: int) -> Dataset:
    weekday = (days.astype(int) + 3) % WEEK  # 0 is a Monday: 1 January 1970 was a Thursday
    features = {
        "mean of the weekday": mean_before(demand, 4, every=WEEK),
        "yesterday": before(demand, 1),
        "last week": before(demand, WEEK),
        "mean of 28 days": mean_before(demand, 4 * WEEK),
        "saturday": (weekday == 5).astype(float)[:, None],
        "sunday": (weekday == 6).astype(float)[:, None],
        **more,
    }
    demand = np.where((demand > 0).any(axis=1, keepdims=True), demand, np.nan)  # closed: there is nothing to decide
    return as_dataset(features, demand, TopK(demand.shape[1], k), days)
