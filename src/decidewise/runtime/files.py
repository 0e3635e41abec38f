"""Write files whole or not at all, and read those of a user."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from decidewise.errors import InputError


def write_whole(files: Mapping[Path, bytes]) -> None:
    """Write files and create missing folders; if writing any of them fails, all files stay as they were.

    Each file is first written under a temporary name in its folder. Once all are written, they are moved into place.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole({Path(folder, "new", "a.txt"): b"one", Path(folder, "b.txt"): b"two"})
    ...     sorted(path.name for path in Path(folder).rglob("*"))
    ['a.txt', 'b.txt', 'new']
    """
    written: dict[Path, Path] = {}
    path = Path()
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".decidewise-")
            written[path] = Path(name)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            written[path].chmod(0o644)  # mkstemp makes files that only their owner can read
        for path, beside in written.items():
            beside.replace(path)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # names the file, not the temporary one
    finally:
        for beside in written.values():
            beside.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path beside a file, which is moved to the file if all goes well, for content too large for memory.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "a.txt")) as beside:
    ...         _ = beside.write_text("one")
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.txt']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".decidewise-")
    os.close(descriptor)
    beside = Path(name)
    try:
        yield beside
        beside.chmod(0o644)  # mkstemp makes files that only their owner can read
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Return the table in a TOML file; raise an `InputError` that names the file, and says `what` it should be."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as reason:
        raise InputError(f"cannot read {what} {path}: {reason.strerror}.") from reason
    except (ValueError, RecursionError) as reason:
        raise InputError(f"{path} is not valid TOML: {reason}.") from reason
