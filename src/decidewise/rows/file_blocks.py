"""A table in files, found by a path, a pattern or a folder: whole or block by block, with its columns as they are."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from decidewise.kit.checks import listed, without
from decidewise.kit.errors import InputError
from decidewise.kit.lazy import require
from decidewise.kit.progress import ByteBar
from decidewise.rows.table_file import ArrowTable, ParquetTable, TableFile, TextTable
from decidewise.rows.text import TextFormat

#: How names of files end, and what is in them.
KINDS = {
    ".csv": "text",
    ".tsv": "text",
    ".csv.gz": "text",
    ".tsv.gz": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
FORMATS = ".csv, .tsv, .parquet or .arrow"
_WILD = "*?["
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class FoundFile:
    """A file of a table, and the values that the names of its folders give to columns.

    These are folders named `key=value` (Hive partitions) below the folder or the fixed part of the pattern.
    """

    path: Path
    partition: Mapping[str, Any] = field(default_factory=dict)


def find_files(paths: Any) -> list[FoundFile]:
    """Return the files of a path, a glob pattern, a folder or a list of these, in the order of their names.

    Folders named `key=value` inside a folder are read as well, and give their files a column `key`: of whole numbers if
    all values are, and of text otherwise. Files whose names begin with a point or an underscore are left out.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for year in (2025, 2026):
    ...         _ = Path(folder, f"year={year}").mkdir()
    ...         _ = Path(folder, f"year={year}", "a.csv").write_text("x,c_1,c_2")
    ...     [dict(file.partition) for file in find_files(folder)]
    [{'year': 2025}, {'year': 2026}]
    """
    found: list[tuple[Path, dict[str, str]]] = []
    for entry in [paths] if isinstance(paths, str | Path) else list(paths):
        found += _files_of(Path(entry))
    if not found:
        raise ValueError("paths is empty; pass at least one file.")
    names = [path for path, _ in found]
    for place, path in enumerate(names):
        if not path.is_file():
            raise InputError(f"{path} is not a file.")  # a pipe can be read only once, and may never end
        if path in names[:place]:
            raise ValueError(f"{path} is listed twice; its rows would count double.")
    whole = {key for _, texts in found for key in texts} - {
        key for _, texts in found for key, text in texts.items() if not re.fullmatch(r"-?\d{1,18}", text)
    }
    return [
        FoundFile(path, {key: int(text) if key in whole else _text(text) for key, text in texts.items()})
        for path, texts in found
    ]


def kind_of_file(path: Path) -> str | None:
    """Return what a file holds by the end of its name: "text", "parquet" or "arrow"; None if it is no table."""
    name = path.name.lower()
    return next((kind for ending, kind in KINDS.items() if name.endswith(ending)), None)


def _files_of(source: Path) -> list[tuple[Path, dict[str, str]]]:
    if source.is_dir():
        found = list(_inside(source))
        if not found:
            raise InputError(f"the folder {source} has no table: none of its files ends in {FORMATS}.")
        return [(path, _partition(path, source)) for path in found]
    if not source.exists() and any(character in str(source) for character in _WILD):
        matches = Path(source.anchor).glob(str(source.relative_to(source.anchor)))
        hidden = () if source.name.startswith(".") else (".",)
        found = sorted(
            path for path in matches if path.is_file() and kind_of_file(path) and not path.name.startswith(hidden)
        )
        if not found:
            raise FileNotFoundError(f"there is no file that matches {str(source)!r}.")
        fixed = next(folder for folder in source.parents if not any(character in str(folder) for character in _WILD))
        return [(path, _partition(path, fixed)) for path in found]
    if not kind_of_file(source):
        raise InputError(f"{source.name} is not a table that can be read; its name must end in {FORMATS}.")
    if not source.exists():
        beside = [path.name for path in source.parent.iterdir()] if source.parent.is_dir() else []
        close = get_close_matches(source.name, beside, n=1)
        hint = f" Do you mean {str(source.with_name(close[0]))!r}?" if close else ""
        raise FileNotFoundError(f"there is no file {source}.{hint}")
    return [(source, {})]


def _inside(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir() and "=" in entry.name:
            yield from _inside(entry)
        elif kind_of_file(entry) and not entry.is_dir():
            yield entry


def _partition(path: Path, base: Path) -> dict[str, str]:
    pairs = (part.partition("=") for part in path.relative_to(base).parts[:-1] if "=" in part)
    return {unquote(key): unquote(value) for key, _, value in pairs}


def _text(text: str) -> str | None:
    return None if text == _NO_VALUE else text


#: Bytes of numbers in one block.
_BLOCK_BYTES = 2**22
_MOST_ROWS, _LEAST_ROWS = 2**15, 256


def open_tables(paths: Any, text: Mapping[str, Any] | None = None) -> list[TableFile]:
    """Return the files of a path, a pattern, a folder or a list of these; `text` has options of `TextFormat`."""
    found = find_files(paths)
    require("cli", "pyarrow", by=f"reading {found[0].path.name}")
    how = TextFormat(**(text or {}))
    kinds: dict[str, type[TableFile]] = {"text": TextTable, "parquet": ParquetTable, "arrow": ArrowTable}
    return [kinds[str(kind_of_file(file.path))](file, how) for file in found]


@dataclass(frozen=True)
class FileBlock:
    """Some consecutive rows of a table, read from about `n_bytes` of the file `origin`.

    The number of the first row is `first` over all files, and `line` within its file, both counted from 0.
    """

    table: Any
    first: int
    origin: str
    n_bytes: int
    line: int = 0


class FileBlocks:
    r"""The blocks of a table in files; the arguments are those of `read_files`.

    The columns of text files that are `exact` have keys, which are whole numbers; those of other columns may be
    followed by fractions, so they are read as such. `names` are all columns, and `n_bytes` is the size of the files.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "a.csv")
    >>> _ = path.write_text("day,cost\n1,2.5\n2,3.5\n")
    >>> [(block.first, block.table["cost"].to_pylist()) for block in FileBlocks(path)]
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
