"""Tables in files that need not fit into memory, block by block."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from decidewise.data.files import (
    Decoded,
    check_same_columns,
    check_text,
    check_text_columns,
    kind_of_file,
    named_errors,
    open_text,
    paths_of,
    separator_of,
)
from decidewise.errors import InputError
from decidewise.runtime.extras import require
from decidewise.streams.table_file import in_blocks, open_arrow, what_changed

#: Bytes of numbers in one block, and of text that is parsed at once.
_BLOCK_BYTES, _TEXT_BYTES = 2**22, 2**21
_MOST_ROWS, _LEAST_ROWS = 2**15, 256
#: Bytes in memory per byte of a file: numbers as text are about as long as in memory, small ones shorter.
_BYTES_PER_BYTE = {"text": 2.0, "gzip": 10.0, "arrow": 1.0}


@dataclass(frozen=True)
class FileBlock:
    """Some consecutive rows of a table.

    Attributes
    ----------
    table : pyarrow.Table
    first : int
        The number of its first row, counted from 0 over all files.
    origin : str
        The name of the file.
    n_bytes : int
        About how many bytes of the files were read for it.
    line : int
        The number of its first row within its file, counted from 0.
    """

    table: Any
    first: int
    origin: str
    n_bytes: int
    line: int = 0


class FileBlocks:
    r"""The blocks of a table in a file, in all files of a folder, or in all files that match a pattern.

    Parameters
    ----------
    source, separator, decimal, encoding
        As for `read_files`.
    exact : sequence of str
        Columns of text files whose whole numbers are keys. Those of other columns may be followed by fractions, so
        they are read as such.

    Attributes
    ----------
    names : tuple of str
        All columns.
    n_bytes : int
        The size of the files.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "a.csv")
    >>> _ = path.write_text("day,cost\n1,2.5\n2,3.5\n")
    >>> blocks = FileBlocks(path)
    >>> [(block.first, block.table["cost"].to_pylist()) for block in blocks]
    [(0, [2.5, 3.5])]
    """

    def __init__(
        self,
        source: str | Path,
        *,
        separator: str | None = None,
        decimal: str = ".",
        encoding: str = "utf-8",
        exact: Sequence[str] = (),
    ) -> None:
        self.paths = paths_of(Path(source))
        require("cli", "pyarrow", by=f"reading {self.paths[0].name}")
        self.separator, self.decimal, self.encoding, self.exact = separator, decimal, encoding, set(exact)
        self._stamps = {path: _stamp(path) for path in self.paths}
        self._decoded = Decoded(encoding)  # once, for all passes
        self._types: dict[str, Any] = {}
        for path in self.paths:
            if not path.stat().st_size:
                raise InputError(f"{path.name} is empty: it has no line at all.")
            with named_errors(path):
                names = self._names(path)
            if path == self.paths[0]:
                self.names = tuple(names)
            check_same_columns(self.paths[0], self.names, path, names)
        self.n_bytes = sum(size for size, _ in self._stamps.values())
        self.block_rows = min(_MOST_ROWS, max(_LEAST_ROWS, _BLOCK_BYTES // (8 * max(1, len(self.names)))))

    def __iter__(self) -> Iterator[FileBlock]:
        return self.after(0)

    def after(self, n_rows: int) -> Generator[FileBlock, None, None]:
        """Yield the blocks, without the first `n_rows` rows."""
        first = 0
        for path in self.paths:
            begin = first
            with named_errors(path):
                for table, n_bytes in self._tables(path):
                    self._check_unchanged(path)
                    for place in range(0, table.num_rows, self.block_rows):
                        part = table.slice(place, self.block_rows)
                        skipped = min(max(0, n_rows - first), part.num_rows)
                        share = n_bytes * part.num_rows // table.num_rows
                        if skipped < part.num_rows:
                            number = first + skipped
                            yield FileBlock(part.slice(skipped), number, path.name, share, number - begin)
                        first += part.num_rows
            self._check_unchanged(path)

    def stamp(self, path: Path) -> tuple[int, int]:
        """Return the size and the time of change of a file, as they were at the beginning."""
        return self._stamps[path]

    def memory(self) -> int:
        """Return about how many bytes the whole table would take in memory."""
        return sum(int(self._memory(path)) for path in self.paths)

    def _memory(self, path: Path) -> float:
        kind = kind_of_file(path)
        if kind == "parquet":
            from pyarrow import parquet  # noqa: PLC0415 - an optional dependency

            with parquet.ParquetFile(path) as file:
                return max(
                    8.0 * file.metadata.num_rows * file.metadata.num_columns,
                    sum(file.metadata.row_group(group).total_byte_size for group in range(file.num_row_groups)),
                )
        return _BYTES_PER_BYTE["gzip" if path.name.lower().endswith(".gz") else str(kind)] * path.stat().st_size

    def _names(self, path: Path) -> list[str]:
        """Return the columns of a file; find the types of those of the first text file."""
        kind = kind_of_file(path)
        if kind == "parquet":
            from pyarrow import parquet  # noqa: PLC0415 - an optional dependency

            return list(parquet.read_schema(path).names)
        if kind == "arrow":
            with open_arrow(path) as (file, _):
                return list(file.schema.names)
        check_text(path, self.separator, self.decimal, self.encoding)
        with self._open_text(path) as (file, _):
            schema = file.schema
        check_text_columns(path, schema)
        if not self._types:
            self._types = {name: self._loose(schema.field(place)) for place, name in enumerate(schema.names)}
        return list(schema.names)

    def _loose(self, field: Any) -> Any:
        """Return the type to read a column with, from that of its first lines."""
        import pyarrow as pa  # noqa: PLC0415 - an optional dependency

        if pa.types.is_null(field.type):
            return pa.string()
        return pa.float64() if pa.types.is_integer(field.type) and field.name not in self.exact else field.type

    def _tables(self, path: Path) -> Iterator[tuple[Any, int]]:
        """Yield parts of a file as tables, each with the bytes that were read for it."""
        import pyarrow as pa  # noqa: PLC0415 - an optional dependency

        kind, size = kind_of_file(path), path.stat().st_size
        if kind == "parquet":
            from pyarrow import parquet  # noqa: PLC0415

            with parquet.ParquetFile(path, **in_blocks(parquet.read_metadata(path))) as file:
                n_rows = max(1, file.metadata.num_rows)
                for batch in file.iter_batches(self.block_rows, columns=list(self.names)):
                    yield pa.Table.from_batches([batch]), size * batch.num_rows // n_rows
        elif kind == "arrow":
            with open_arrow(path, self.names) as (file, is_mapped):
                for place in range(file.num_record_batches):
                    self._check_unchanged(path)
                    table = pa.Table.from_batches([file.get_batch(place)]).select(list(self.names))
                    share = size // file.num_record_batches
                    for first in range(0, table.num_rows, self.block_rows):
                        part = table.slice(first, self.block_rows)
                        if is_mapped:  # copied, since what is mapped can still change
                            self._check_unchanged(path)  # the system ends a process that reads beyond the end of a file
                            part = part.take(np.arange(part.num_rows))
                        yield part, share * part.num_rows // table.num_rows
        else:
            with self._open_text(path, self._types) as (file, raw):
                done = 0
                for batch in file:
                    n_bytes, done = raw.tell() - done, raw.tell()
                    yield pa.Table.from_batches([batch]).select(list(self.names)), n_bytes * size // raw.size()

    @contextmanager
    def _open_text(self, path: Path, types: Any = None) -> Iterator[tuple[Any, Any]]:
        """Yield the batches of a text, and the file that they are read from."""
        from pyarrow import csv  # noqa: PLC0415 - an optional dependency

        options = {
            "read_options": csv.ReadOptions(block_size=_TEXT_BYTES, use_threads=False),
            "parse_options": csv.ParseOptions(
                delimiter=separator_of(path, self.separator, self.encoding), newlines_in_values=True
            ),
            "convert_options": csv.ConvertOptions(
                strings_can_be_null=True, decimal_point=self.decimal, column_types=types or {}
            ),
        }
        with open_text(self._decoded(path)) as (raw, text), csv.open_csv(text, **options) as file:
            yield file, raw

    def _check_unchanged(self, path: Path) -> None:
        now = _stamp(path) if path.exists() else None
        if now != self._stamps[path]:
            what = what_changed(self._stamps[path], now)
            raise InputError(
                f"{path.name} changed while it was read (it {what}), so the result would mix old and new rows. Start "
                "again when nothing writes to it."
            )


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
