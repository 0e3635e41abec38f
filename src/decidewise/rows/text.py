"""How a text file is written: its separator, its decimal point and its encoding; and its text in UTF-8."""

from __future__ import annotations

import codecs
import gzip
import re
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj, rmtree
from tempfile import mkdtemp
from typing import Any

from decidewise.kit.errors import InputError

_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF32_LE: "utf-32"}
_SEPARATORS = (",", ";", "\t", "|")
#: A quoted name: it begins where a column begins, and two quotes in it are one.
_QUOTED = re.compile(r'(?<![^,;\t|\r\n])"(?:[^"]|"")*"?')
#: Bytes of a text file by which its encoding, its separator and the number of its lines are found.
HEAD_BYTES = 2**16


@dataclass(frozen=True)
class TextFormat:
    """How text files are written; the separator is by default what separates most names in the first line."""

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def check(self, path: Path) -> None:
        """Raise if these are no options, or if a file is not text in this encoding."""
        for name, character in (("separator", self.separator), ("decimal", self.decimal)):
            if character is not None and (len(character) != 1 or not character.isascii()):
                raise InputError(f"the {name} must be a single ASCII character; got {character!r}.")
        try:
            "".encode(self.encoding)  # which also refuses codecs that are not of text
        except LookupError as reason:
            raise InputError(
                f"there is no encoding {self.encoding!r}; utf-8, latin-1 and utf-16 are common."
            ) from reason
        if self.decimal == self.separator_of(path):
            raise InputError(
                f"the decimal point and the separator are both {self.decimal!r}: pass --separator as well."
            )
        if is_zipped(path):
            return
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        own = codecs.lookup(self.encoding).name
        mark = next((name for bytes_, name in _MARKS.items() if head.startswith(bytes_)), None)
        if mark and own == "utf-8":
            raise InputError(f"{path.name} is in {mark.upper()}: pass --encoding {mark}.")
        if b"\0" in head and own.startswith(("utf-8", "iso", "ascii", "cp")):
            raise InputError(f"{path.name} is not a text file, whatever its name says: it has bytes of zero.")
        try:
            codecs.getincrementaldecoder(self.encoding)().decode(head.splitlines()[0] if head.splitlines() else b"")
        except UnicodeError as reason:
            raise InputError(
                f"{path.name} is not in {self.encoding.upper()}: its first line has bytes that are no letters. Name "
                "its encoding, such as --encoding latin-1."
            ) from reason

    def separator_of(self, path: Path) -> str:
        """Return what separates the columns of a file: as given, or what its first line has most of.

        Names in quotes do not count. The tab of a .tsv file needs no majority.
        """
        if self.separator:
            return self.separator
        usual = "\t" if ".tsv" in path.name.lower() else ","
        with (gzip.open if is_zipped(path) else open)(path, "rb") as file, suppress(OSError, EOFError, zlib.error):
            head = file.read(HEAD_BYTES).decode(self.encoding, errors="ignore").lstrip("\ufeff")
            first = next(filter(None, _QUOTED.sub('"', head).splitlines()), "")
            return usual if usual == "\t" and usual in first else max((usual, *_SEPARATORS), key=first.count)
        return usual


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
            unzip = gzip.open if is_zipped(path) else open
            with (
                unzip(path, "rt", encoding=self.encoding, newline="") as text,
                Path(folder, "decoded").open("w", encoding="utf-8", newline="") as file,
            ):
                copyfileobj(text, file)
            self._copies[path] = Path(folder, "decoded")
        return self._copies[path]


def is_zipped(path: Path) -> bool:
    """Whether a file is compressed by gzip, by the end of its name."""
    return path.name.lower().endswith(".gz")


@contextmanager
def open_text(path: Path) -> Iterator[tuple[Any, Any]]:
    """Yield a text file in UTF-8 as Arrow's own file, and as its text."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    with pa.OSFile(str(path)) as raw:
        yield raw, pa.CompressedInputStream(raw, "gzip") if is_zipped(path) else raw


def check_text_columns(path: Path, schema: Any) -> None:
    """Raise if the columns of a text file show that its encoding is another one."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    garbled = [name for name, kind in zip(schema.names, schema.types, strict=True) if pa.types.is_binary(kind)]
    if garbled:
        raise InputError(
            f"{path.name} is not in UTF-8: column {garbled[0]!r} has bytes that are no letters. Name its encoding, "
            "such as --encoding latin-1."
        )
