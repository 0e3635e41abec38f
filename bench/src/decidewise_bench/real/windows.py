"""Rows in the order of time: earlier costs as features, and the rolling origin."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from decidewise.data import Dataset
from decidewise.kit.checks import FloatArray, as_integer
from decidewise.problems.contract import Problem


def before(values: FloatArray, rows: int) -> FloatArray:
    """Return the values of some rows before, of the same shape; NaN where there are none yet.

    >>> before(np.array([1.0, 2.0, 3.0]), 1)
    array([nan,  1.,  2.])
    """
    return np.concatenate([np.full((rows, *values.shape[1:]), np.nan), values[:-rows]])


def mean_before(values: FloatArray, rows: int, *, every: int = 1) -> FloatArray:
    """Return the mean of the values `every`, `2 every`, ... rows before, `rows` of them; NaN where one is missing.

    >>> mean_before(np.array([1.0, 3.0, 5.0, 7.0]), 2)
    array([nan, nan,  2.,  4.])
    """
    return np.mean([before(values, every * i) for i in range(1, rows + 1)], axis=0)


def as_dataset(
    features: Mapping[str, FloatArray], costs: FloatArray, problem: Problem, days: npt.NDArray[np.datetime64] | None
) -> Dataset:
    """Return the rows in which all features and costs are known, in their order.

    Parameters
    ----------
    features : mapping of str to arrays of shape (n, d), (n, 1) or (d,)
        One value per row and item, per row, or per item.
    problem : Problem
        If it differs by row, it has n rows.
    days : array of shape (n,), optional
        The names of the rows.
    """
    X = np.stack([np.broadcast_to(values, costs.shape) for values in features.values()], axis=2)
    complete = np.flatnonzero(np.isfinite(X).all(axis=(1, 2)) & np.isfinite(costs).all(axis=1))
    return Dataset(
        X[complete],
        costs[complete],
        problem.take(complete),
        row_names=None if days is None else days[complete],
        feature_names=tuple(features),
    )


def take_window(data: Dataset, n: int, seed: int, *, windows: int, step: int) -> Dataset:
    """Return the n rows of one window of a rolling origin: the last of the windows ends at the last row.

    Parameters
    ----------
    seed : int
        The number of the window, from 0. Each window begins, and ends, `step` rows after the one before.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> days = Dataset(np.arange(10.0)[:, None], np.zeros((10, 2)), TopK(2, 1))
    >>> [take_window(days, 5, window, windows=3, step=2).X[:, 0] for window in range(3)]
    [array([1., 2., 3., 4., 5.]), array([3., 4., 5., 6., 7.]), array([5., 6., 7., 8., 9.])]
    """
    windows, step = as_integer(windows, name="windows"), as_integer(step, name="step")
    if not 0 <= seed < windows:
        raise ValueError(f"there are {windows} windows, numbered from 0; there is no window {seed}. Use fewer trials.")
    first = len(data) - n - (windows - 1 - seed) * step
    if first < 0:
        raise ValueError(
            f"{windows} windows of {n:,} rows, {step:,} apart, need {n + (windows - 1) * step:,} rows; there are "
            f"{len(data):,}. Use fewer samples, fewer windows or a smaller step."
        )
    return data[first : first + n]
