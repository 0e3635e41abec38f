"""The columns of a file as a matrix, without copying them into one before somebody needs it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray


class ColumnMatrix:
    """Columns of equal length, which stay where they were read.

    Some rows of it are an array; so are all of them, which are then kept for the next who asks.

    Examples
    --------
    >>> matrix = ColumnMatrix([np.array([1.0, 2.0, 3.0]), np.array([4, 5, 6])])
    >>> matrix.shape, matrix[1:]
    ((3, 2), array([[2., 5.],
           [3., 6.]]))
    """

    ndim = 2

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns: list[FloatArray] = [np.require(column, np.float64, ["C", "A"]) for column in columns]
        self.shape = (len(self.columns[0]), len(self.columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> FloatArray:
        return self._copied([column[rows] for column in self.columns])

    @cached_property
    def array(self) -> FloatArray:
        """All rows (b, k), by columns; the columns are then those of this array, and what was read can be freed."""
        array = self._copied(self.columns)
        self.columns = list(array.T)
        return array

    @staticmethod
    def _copied(columns: Sequence[FloatArray]) -> FloatArray:
        return np.array(columns).T

    def in_one_memory(self) -> tuple[FloatArray, Any]:
        """Return one long view from the first column in memory to the last, and where in it each column begins.

        Compiled code can so read any number of columns. Only the columns themselves may be read.
        """
        addresses = np.array([column.ctypes.data for column in self.columns], dtype=np.int64)
        first = int(addresses.argmin())
        places = (addresses - addresses[first]) // 8
        size = int(places.max()) + len(self)
        memory = np.lib.stride_tricks.as_strided(self.columns[first], (size,), (8,), writeable=False)
        return memory, places
