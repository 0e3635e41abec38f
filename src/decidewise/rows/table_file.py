"""One file of a table, of any kind: its columns, its lines piece by piece, or all of them."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from decidewise.kit.checks import listed
from decidewise.kit.errors import InputError
from decidewise.rows.text import HEAD_BYTES, Decoded, TextFormat, check_text_columns, is_zipped, open_text

if TYPE_CHECKING:
    from decidewise.rows.file_blocks import FoundFile

# Bytes of text that are parsed at once, and most bytes of a batch of an Arrow file that is read as a whole.
_TEXT_BYTES, _BATCH_BYTES = 2**21, 2**26
# Bytes of a row group of a Parquet file beyond which it is read in parts, of so many bytes of each column.
_GROUP_BYTES, _BUFFER_BYTES = 2**25, 2**18
# Lines of a table that is read whole for which the progress is shown.
_LINES = 2**17


class TableFile(ABC):
    """A file of a table.

    Attributes
    ----------
    name : str
        The path as the user gave it, for messages.
    names, types : list of str, dict of str to pyarrow.DataType
        All columns, those from the names of folders last. The types of text are those of the first lines.
    n_lines, n_lines_about : int or None
        None if it is not known without reading the file; and an estimate of it, from the first lines of a text.
    stamp : (int, int)
        Size and time of change, to see whether the file changes.
    """

    n_lines: int | None = None
    n_lines_about: int | None = None
    #: Whether what is read is memory of the file itself, which can still change.
    is_mapped = False

    def __init__(self, found: FoundFile, text: TextFormat) -> None:
        self.path, self.name, self.stamp, self.text = found.path, str(found.path), _stamp(found.path), text
        if not self.stamp[0]:
            raise InputError(f"{self.name} is empty: it has no line at all.")
        with self.named_errors():
            self._schema = schema = self._open()
        self._own = list(schema.names)
        twice = [name for name, count in Counter(self._own).items() if count > 1]
        if twice:
            raise InputError(
                f"{self.name}: the columns of a table must have different names; {listed(twice)} occur twice."
            )
        self._given = {key: _scalar(value) for key, value in found.partition.items() if key not in self._own}
        self.names = [*self._own, *self._given]
        self.types = dict(zip(self._own, schema.types, strict=True))
        self.types |= {name: value.type for name, value in self._given.items()}

    @abstractmethod
    def _open(self) -> Any:
        """Return the schema."""

    @abstractmethod
    def _batches(
        self, columns: list[str], first_line: int, n_lines: int, types: Mapping[str, Any]
    ) -> Iterator[tuple[Any, int]]:
        """Yield record batches from a line on, with about how many bytes of the file were read for each."""

    def memory(self) -> float:
        """Return about how many bytes all lines take in memory."""
        return 1.0 * self.stamp[0]

    def check_numbers(self, columns: Sequence[str]) -> None:
        """Raise unless the columns hold numbers."""
        from pyarrow import types  # noqa: PLC0415 - an optional dependency

        kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
        for name in columns:
            if not any(is_kind(self.types[name]) for is_kind in kinds):
                raise InputError(
                    f"{self.name}: column {name!r} must hold numbers; it holds {self.types[name]}. Convert it, or "
                    "leave it out."
                )

    def check_unchanged(self) -> None:
        """Raise if the file is not what it was when it was opened."""
        now = _stamp(self.path) if self.path.exists() else None
        if now != self.stamp:
            raise InputError(
                f"{self.name} changed while it was read (it {_what_changed(self.stamp, now)}), so the result would mix "
                "old and new rows. Start again when nothing writes to it."
            )

    def pieces(
        self, columns: Sequence[str], first_line: int, n_lines: int, types: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[list[Any], int]]:
        """Yield record batches that are `n_lines` lines together, from a line on, and the bytes read for them.

        Pieces begin at multiples of `n_lines`, whatever the line to begin at. `types` says how to read columns of text.
        """
        own = [name for name in dict.fromkeys(columns) if name not in self._given]
        given = {name: self._given[name] for name in columns if name in self._given}
        with self.named_errors():
            held, room, n_bytes = [], n_lines - first_line % n_lines, 0
            for batch, size in self._batches(own or self._own[:1], first_line, n_lines, types or {}):
                n_bytes += size
                done = 0
                while done < batch.num_rows:
                    part = batch.slice(done, room)
                    if self.is_mapped:
                        self.check_unchanged()  # the system ends a process that reads beyond the end of what it mapped
                        part = part.take(np.arange(part.num_rows))
                    held.append(_with_constants(part, given))
                    done, room = done + part.num_rows, room - part.num_rows
                    if not room:
                        self.check_unchanged()
                        yield held, n_bytes
                        held, room, n_bytes = [], n_lines, 0
            self.check_unchanged()
            if held:
                yield held, n_bytes

    def read(self, advance: Callable[[int], None]) -> Any:
        """Return the whole table; `advance` is told how many bytes more of the file were read."""
        with self.named_errors():
            return _with_constants(self._read(advance), self._given)

    def _read(self, advance: Callable[[int], None]) -> Any:
        import pyarrow as pa  # noqa: PLC0415 - an optional dependency

        parts, left = [], self.stamp[0]
        for batches, n_bytes in self.pieces(self._own, 0, _LINES):
            parts += batches
            advance(n_bytes)
            left -= n_bytes
        advance(left)  # shares of the batches are rounded down
        return pa.Table.from_batches(parts, self._schema)

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Return a context in which errors of Arrow, of gzip and about encodings name the file."""
        import pyarrow as pa  # noqa: PLC0415 - an optional dependency

        try:
            yield
        except (pa.ArrowException, EOFError, zlib.error, OSError, UnicodeError) as reason:
            if isinstance(reason, OSError) and reason.errno is not None:
                raise
            self.check_unchanged()
            what = " ".join(str(reason).split())
            raise InputError(f"{self.name} could not be read: {what[:300].rstrip('.')}.") from reason


