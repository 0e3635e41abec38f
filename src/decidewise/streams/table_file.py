"""One file of a table as pieces of a given number of lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from decidewise.runtime.extras import require
from decidewise.runtime.files import whole_file
from decidewise.streams.ahead import read_ahead

# Bytes of text that are parsed at once, and most bytes of a batch of an Arrow file that is read as a whole.
_CSV_BYTES, _BATCH_BYTES = 2**22, 2**26
# Bytes of text whose lines are counted to estimate those of all of it.
_HEAD_BYTES = 2**16
# Bytes of a row group of a Parquet file beyond which it is read in parts, of so many bytes of each column.
_GROUP_BYTES, _BUFFER_BYTES = 2**25, 2**18


def open_table(path: Path) -> TableFile:
    """Return the file as a table, by the end of its name."""
    if path.suffix.lower() not in TableFile.KINDS:
        raise ValueError(f"{path} is not a table that can be read; its name must end in {', '.join(TableFile.KINDS)}.")
    require("cli", "pyarrow", by=f"reading {path.name}")
    kind = {".parquet": ParquetTable, ".pq": ParquetTable, ".csv": CsvTable}.get(path.suffix.lower(), ArrowTable)
    return kind(path)


def write_parquet(path: Path, tables: Iterator[dict[str, Any]]) -> None:
    """Write tables, one after another, to one Parquet file, whole or not at all."""
    require("cli", "pyarrow", by=f"writing {path.name}")
    import pyarrow  # noqa: PLC0415 - an optional dependency
    from pyarrow import parquet  # noqa: PLC0415

    writer: Any = None
    with whole_file(path) as beside:
        try:
            for columns in tables:
                table = pyarrow.table(columns)
                writer = writer or parquet.ParquetWriter(beside, table.schema)
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise ValueError("there are no rows at all. Pass at least one file with rows.")


class TableFile(ABC):
    """A file of a table.

    Attributes
    ----------
    path : Path
    name : str
        The path as the user gave it, for messages.
    names : list of str
        All columns.
    n_lines : int or None
        None if it is not known without reading the file.
    n_lines_about : int or None
        An estimate of it, from the first lines of a text, for the time left.
    stamp : (int, int)
        Size and time of change, to see whether the file changes.
    """

    KINDS: ClassVar = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv")

    n_lines: int | None = None
    n_lines_about: int | None = None
    _is_mapped = False

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.stamp = path, str(path), _stamp(path)
        with self._named_errors():
            columns = self._open()
        self.names, self._types = [name for name, _ in columns], dict(columns)
        twice = [name for place, name in enumerate(self.names) if name in self.names[:place]]
        if twice:
            raise ValueError(f"{path} has two columns {twice[0]!r}; their names must differ.")

    @abstractmethod
    def _open(self) -> list[tuple[str, Any]]:
        """Return the columns and their types."""

    @abstractmethod
    def _batches(self, numbers: Sequence[str], keys: Sequence[str], first_line: int, n_lines: int) -> Iterator[Any]:
        """Yield record batches of about `n_lines` lines or fewer, from a line on."""

    def check_numbers(self, columns: Sequence[str]) -> None:
        """Raise unless the columns hold numbers."""
        from pyarrow import types  # noqa: PLC0415 - an optional dependency

        kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
        for name in columns:
            if not any(is_kind(self._types[name]) for is_kind in kinds):
                raise ValueError(
                    f"{self.path}: column {name!r} must hold numbers; it holds {self._types[name]}. Convert it, or "
                    "leave it out."
                )

    def check_unchanged(self) -> None:
        """Raise if the file is not what it was when it was opened."""
        now = _stamp(self.path) if self.path.exists() else None
        if now != self.stamp:
            what = what_changed(self.stamp, now)
            raise ValueError(
                f"{self.path} changed while it was read (it {what}), so the sums over its rows would mix old and new. "
                "Start again when nothing writes to it."
            )

    def pieces(
        self, numbers: Sequence[str], keys: Sequence[str], first_line: int, n_lines: int
    ) -> Iterator[tuple[list[Any], list[Any]]]:
        """Yield columns of numbers (b,) and key columns as Arrow arrays, `n_lines` lines at a time, from a line on.

        Numbers in batches as long as a piece are not copied, unless the file is mapped: then they could still change.
        """
        with self._named_errors():
            held, n_held = [], 0
            for batch in self._batches(numbers, keys, first_line, n_lines):
                done = 0
                while done < batch.num_rows:
                    part = batch.slice(done, n_lines - n_held)
                    held.append(part)
                    done, n_held = done + part.num_rows, n_held + part.num_rows
                    if n_held == n_lines:
                        yield self._piece(held, numbers, keys)
                        held, n_held = [], 0
            if held:
                yield self._piece(held, numbers, keys)

    def _piece(self, parts: Sequence[Any], numbers: Sequence[str], keys: Sequence[str]) -> tuple[list[Any], list[Any]]:
        """Return the columns of some record batches, one after the other."""
        import pyarrow  # noqa: PLC0415 - an optional dependency

        if self._is_mapped:
            self.check_unchanged()  # the system ends a process that reads beyond the end of what it has mapped
        columns = [[_as_numbers(part.column(name)) for part in parts] for name in numbers]
        return (
            [own[0] if len(own) == 1 and not self._is_mapped else np.concatenate(own) for own in columns],
            [pyarrow.concat_arrays([part.column(name) for part in parts]) for name in keys],
        )

    def _named_errors(self) -> _NamedErrors:
        return _NamedErrors(self)


class ParquetTable(TableFile):
    """A Parquet file; reading can begin at any row group."""

    def _open(self) -> list[tuple[str, Any]]:
        from pyarrow import parquet  # noqa: PLC0415 - an optional dependency

        with parquet.ParquetFile(self.path) as file:
            self._metadata, schema = file.metadata, file.schema_arrow
        self.n_lines = self._metadata.num_rows
        self._groups = [self._metadata.row_group(group).num_rows for group in range(self._metadata.num_row_groups)]
        return list(zip(schema.names, schema.types, strict=True))

    def _batches(self, numbers: Sequence[str], keys: Sequence[str], first_line: int, n_lines: int) -> Iterator[Any]:
        from pyarrow import parquet  # noqa: PLC0415 - an optional dependency

        group, before = 0, 0
        while group < len(self._groups) and before + self._groups[group] <= first_line:
            before += self._groups[group]
            group += 1
        groups = list(range(group, len(self._groups)))
        if not groups:
            return
        with parquet.ParquetFile(self.path, **in_blocks(self._metadata)) as file:
            batches = file.iter_batches(n_lines, row_groups=groups, columns=_once(numbers, keys))
            # A thread that only decodes does not wait while the columns of a batch are made arrays.
            with closing(read_ahead(batches, 1)) as ahead:
                yield from _after(ahead, first_line - before)


def in_blocks(metadata: Any) -> dict[str, Any]:
    """Return how to open a Parquet file so that reading some rows does not take the memory of many."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    is_large = any(group.total_byte_size > _GROUP_BYTES for group in groups)
    # Pre-buffered, it would read all of the file ahead; unbuffered, it holds a row group at a time.
    return {"metadata": metadata, "pre_buffer": False, "buffer_size": _BUFFER_BYTES if is_large else 0}


