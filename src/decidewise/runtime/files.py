"""Write files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


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
