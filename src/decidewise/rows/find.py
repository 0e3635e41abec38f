"""Find the files of a table: one, all of a folder, all that match a pattern, or a list of these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from decidewise.kit.errors import InputError

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

    Attributes
    ----------
    path : Path
    partition : dict of str to int, str or None
        Of folders named `key=value` (Hive partitions) below the folder or the fixed part of the pattern.
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