class ArrowTable(TableFile):
    """An Arrow file, also called Feather; reading can begin at any record batch."""

    def _open(self) -> list[tuple[str, Any]]:
        with open_arrow(self.path) as (file, self._is_mapped):
            count = getattr(file, "count_rows", None)  # not in all versions of pyarrow
            self.n_lines = None if count is None else count()
            return list(zip(file.schema.names, file.schema.types, strict=True))

    def _batches(self, numbers: Sequence[str], keys: Sequence[str], first_line: int, n_lines: int) -> Iterator[Any]:
        columns = _once(numbers, keys)
        with open_arrow(self.path, columns) as (file, _):
            batches = (self._batch(file, number) for number in range(file.num_record_batches))
            yield from _after((batch.select(columns) for batch in batches), first_line)

    def _batch(self, file: Any, number: int) -> Any:
        self.check_unchanged()
        return file.get_batch(number)


@contextmanager
def open_arrow(path: Path, columns: Sequence[str] | None = None) -> Iterator[tuple[Any, bool]]:
    """Yield an Arrow file, with some of its columns at least, and whether it is mapped.

    A file that is read can change: the worst is an error. The system would end a process in which a mapped file is cut.
    So a file is mapped only if its batches are too large to be read as a whole.
    """
    from pyarrow import OSFile, ipc, memory_map  # noqa: PLC0415 - an optional dependency

    options = None
    with OSFile(str(path)) as raw, ipc.open_file(raw) as file:
        is_mapped = path.stat().st_size > _BATCH_BYTES * file.num_record_batches
        if columns is not None:
            options = ipc.IpcReadOptions(included_fields=[file.schema.get_field_index(name) for name in columns])
    with (memory_map if is_mapped else OSFile)(str(path)) as raw, ipc.open_file(raw, options=options) as file:
        yield file, is_mapped


