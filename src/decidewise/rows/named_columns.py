"""A table from any source as named columns: files, frames of pandas and polars, Arrow tables, and dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import FloatArray, as_array, listed, shown
from decidewise.rows.columns import one_column, select_columns
from decidewise.rows.file_blocks import read_files
from decidewise.rows.find import FORMATS


@dataclass(frozen=True)
class NamedColumns:
    """The columns of a table, by name.

    Attributes
    ----------
    names : tuple of str
    n_rows : int
    first_row : int
        The number of the first row, counted from 0, if these are only some rows of a table.

    Examples
    --------
    >>> table = NamedColumns.of({"day": ["mon", "tue"], "x_a": [1, 2], "x_b": [3, 4]})
    >>> table.matching("x_*", argument="features"), table.numbers(["x_b"])[:, 0]
    (['x_a', 'x_b'], array([3., 4.]))
    """

    names: tuple[str, ...]
    n_rows: int
    read: Callable[[str], Any]
    first_row: int = 0

    @classmethod
    def of(cls, source: Any) -> NamedColumns:
        """Return the columns of a source; its library is not imported unless the source is a file."""
        if isinstance(source, str | Path):
            source = read_files(source)
        if isinstance(source, Mapping):
            lengths = {name: len(values) for name, values in source.items()}
            if len(set(lengths.values())) > 1:
                raise ValueError(f"the columns of the table must be equally long; they have {lengths} entries.")
            return cls._checked(source, next(iter(lengths.values()), 0), lambda name: source[name])
        if hasattr(source, "column_names") and hasattr(source, "num_rows"):  # Arrow
            return cls._checked(source.column_names, source.num_rows, lambda name: _of_arrow(source.column(name)))
        if hasattr(source, "columns") and hasattr(source, "shape"):  # pandas, polars
            return cls._checked(source.columns, source.shape[0], lambda name: source[name].to_numpy())
        raise TypeError(
            f"a table is a path of a file ({FORMATS}), a frame of pandas or polars, an Arrow table, or a dictionary "
            f"of columns; got {shown(source)}."
        )

    @classmethod
    def _checked(cls, names: Iterable[Any], n_rows: int, read: Callable[[str], Any]) -> NamedColumns:
        columns = list(names)
        unnamed = [name for name in columns if not isinstance(name, str)]
        if unnamed:
            raise ValueError(f"the columns of a table must have text as names; got {listed(unnamed)}.")
        twice = [name for place, name in enumerate(columns) if name in columns[:place]]
        if twice:
            raise ValueError(f"the columns of a table must have different names; {listed(twice)} occur twice.")
        if not columns or not n_rows:
            raise ValueError(f"the table is empty: it has {n_rows} rows and {len(columns)} columns.")
        return cls(tuple(columns), int(n_rows), read)

    def matching(self, wanted: Any, *, argument: str) -> list[str]:
        """Return the columns that a name, a pattern such as `"x_*"`, or a list of these selects, each of them once."""
        return select_columns(self.names, wanted, argument=argument)

    def one(self, name: Any, *, argument: str) -> str:
        """Return the single column that a name or a pattern selects."""
        return one_column(self.names, name, argument=argument)

    def numbers(self, names: Iterable[str]) -> FloatArray:
        """Return numeric columns (n, k), not yet checked to be finite."""
        return np.column_stack([as_array(self.read(name), name=f"column {name!r}") for name in names])

    def keys(self, name: str) -> npt.NDArray[Any]:
        """Return a column of keys (n,): integers, dates or text; raise if one is missing."""
        keys = np.asarray(self.read(name))
        if keys.dtype.kind == "f" and np.isfinite(keys).all() and (keys == np.round(keys)).all():
            keys = keys.astype(np.int64)  # whole numbers that a reader widened
        missing = np.zeros(len(keys), dtype=bool)
        if keys.dtype.kind in "Mmf":
            missing = np.isnat(keys) if keys.dtype.kind in "Mm" else np.isnan(keys)
        elif keys.dtype.kind == "O":  # None, NaN, and pandas.NA, which is no bool
            missing = np.array([key is None or str(key) in ("nan", "<NA>", "NaT") for key in keys])
        if missing.any():
            raise ValueError(f"column {name!r} has no key in row {int(missing.argmax())} of the table. Drop the row.")
        return keys.astype(str) if keys.dtype.kind == "O" else keys


def _of_arrow(column: Any) -> npt.NDArray[Any]:
    """Return a column of an Arrow table; categories as their values, for otherwise their gaps would become values."""
    if hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)
    values: npt.NDArray[Any] = column.to_numpy()
    return values