class ParquetTable(TableFile):
    """A Parquet file; reading can begin at any row group."""

    def _open(self) -> Any:
        from pyarrow import parquet  # noqa: PLC0415 - an optional dependency

        with parquet.ParquetFile(self.path) as file:
            self._metadata, schema = file.metadata, file.schema_arrow
        self.n_lines = self._metadata.num_rows
        groups = [self._metadata.row_group(group) for group in range(self._metadata.num_row_groups)]
        self._lines, self._sizes = [group.num_rows for group in groups], [group.total_byte_size for group in groups]
        return schema

    def _batches(
        self, columns: list[str], first_line: int, n_lines: int, types: Mapping[str, Any]
    ) -> Iterator[tuple[Any, int]]:
        group, before = 0, 0
        while group < len(self._lines) and before + self._lines[group] <= first_line:
            before += self._lines[group]
            group += 1
        if group == len(self._lines):
            return
        with self._file() as file:
            batches = file.iter_batches(n_lines, row_groups=list(range(group, len(self._lines))), columns=columns)
            for batch in _after(batches, first_line - before):
                yield batch, self.stamp[0] * batch.num_rows // max(1, sum(self._lines))

    def _file(self) -> Any:
        """Return the file, opened so that reading some rows does not take the memory of many."""
        from pyarrow import parquet  # noqa: PLC0415 - an optional dependency

        is_large = max(self._sizes, default=0) > _GROUP_BYTES
        # Pre-buffered, it would read all of the file ahead; unbuffered, it holds a row group at a time.
        buffer_size = _BUFFER_BYTES if is_large else 0
        return parquet.ParquetFile(self.path, metadata=self._metadata, pre_buffer=False, buffer_size=buffer_size)

    def memory(self) -> float:
        """Return about how many bytes all lines take in memory."""
        return max(8.0 * self._metadata.num_rows * self._metadata.num_columns, float(sum(self._sizes)))


class ArrowTable(TableFile):
    """An Arrow file, also called Feather; reading can begin at any record batch."""

    def _open(self) -> Any:
        with open_arrow(self.path) as (file, self.is_mapped):
            count = getattr(file, "count_rows", None)  # not in all versions of pyarrow
            self.n_lines = None if count is None else count()
            return file.schema

    def _batches(
        self, columns: list[str], first_line: int, n_lines: int, types: Mapping[str, Any]
    ) -> Iterator[tuple[Any, int]]:
        with open_arrow(self.path, columns) as (file, _):
            share = self.stamp[0] // max(1, file.num_record_batches)
            batches = (self._batch(file, number).select(columns) for number in range(file.num_record_batches))
            for batch in _after(batches, first_line):
                yield batch, share

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


