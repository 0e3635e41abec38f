"""Folds for rows in the order of time: blocks for choosing a model, and the future for measuring one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import as_integer

Rows = npt.NDArray[np.intp]


class BlockFolds:
    """Hold out each of some consecutive blocks of rows in turn, and train on all rows before and after it.

    Every row is held out once, by models that saw about as many rows as the final fit will. That chooses better models
    than `TimeFolds`, whose first models see few rows. A regret that is reported for the future wants `TimeFolds`.

    Parameters
    ----------
    n_splits : int
        The number of blocks, with about equally many rows. Rows of one time are never split.
    gap : number or timedelta
        How far from a held-out block training rows must be, on both sides, in units of the times (rows, if there are
        none): for rows that depend on their neighbours.

    Examples
    --------
    >>> for train, test in BlockFolds(3, gap=1).split(np.zeros((6, 1))):
    ...     print(train, test)
    [3 4 5] [0 1]
    [0 5] [2 3]
    [0 1 2] [4 5]
    """

    def __init__(self, n_splits: int = 5, *, gap: Any = 0) -> None:
        self.n_splits = as_integer(n_splits, name="n_splits", minimum=2)
        self.gap = gap

    def __repr__(self) -> str:
        return f"BlockFolds({self.n_splits}, gap={self.gap!r})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield training rows and held-out rows; `groups` are the times of the rows, by default their numbers."""
        n_rows = np.shape(X)[0]
        times = np.arange(n_rows) if groups is None else as_times(groups, n_rows)
        moments = np.unique(times)
        if len(moments) < self.n_splits:
            raise ValueError(
                f"{self.n_splits} blocks need at least {self.n_splits} different times; there are {len(moments)}. Pass "
                "more rows or fewer folds."
            )
        rows = np.arange(n_rows)
        for fold, block in enumerate(np.array_split(moments, self.n_splits)):
            known = (times < block[0] - self.gap) | (times > block[-1] + self.gap)
            if not known.any():
                raise ValueError(
                    f"fold {fold}, from {block[0]} to {block[-1]}, has no training rows with gap={self.gap!r}. Use a "
                    "shorter gap or more folds."
                )
            yield rows[known], rows[(times >= block[0]) & (times <= block[-1])]


class TimeFolds:
    """Hold out consecutive stretches of time, and train on the rows before each of them.

    Rows of one time are never split, and nothing is trained on what was not known yet when a decision was made.

    Parameters
    ----------
    n_splits : int
        The number of stretches held out. They have about equally many rows; the rows before the first one, a share of
        `1 / (n_splits + 1)`, are only trained on.
    gap : number or timedelta
        How long before a held-out stretch its training rows end, in units of the times (rows, if there are none): for
        costs that become known only after a delay.
    window : number or timedelta, optional
        The length of the training time: a rolling window. By default all of the past, an expanding window.

    Examples
    --------
    >>> for train, test in TimeFolds(2, gap=1, window=3).split(np.zeros((9, 1))):
    ...     print(train, test)
    [0 1] [3 4 5]
    [2 3 4] [6 7 8]
    """

    def __init__(self, n_splits: int = 5, *, gap: Any = 0, window: Any = None) -> None:
        self.n_splits = as_integer(n_splits, name="n_splits")
        self.gap = gap
        self.window = window

    def __repr__(self) -> str:
        return f"TimeFolds({self.n_splits}, gap={self.gap!r}, window={self.window!r})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield training rows and held-out rows; `groups` are the times of the rows, by default their numbers."""
        n_rows = np.shape(X)[0]
        times = np.arange(n_rows) if groups is None else as_times(groups, n_rows)
        moments = np.unique(times)
        if len(moments) <= self.n_splits:
            raise ValueError(
                f"{self.n_splits} folds of time need at least {self.n_splits + 1} different times; there are "
                f"{len(moments)}. Pass more rows or fewer folds."
            )
        size = len(moments) // (self.n_splits + 1)
        begins = moments[len(moments) - self.n_splits * size :: size]
        ends = [*begins[1:], None]
        rows = np.arange(n_rows)
        for fold, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            held_out = (times >= begin) if end is None else (times >= begin) & (times < end)
            last = begin - self.gap
            known = times < last
            if self.window is not None:
                known &= times >= last - self.window
            if not known.any():
                raise ValueError(
                    f"fold {fold}, which begins at {begin}, has no training rows with gap={self.gap!r} and "
                    f"window={self.window!r}. Use fewer folds, a shorter gap or a longer window."
                )
            yield rows[known], rows[held_out]


def as_times(times: Any, n_rows: int) -> Any:
    """Return the times (n,) of the rows as an array; raise unless there is one for each row and none goes back.

    >>> as_times([1, 3, 2], 3)
    Traceback (most recent call last):
    ValueError: the rows must be in the order of time; row 2 (2) comes after row 1 (3) but is earlier. Sort the rows by
    time before fitting.
    """
    array = np.asarray(times)
    if array.shape != (n_rows,):
        raise ValueError(f"times must have one entry for each of the {n_rows} rows; got the shape {array.shape}.")
    if array.dtype.kind not in "iufM":
        raise ValueError(
            f"times must be numbers or dates (numpy.datetime64); got entries of type {array.dtype}. Convert them, for "
            "example with numpy.asarray(times, dtype='datetime64')."
        )
    missing = np.isnat(array) if array.dtype.kind == "M" else ~np.isfinite(array)
    if missing.any():
        raise ValueError(f"times must be known for every row; row {int(missing.argmax())} has none.")
    back = np.flatnonzero(array[1:] < array[:-1])
    if len(back):
        row = int(back[0]) + 1
        raise ValueError(
            f"the rows must be in the order of time; row {row} ({array[row]}) comes after row {row - 1} "
            f"({array[row - 1]}) but is earlier. Sort the rows by time before fitting."
        )
    return array
