"""The energy knapsack of the benchmarks of predict-then-optimize, without what was not known in advance."""

from __future__ import annotations

import numpy as np

from decidewise.data import Dataset
from decidewise.problems import Knapsack
from decidewise_bench.real.files import find_file
from decidewise_bench.real.windows import as_dataset, before, take_window

ITEMS = 48
#: The columns of the features that were known the day before. The last one of the file, the intensity of CO2, was not.
_HOLIDAY, _WEEKDAY, _WEEK, _WIND, _LOAD, _PRICE = 1, 2, 3, 5, 6, 7


def energy_knapsack(n: int, *, seed: int, windows: int, step: int, file: str, capacity: float) -> Dataset:
    """Choose half-hours whose weights fit into a capacity; their values were made from the Irish prices.

    Mandi et al., Decision-focused learning: foundations, state of the art, benchmark and future opportunities (JAIR,
    2024). The given forecast of a value is the market operator's forecast of the price, times the weight: an item's
    value is about its price times its weight.

    Parameters
    ----------
    n, seed, windows, step
        See `take_window`.
    file : str
        An archive of NumPy arrays: X_1gtrain, X_1gtest, y_train, y_test and weights.
    """
    with np.load(find_file(file)) as arrays:
        X = np.concatenate([arrays["X_1gtrain"], arrays["X_1gtest"]]).reshape(-1, ITEMS, arrays["X_1gtrain"].shape[1])
        values = np.concatenate([arrays["y_train"], arrays["y_test"]]).reshape(-1, ITEMS)
        weights = arrays["weights"].astype(float)
    if (np.diff(X[:, :, 0], axis=0) <= 0).any():
        raise ValueError("the days of the energy knapsack are not in the order of time.")
    yesterday = before(values, 1)
    features = {
        "forecast": X[:, :, _PRICE] * weights,
        "yesterday": yesterday,
        "last week": before(values, 7),
        "mean of yesterday": yesterday.mean(axis=1, keepdims=True),
        "weight": weights,
        "price": X[:, :, _PRICE],
        "load": X[:, :, _LOAD],
        "wind": X[:, :, _WIND],
        "weekend": np.isin(X[:, :, _WEEKDAY], (0, 6)).astype(float),
        "holiday": X[:, :, _HOLIDAY],
        "week": X[:, :, _WEEK],
    }
    data = as_dataset(features, values, Knapsack(weights, capacity), None)
    return take_window(data, n, seed, windows=windows, step=step)