class CsvTable(TableFile):
    """A CSV file; lines before the first wanted one are parsed and dropped."""

    def _open(self) -> list[tuple[str, Any]]:
        from pyarrow import csv  # noqa: PLC0415 - an optional dependency

        with self.path.open("rb") as text:
            head = text.read(_HEAD_BYTES)
        self.n_lines_about = self.stamp[0] * head.count(b"\n") // max(1, len(head))
        with csv.open_csv(self.path, read_options=csv.ReadOptions(block_size=_CSV_BYTES)) as file:
            return list(zip(file.schema.names, file.schema.types, strict=True))

    def _batches(self, numbers: Sequence[str], keys: Sequence[str], first_line: int, n_lines: int) -> Iterator[Any]:
        import pyarrow  # noqa: PLC0415 - an optional dependency
        from pyarrow import csv  # noqa: PLC0415

        # Types are found in the first lines. Whole numbers there may be followed by others.
        types = {
            name: pyarrow.float64() if pyarrow.types.is_integer(kind) or pyarrow.types.is_null(kind) else kind
            for name, kind in self._types.items()
            if name in numbers
        }
        options = csv.ConvertOptions(include_columns=_once(numbers, keys), column_types=types)
        with csv.open_csv(
            self.path, read_options=csv.ReadOptions(block_size=_CSV_BYTES, use_threads=False), convert_options=options
        ) as file:
            yield from _after(file, first_line)


class _NamedErrors:
    """A context in which errors of Arrow become sentences with the name of the file."""

    def __init__(self, file: TableFile) -> None:
        self.file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        import pyarrow  # noqa: PLC0415 - an optional dependency

        if isinstance(error, pyarrow.ArrowException) or (isinstance(error, OSError) and error.errno is None):
            self.file.check_unchanged()
            raise ValueError(f"{self.file.path} could not be read: {error}") from error


def _after(batches: Any, n_lines: int) -> Iterator[Any]:
    """Yield the lines of batches after the first `n_lines`."""
    for batch in batches:
        n_batch = batch.num_rows
        if n_lines < n_batch:
            yield batch.slice(n_lines) if n_lines else batch
        del batch  # so that its memory serves the next one
        n_lines = max(0, n_lines - n_batch)


def _once(*names: Sequence[str]) -> list[str]:
    """Return all names, each of them once: a key may be a feature as well."""
    return list(dict.fromkeys(name for some in names for name in some))


def _as_numbers(column: Any) -> Any:
    import pyarrow  # noqa: PLC0415 - an optional dependency

    if pyarrow.types.is_decimal(column.type) or pyarrow.types.is_null(column.type):
        column = column.cast(pyarrow.float64())
    return column.to_numpy(zero_copy_only=False)


def what_changed(before: tuple[int, int], now: tuple[int, int] | None) -> str:
    """Return what happened to a file, from its size and time of change; None is no file.

    >>> what_changed((1_000, 7), (1_200, 8)), what_changed((1_000, 7), (1_000, 8))
    ('had 1,000 bytes and now has 1,200', 'was written again')
    """
    if now is None:
        return "was deleted"
    return "was written again" if now[0] == before[0] else f"had {before[0]:,} bytes and now has {now[0]:,}"


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