class TextTable(TableFile):
    """A text file, perhaps zipped; lines before the first wanted one are parsed and dropped."""

    def _open(self) -> Any:
        self.text.check(self.path)
        self._decoded = Decoded(self.text.encoding)  # once, for all passes
        if not is_zipped(self.path):
            with self.path.open("rb") as file:
                head = file.read(HEAD_BYTES)
            self.n_lines_about = self.stamp[0] * head.count(b"\n") // max(1, len(head))
        with self._text() as (file, _):
            schema = file.schema
        check_text_columns(self.path, schema)
        return schema

    def _batches(
        self, columns: list[str], first_line: int, n_lines: int, types: Mapping[str, Any]
    ) -> Iterator[tuple[Any, int]]:
        own = {name: kind for name, kind in types.items() if name in self.types}
        with self._text(include_columns=columns, column_types=own) as (file, raw):
            done = 0
            for batch in _after(file, first_line):
                n_bytes, done = raw.tell() - done, raw.tell()
                yield batch, n_bytes * self.stamp[0] // raw.size()

    def _read(self, advance: Callable[[int], None]) -> Any:
        from pyarrow import csv  # noqa: PLC0415 - an optional dependency

        with open_text(self._decoded(self.path)) as (_, text):
            table = csv.read_csv(text, **self._options())  # of the whole text, unlike a block, it finds the types
        check_text_columns(self.path, table.schema)
        advance(self.stamp[0])
        return table

    @contextmanager
    def _text(self, **convert: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the batches of the text, and the file that they are read from."""
        from pyarrow import csv  # noqa: PLC0415 - an optional dependency

        read = csv.ReadOptions(block_size=_TEXT_BYTES, use_threads=False)
        with (
            open_text(self._decoded(self.path)) as (raw, text),
            csv.open_csv(text, read_options=read, **self._options(**convert)) as file,
        ):
            yield file, raw

    def _options(self, **convert: Any) -> dict[str, Any]:
        from pyarrow import csv  # noqa: PLC0415 - an optional dependency

        parse = csv.ParseOptions(delimiter=self.text.separator_of(self.path), newlines_in_values=True)
        convert |= {"strings_can_be_null": True, "decimal_point": self.text.decimal}
        return {"parse_options": parse, "convert_options": csv.ConvertOptions(**convert)}

    def memory(self) -> float:
        """Return about how many bytes all lines take: numbers as text are about as long, and small ones shorter."""
        return (10.0 if is_zipped(self.path) else 2.0) * self.stamp[0]


def _after(batches: Any, n_lines: int) -> Iterator[Any]:
    """Yield the lines of batches after the first `n_lines`."""
    for batch in batches:
        n_batch = batch.num_rows
        if n_lines < n_batch:
            yield batch.slice(n_lines) if n_lines else batch
        del batch  # so that its memory serves the next one
        n_lines = max(0, n_lines - n_batch)


def _scalar(value: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    return pa.scalar(value, pa.int64() if isinstance(value, int) else pa.string())


def _with_constants(lines: Any, constants: Mapping[str, Any]) -> Any:
    """Return a record batch or a table with further columns, each of a single value."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    if not constants:
        return lines
    more = [pa.repeat(value, lines.num_rows) for value in constants.values()]
    return type(lines).from_arrays([*lines.columns, *more], names=[*lines.schema.names, *constants])


def _what_changed(before: tuple[int, int], now: tuple[int, int] | None) -> str:
    """Return what happened to a file, from its size and time of change; None is no file.

    >>> _what_changed((1_000, 7), (1_200, 8)), _what_changed((1_000, 7), (1_000, 8))
    ('had 1,000 bytes and now has 1,200', 'was written again')
    """
    if now is None:
        return "was deleted"
    return "was written again" if now[0] == before[0] else f"had {before[0]:,} bytes and now has {now[0]:,}"


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
