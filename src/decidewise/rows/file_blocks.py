"""A table in files, whole or block by block, with its columns as they are."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from decidewise.kit.checks import listed, without
from decidewise.kit.errors import InputError
from decidewise.kit.progress import ByteBar
from decidewise.rows.table_file import TableFile, TextTable, open_tables

#: Bytes of numbers in one block.
_BLOCK_BYTES = 2**22
_MOST_ROWS, _LEAST_ROWS = 2**15, 256


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
    source, text
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
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "a.csv")
    >>> _ = path.write_text("day,cost\n1,2.5\n2,3.5\n")
    >>> blocks = FileBlocks(path)
    >>> [(block.first, block.table["cost"].to_pylist()) for block in blocks]
    [(0, [2.5, 3.5])]
    """

    def __init__(self, source: Any, *, exact: Sequence[str] = (), **text: Any) -> None:
        self.files = open_tables(source, text)
        _check_same_columns(self.files)
        self.names = tuple(self.files[0].names)
        texts = [file for file in self.files if isinstance(file, TextTable)]
        self._types = {name: _loose(kind, name in exact) for name, kind in texts[0].types.items()} if texts else {}
        self.n_bytes = sum(file.stamp[0] for file in self.files)
        self.block_rows = min(_MOST_ROWS, max(_LEAST_ROWS, _BLOCK_BYTES // (8 * max(1, len(self.names)))))

    def __iter__(self) -> Iterator[FileBlock]:
        return self.after(0)

    def after(self, n_rows: int) -> Generator[FileBlock, None, None]:
        """Yield the blocks, without the first `n_rows` rows."""
        import pyarrow as pa  # noqa: PLC0415 - an optional dependency

        first = 0
        for file in self.files:
            if file.n_lines is not None and first + file.n_lines <= n_rows:
                first += file.n_lines
                continue
            line = 0 if file.n_lines is None else max(0, n_rows - first)
            for parts, n_bytes in file.pieces(self.names, line, self.block_rows, self._types):
                table = pa.Table.from_batches(parts).select(self.names)
                n_lines, skipped = table.num_rows, max(0, n_rows - first - line)
                if skipped < n_lines:
                    begin = line + skipped
                    yield FileBlock(table.slice(skipped), first + begin, file.name, n_bytes, begin)
                line += n_lines
            first += line

    def memory(self) -> int:
        """Return about how many bytes the whole table would take in memory."""
        return int(sum(file.memory() for file in self.files))


def read_files(source: Any, **text: Any) -> Any:
    r"""Return the table in a file, in all files of a folder, or in all files that match a pattern, as an Arrow table.

    Several files are read in the order of their names, and must have the same columns.

    Parameters
    ----------
    source : path, glob pattern, folder, or list of these
        Files whose names end in `.csv`, `.tsv` (both also `.gz`), `.parquet`, `.pq`, `.arrow`, `.feather` or `.ipc`.
        Folders named `key=value` in a folder give their files a column `key`.
    text
        Of text files: `separator`, `decimal` and `encoding`. By default what separates most names in the first line, a
        point, and UTF-8.

    Raises
    ------
    InputError
        If a file cannot be read, or is not what its name says; the message names it.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "a.csv").write_text("day,cost\n1,2.5\n")
    >>> _ = (folder / "b.csv").write_text("day,cost\n2,3.5\n")
    >>> read_files(folder)["cost"].to_pylist()
    [2.5, 3.5]
    """
    files = open_tables(source, text)
    _check_same_columns(files)
    with ByteBar(f"Reading {source}", sum(file.stamp[0] for file in files)) as bar:
        tables = [file.read(bar.advance) for file in files]
    return tables[0] if len(tables) == 1 else _joined(files, tables)


def _check_same_columns(files: Sequence[TableFile]) -> None:
    names = files[0].names
    for file in files[1:]:
        missing, new = without(names, file.names), without(file.names, names)
        if missing or new:
            what = f"lacks {listed(missing)}" if missing else f"has {listed(new)} as well"
            raise InputError(f"all files must have the same columns; {file.name} {what}, unlike {files[0].path.name}.")


def _joined(files: Sequence[TableFile], tables: Sequence[Any]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    names = files[0].names
    try:
        return pa.concat_tables([table.select(names) for table in tables], promote_options="permissive")
    except (pa.ArrowException, TypeError) as reason:
        for name in names:
            kinds = {str(table.schema.field(name).type): file.name for file, table in zip(files, tables, strict=True)}
            if len(kinds) > 1:
                found = " and ".join(f"{kind} in {where}" for kind, where in list(kinds.items())[:2])
                raise InputError(f"column {name!r} has values of different kinds: {found}.") from reason
        raise InputError(f"the files cannot be joined: {reason}") from reason


def _loose(kind: Any, is_exact: bool) -> Any:
    """Return the type to read a column of text with, from that of its first lines."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    if pa.types.is_null(kind):
        return pa.string()
    return pa.float64() if pa.types.is_integer(kind) and not is_exact else kind
