"""Parquet, Arrow and CSV files as a source of row blocks, with memory bounded by the size of a block."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from decidewise.kit.checks import FloatArray, as_integer, listed
from decidewise.kit.errors import InputError
from decidewise.kit.machine import map_in_order
from decidewise.kit.progress import RowBar
from decidewise.rows.checkpoint import Checkpoint
from decidewise.rows.columns import ColumnRoles, NamedColumns
from decidewise.rows.file_blocks import open_tables
from decidewise.rows.long_tables import arrange, items_of_first
from decidewise.rows.source import ColumnMatrix, Place, Rows, RowSource, located
from decidewise.rows.table_file import TableFile, TextTable

#: Bytes of numbers in one block, and in one of a fit: sums take little memory besides, and reading is a tenth faster.
#: A pass holds about eight blocks at once on two cores.
BLOCK_BYTES, FIT_BYTES = 2**22, 2**24
_MOST_ROWS, _LEAST_ROWS = 2**16, 256
#: Bytes of files whose columns stay as they were read: enough for compiled sums to be worth loading the compiler.
_LARGE = 2**25


Stored: TypeAlias = FloatArray | ColumnMatrix


class FileRows(RowSource):
    r"""The rows of files, read block by block.

    Parameters
    ----------
    paths : path, glob pattern, folder, or list of these
        Files as for `read_files`, read in the order of their names. All need the same columns.
    features, costs, sample_weight, rows, items, text
        As for `GeneralizedLinear.fit_files`; `costs` may be None for rows to decide on.
    item_names : sequence of str, optional
        The items of a long table in their order; by default numbers and dates in their own, names in that of the first
        sample.
    block_rows : int, optional
        Rows (samples of a long table) per block; by default as many as `block_bytes` hold. Last digits depend on it.
    block_bytes : int
        About how many bytes of numbers a block has, unless `block_rows` is given.
    description : str
        What the bar of a pass says.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("x,c_1,c_2\n1,2,3\n4,5,6\n")
    ...     FileRows(folder, features="x", costs="c_*").first().costs
    array([[2., 3.],
           [5., 6.]])
    """

    def __init__(
        self,
        paths: Any,
        *,
        features: Any,
        costs: Any,
        sample_weight: str | None = None,
        rows: str | None = None,
        items: str | None = None,
        item_names: Sequence[str] = (),
        block_rows: int | None = None,
        block_bytes: int = BLOCK_BYTES,
        text: Mapping[str, Any] | None = None,
        description: str = "rows",
    ) -> None:
        self.files = open_tables(paths, text)
        roles = {"features": features, "costs": costs, "sample_weight": sample_weight, "rows": rows, "items": items}
        if items is None:
            roles["item_names"] = item_names
        columns = self._columns_of(self.files[0], roles)
        for file in self.files[1:]:
            own = self._columns_of(file, roles)
            if own != columns:
                raise ValueError(
                    f"{file.path} has other columns than {self.files[0].path}: {_difference(own, columns)}. All files "
                    "need the same columns; leave this one out, or list the columns by name."
                )
        for file in self.files:
            file.check_numbers(columns.numbers)
        if items is not None:
            columns = columns.with_items(item_names or self._items_of_first(columns))
        self.columns: ColumnRoles = columns
        width = len(columns.numbers) * columns.lines_per_row
        default = min(_MOST_ROWS, max(_LEAST_ROWS, block_bytes // (8 * max(1, width))))
        self.block_rows = default if block_rows is None else as_integer(block_rows, name="block_rows")
        self.description = description
        self._is_large = sum(file.stamp[0] for file in self.files) >= _LARGE
        # The block from which `first` took its rows, and the rest: the next pass goes on from there.
        self._begun: tuple[Rows, Iterator[Rows]] | None = None

    def keep(self, path: Any, model: Any, every: float) -> None:
        """Keep what is finished in a file, from which a later call with the same model and files continues."""
        files = [[str(file.path), *file.stamp] for file in self.files]
        rows = {"files": files, "columns": repr(self.columns), "block_rows": self.block_rows}
        self.checkpoint = Checkpoint.of(path, model, every=every, **rows)

    def blocks(self, first_file: int = 0, first_line: int = 0) -> Iterator[Rows]:
        """Yield the blocks in order, from a line of a file on; no block has rows of two files."""
        number = 0
        for place in range(first_file, len(self.files)):
            file = self.files[place]
            for rows in self._blocks_of(file, first_line if place == first_file else 0):
                yield replace(rows, number=number)
                number += len(rows)

    @property
    def n_rows(self) -> int | None:
        """The number of rows, if the files tell it or a pass has counted them."""
        return self._in_rows([file.n_lines for file in self.files]) or self.n_counted

    @property
    def n_rows_about(self) -> int | None:
        """The number of rows, or an estimate of it, for the time left."""
        lines = [file.n_lines_about if file.n_lines is None else file.n_lines for file in self.files]
        return self.n_rows or self._in_rows(lines)

    def _in_rows(self, lines: Sequence[int | None]) -> int | None:
        return None if None in lines else sum(n for n in lines if n is not None) // max(1, self.columns.lines_per_row)

    def map(
        self, function: Callable[[Rows], Any], begin: Place = (0, 0, 0)
    ) -> Generator[tuple[Rows, Any, Place], None, None]:
        """Yield the blocks with the results of a function, in order, and the place after each."""
        first_file, line, n_rows = begin
        numbers = {file.name: number for number, file in enumerate(self.files)}
        results = map_in_order(partial(_located, function), self._from(first_file, line))
        with closing(results), RowBar(self.description, self.n_rows_about, done=n_rows) as bar:
            for rows, result in results:
                n_rows += len(rows)
                bar.advance(len(rows))
                yield rows, result, (numbers[rows.origin], rows.first + len(rows) * self.columns.lines_per_row, n_rows)

    def _from(self, file: int, line: int) -> Generator[Rows, None, None]:
        """Yield the blocks from a line of a file on; those that `first` has begun to read are not read again."""
        begun, self._begun = self._begun, None
        if begun is None or (file, line) != (0, 0):
            yield from self.blocks(file, line)
        else:
            yield begun[0]
            yield from begun[1]

    @cached_property
    def _first(self) -> Rows:
        blocks = self.blocks()
        for rows in blocks:
            self._begun = rows, blocks
            return rows.head()
        raise ValueError(f"{listed([file.name for file in self.files])} have no rows at all.")

    def _blocks_of(self, file: TableFile, first_line: int) -> Iterator[Rows]:
        columns = self.columns
        per_row, line = columns.lines_per_row, first_line
        types = {name: _wider(file.types[name]) for name in columns.numbers} if isinstance(file, TextTable) else {}
        for parts, _ in file.pieces((*columns.numbers, *columns.keys), first_line, self.block_rows * per_row, types):
            keys = [_keys(parts, name) for name in columns.keys]
            numbers = [_numbers(parts, name) for name in columns.numbers]
            n_lines = sum(part.num_rows for part in parts)
            if columns.items is None:
                found = self._wide(numbers)
            else:
                found = self._long(arrange(np.array(numbers, dtype=np.float64), keys, columns, file.name, line))
            yield Rows(*found, file.name, line, columns, keys=keys[0][::per_row] if keys else None)
            line += n_lines

    def _wide(self, numbers: Sequence[FloatArray]) -> tuple[Stored, Stored | None, FloatArray | None]:
        """Return features, costs and weights of columns (b,), one line per sample."""
        columns = self.columns
        own = dict(zip(columns.numbers, numbers, strict=True))
        X: Stored
        if columns.per_item:
            X = np.array([[own[name] for name in item] for item in columns.features], dtype=np.float64)
            X = X.transpose(2, 0, 1)
        else:
            X = self._matrix([own[name] for name in columns.features])
        costs = self._matrix([own[name] for name in columns.costs]) if columns.costs else None
        weights = np.asarray(own[columns.sample_weight], dtype=np.float64) if columns.sample_weight else None
        return X, costs, weights

    def _matrix(self, columns: Sequence[FloatArray]) -> Stored:
        matrix = ColumnMatrix(columns)
        return matrix if self._is_large else matrix.array

    def _long(self, samples: FloatArray) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
        """Return features, costs and weights of samples (b, d, k)."""
        columns = self.columns
        place = {name: number for number, name in enumerate(columns.numbers)}
        X = samples[:, :, : len(columns.features)]
        costs = samples[:, :, place[columns.costs[0]]] if columns.costs else None
        weights = samples[:, 0, place[columns.sample_weight]] if columns.sample_weight else None
        return X, costs, weights

    def _columns_of(self, file: TableFile, roles: dict[str, Any]) -> ColumnRoles:
        try:
            return ColumnRoles.of(file.names, **roles)
        except ValueError as error:
            raise InputError(f"{file.name}: {error}") from error

    def _items_of_first(self, columns: ColumnRoles) -> tuple[str, ...]:
        import pyarrow as pa  # noqa: PLC0415 - an optional dependency

        for file in self.files:
            for parts, _ in file.pieces(columns.keys, 0, _MOST_ROWS):
                try:
                    return items_of_first(NamedColumns.of(pa.Table.from_batches(parts)), *columns.keys)
                except ValueError as error:
                    raise ValueError(f"{file.name}: {error}") from error
        raise ValueError(f"{listed([file.name for file in self.files])} have no rows at all.")


def _located(function: Callable[[Rows], Any], rows: Rows) -> Any:
    """Return what a function makes of a block; its errors say where the rows came from."""
    with located(rows):
        return function(rows)


def _difference(own: ColumnRoles, first: ColumnRoles) -> str:
    missing = [name for name in first.numbers if name not in own.numbers]
    extra = [name for name in own.numbers if name not in first.numbers]
    parts = [f"{what} {listed(some)}" for what, some in (("without", missing), ("with also", extra)) if some]
    return " and ".join(parts) or "they are in another order"


def _keys(parts: Sequence[Any], name: str) -> Any:
    """Return a column of some record batches, one after the other, as an Arrow array."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    return pa.concat_arrays([part.column(name) for part in parts])


def _numbers(parts: Sequence[Any], name: str) -> FloatArray:
    """Return a column of some record batches as numbers; of a single batch, they are not copied."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    columns = [part.column(name) for part in parts]
    if pa.types.is_decimal(columns[0].type) or pa.types.is_null(columns[0].type):
        columns = [column.cast(pa.float64()) for column in columns]
    arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _wider(kind: Any) -> Any:
    """Return the type to read numbers of text with: whole ones in the first lines may be followed by others."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind
