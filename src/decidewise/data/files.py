"""Tables in files: CSV and TSV (also gzipped), Parquet and Arrow; one file, a folder, or all that match a pattern."""

from __future__ import annotations

import codecs
import gzip
import re
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from shutil import copyfileobj, rmtree
from tempfile import mkdtemp
from typing import Any

from decidewise.checks import listed
from decidewise.errors import InputError
from decidewise.progress import ByteBar
from decidewise.runtime.extras import require

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
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF32_LE: "utf-32"}
_SEPARATORS = (",", ";", "\t", "|")
#: A quoted name: it begins where a column begins, and two quotes in it are one.
_QUOTED = re.compile(r'(?<![^,;\t|\r\n])"(?:[^"]|"")*"?')
#: Bytes of a text file by which its encoding and its separator are checked.
_HEAD_BYTES = 4096


def read_files(source: str | Path, *, separator: str | None = None, decimal: str = ".", encoding: str = "utf-8") -> Any:
    r"""Return the table in a file, in all files of a folder, or in all files that match a pattern, as an Arrow table.

    Several files are read in the order of their names, and must have the same columns.

    Parameters
    ----------
    source : str or Path
        A file whose name ends in `.csv`, `.tsv` (both also `.gz`), `.parquet`, `.pq`, `.arrow`, `.feather` or `.ipc`;
        a folder of such files; or a pattern such as `"history/2026-*.csv"`.
    separator, decimal, encoding : str
        Of text files. By default what separates most names in the first line, a point, and UTF-8.

    Raises
    ------
    InputError
        If a file cannot be read, or is not what its name says; the message names it.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "a.csv").write_text("day,cost\n1,2.5\n")
    >>> _ = (folder / "b.csv").write_text("day,cost\n2,3.5\n")
    >>> read_files(folder)["cost"].to_pylist()
    [2.5, 3.5]
    """
    paths = paths_of(Path(source))
    require("cli", "pyarrow", by=f"reading {paths[0].name}")
    with ByteBar(f"Reading {source}", sum(path.stat().st_size for path in paths)) as bar:
        tables = [_read(path, separator, decimal, encoding, bar) for path in paths]
    return tables[0] if len(tables) == 1 else _joined(paths, tables)


def paths_of(source: Path) -> list[Path]:
    """Return the files of a table: one, all of a folder, or all that match a pattern; raise if there are none."""
    if source.is_dir():
        inside = sorted(source.iterdir())
        found = [path for path in inside if kind_of_file(path) and not path.name.startswith((".", "_"))]
        if not found:
            raise InputError(f"the folder {source} has no table: none of its files ends in {FORMATS}.")
        return found
    if not source.exists() and any(character in str(source) for character in "*?["):
        matches = Path(source.anchor).glob(str(source.relative_to(source.anchor)))
        found = sorted(path for path in matches if path.is_file() and kind_of_file(path))
        if not found:
            raise FileNotFoundError(f"there is no file that matches {str(source)!r}.")
        return found
    if not kind_of_file(source):
        raise InputError(f"{source.name} is not a table that can be read; its name must end in {FORMATS}.")
    if not source.exists():
        beside = [path.name for path in source.parent.iterdir()] if source.parent.is_dir() else []
        close = get_close_matches(source.name, beside, n=1)
        hint = f" Do you mean {str(source.with_name(close[0]))!r}?" if close else ""
        raise FileNotFoundError(f"there is no file {source}.{hint}")
    if not source.is_file():
        raise InputError(f"{source} is not a file.")  # a pipe can be read only once, and may never end
    return [source]


def kind_of_file(path: Path) -> str | None:
    """Return what a file holds by the end of its name: "text", "parquet" or "arrow"; None if it is no table."""
    name = path.name.lower()
    return next((kind for ending, kind in KINDS.items() if name.endswith(ending)), None)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Turn errors of Arrow, of gzip and about encodings into an `InputError` that names the file."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    try:
        yield
    except (pa.ArrowException, EOFError, zlib.error, OSError, ValueError) as reason:
        if isinstance(reason, InputError) or (isinstance(reason, OSError) and reason.errno is not None):
            raise
        what = " ".join(str(reason).split())
        raise InputError(f"{path.name} could not be read: {what[:300].rstrip('.')}.") from reason


def _read(path: Path, separator: str | None, decimal: str, encoding: str, bar: ByteBar) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    if not path.stat().st_size:
        raise InputError(f"{path.name} is empty: it has no line at all.")
    with named_errors(path):
        if kind_of_file(path) == "text":
            return _read_text(path, separator, decimal, encoding, bar)
        if kind_of_file(path) == "parquet":
            from pyarrow import parquet  # noqa: PLC0415

            # Not as a data set: a folder name such as "year=2026" must not become a column.
            with parquet.ParquetFile(path) as file:
                size, groups = path.stat().st_size, []
                for group in range(file.num_row_groups):
                    groups.append(file.read_row_group(group))
                    bar.advance(size // file.num_row_groups)
                return pa.concat_tables(groups) if groups else file.read()
        from pyarrow import feather  # noqa: PLC0415

        table = feather.read_table(path)
        bar.advance(path.stat().st_size)
        return table


def _read_text(path: Path, separator: str | None, decimal: str, encoding: str, bar: ByteBar) -> Any:
    from pyarrow import csv  # noqa: PLC0415

    given = check_text(path, separator, decimal, encoding)
    decoded = Decoded(encoding)
    with open_text(decoded(path)) as (_, text):
        table = csv.read_csv(
            text,
            parse_options=csv.ParseOptions(delimiter=given, newlines_in_values=True),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, decimal_point=decimal),
        )
    bar.advance(path.stat().st_size)
    check_text_columns(path, table.schema)
    return table


@contextmanager
def open_text(path: Path) -> Iterator[tuple[Any, Any]]:
    """Yield a text file in UTF-8 as Arrow's own file, and as its text."""
    import pyarrow as pa  # noqa: PLC0415

    with pa.OSFile(str(path)) as raw:
        yield raw, pa.CompressedInputStream(raw, "gzip") if path.name.lower().endswith(".gz") else raw


class Decoded:
    """Finds text files in UTF-8: themselves, or copies in the folder of temporary files, deleted with this object.

    Arrow reads in threads of its own, which must never need Python: one that does when the interpreter ends aborts the
    process, and one that does while a reader is closed waits for ever. So Arrow does not decode.
    """

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._copies: dict[Path, Path] = {}

    def __call__(self, path: Path) -> Path:
        """Return a file with the text of `path` in UTF-8."""
        if codecs.lookup(self.encoding).name == "utf-8":
            return path
        if path not in self._copies:
            folder = mkdtemp(prefix="decidewise-")
            weakref.finalize(self, rmtree, folder, ignore_errors=True)
            unzip = gzip.open if path.name.lower().endswith(".gz") else open
            with (
                unzip(path, "rt", encoding=self.encoding, newline="") as text,
                Path(folder, "decoded").open("w", encoding="utf-8", newline="") as file,
            ):
                copyfileobj(text, file)
            self._copies[path] = Path(folder, "decoded")
        return self._copies[path]


def separator_of(path: Path, given: str | None, encoding: str) -> str:
    """Return what separates the columns of a text file: as given, or what its first line has most of.

    Names in quotes do not count. The tab of a .tsv file needs no majority.
    """
    if given:
        return given
    usual = "\t" if ".tsv" in path.name.lower() else ","
    with (
        (gzip.open if path.name.lower().endswith(".gz") else open)(path, "rb") as file,
        suppress(OSError, EOFError, zlib.error),
    ):
        head = file.read(_HEAD_BYTES).decode(encoding, errors="ignore").lstrip("\ufeff")
        first = next(filter(None, _QUOTED.sub('"', head).splitlines()), "")
        return usual if usual == "\t" and usual in first else max((usual, *_SEPARATORS), key=first.count)
    return usual


def check_text_columns(path: Path, schema: Any) -> None:
    """Raise if the columns of a text file show that its encoding is another one."""
    import pyarrow as pa  # noqa: PLC0415

    garbled = [name for name, kind in zip(schema.names, schema.types, strict=True) if pa.types.is_binary(kind)]
    if garbled:
        raise InputError(
            f"{path.name} is not in UTF-8: column {garbled[0]!r} has bytes that are no letters. Name its encoding, "
            "such as --encoding latin-1."
        )


def check_text(path: Path, separator: str | None, decimal: str, encoding: str) -> str:
    """Return what separates columns; raise if options are no options, or if the file is not text in this encoding."""
    for name, character in (("separator", separator), ("decimal", decimal)):
        if character is not None and (len(character) != 1 or not character.isascii()):
            raise InputError(f"the {name} must be a single ASCII character; got {character!r}.")
    try:
        "".encode(encoding)  # which also refuses codecs that are not of text
    except LookupError as reason:
        raise InputError(f"there is no encoding {encoding!r}; utf-8, latin-1 and utf-16 are common.") from reason
    found = separator_of(path, separator, encoding)
    if decimal == found:
        raise InputError(f"the decimal point and the separator are both {decimal!r}: pass --separator as well.")
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if path.name.lower().endswith(".gz"):
        return found
    mark = next((name for bytes_, name in _MARKS.items() if head.startswith(bytes_)), None)
    if mark and codecs.lookup(encoding).name == "utf-8":
        raise InputError(f"{path.name} is in {mark.upper()}: pass --encoding {mark}.")
    if b"\0" in head and codecs.lookup(encoding).name.startswith(("utf-8", "iso", "ascii", "cp")):
        raise InputError(f"{path.name} is not a text file, whatever its name says: it has bytes of zero.")
    try:
        codecs.getincrementaldecoder(encoding)().decode(head.splitlines()[0] if head.splitlines() else b"")
    except UnicodeError as reason:
        raise InputError(
            f"{path.name} is not in {encoding.upper()}: its first line has bytes that are no letters. Name its "
            "encoding, such as --encoding latin-1."
        ) from reason
    return found


def check_same_columns(first: Path, names: Sequence[str], path: Path, others: Sequence[str]) -> None:
    """Raise if a file does not have the columns of the first one."""
    missing = [name for name in names if name not in others]
    new = [name for name in others if name not in names]
    if missing or new:
        what = f"lacks {listed(missing)}" if missing else f"has {listed(new)} as well"
        raise InputError(f"all files must have the same columns; {path.name} {what}, unlike {first.name}.")


def _joined(paths: Sequence[Path], tables: Sequence[Any]) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    first = tables[0].column_names
    for path, table in zip(paths, tables, strict=True):
        check_same_columns(paths[0], first, path, table.column_names)
        if len(set(table.column_names)) < len(table.column_names):
            return table  # whoever uses it says which name occurs twice
    try:
        return pa.concat_tables([table.select(first) for table in tables], promote_options="permissive")
    except (pa.ArrowException, TypeError) as reason:
        for name in first:
            kinds = {str(table.schema.field(name).type): path.name for path, table in zip(paths, tables, strict=True)}
            if len(kinds) > 1:
                found = " and ".join(f"{kind} in {where}" for kind, where in list(kinds.items())[:2])
                raise InputError(f"column {name!r} has values of different kinds: {found}.") from reason
        raise InputError(f"the files cannot be joined: {reason}") from reason
