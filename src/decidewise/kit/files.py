"""Write files whole or not at all, never over what is read; and read those of a user."""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from decidewise.kit.errors import InputError

_HAS_LOCKS = True
try:
    import fcntl
except ModuleNotFoundError:  # Windows
    _HAS_LOCKS = False

#: Names of files that are being written, and the seconds after which one without a lock counts as abandoned.
_NAME, _TEMPORARY, _OLD = ".decidewise-{}", re.compile(r"\.decidewise-[0-9a-f]{16}"), 86_400.0
#: Names for what a process has open: behind them, even a file is a stream.
_STREAMS = re.compile(r"/dev/(std(in|out|err)|fd/.*)|/proc/[^/]*/fd/.*")


def write_whole(files: Mapping[Path, bytes]) -> None:
    """Write files and create missing folders; if writing any of them fails, all files stay as they were.

    Each file is first written under a temporary name in its folder. Once all are on the disk, they are moved into
    place. A file that is replaced keeps its mode, and a symbolic link stays one: the file it leads to is replaced.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole({Path(folder, "new", "a.txt"): b"one", Path(folder, "b.txt"): b"two"})
    ...     sorted(path.name for path in Path(folder).rglob("*"))
    ['a.txt', 'b.txt', 'new']
    """
    begun: list[_Beside] = []
    path = Path()
    try:
        for path, content in files.items():
            begun.append(_Beside(path))
            begun[-1].path.write_bytes(content)
            begun[-1].settle()
        for path, beside in zip(files, begun, strict=True):  # noqa: B007 - the error below names the path
            beside.move()
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # names the file, not the temporary one
    finally:
        for beside in begun:
            beside.close()


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
    beside = _Beside(path)
    try:
        yield beside.path
        beside.settle()
        beside.move()
    finally:
        beside.close()


class _Beside:
    """A file under a temporary name, to be moved to another in the same folder.

    It is locked while its writer lives: the system unlocks it however the writer dies. So the next writer to the folder
    can tell which such files are abandoned, and removes them.
    """

    def __init__(self, path: Path) -> None:
        self.target = _target(path)
        folder = self.target.parent
        folder.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        self.mode = stat.S_IMODE(self.target.stat().st_mode) if self.target.exists() else None
        while True:
            self.path = folder / _NAME.format(secrets.token_hex(8))
            # The system applies the umask. What replaces a private file is private from the beginning.
            mode = 0o666 if self.mode is None else self.mode | stat.S_IRUSR | stat.S_IWUSR
            self.descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
            if _lock(self.descriptor, wait=True) and not self.path.exists():  # another writer was faster than the lock
                os.close(self.descriptor)
                continue
            return

    def settle(self) -> None:
        """Give the file its mode, and wait until it is on the disk."""
        if self.mode is not None:
            self.path.chmod(self.mode)
        os.fsync(self.descriptor)

    def move(self) -> None:
        """Move the file into place."""
        if not _HAS_LOCKS:
            self._release()  # Windows moves no open file
        self.path.replace(self.target)
        if os.name == "posix":
            with suppress(OSError):  # not every file system can
                folder = os.open(self.target.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)

    def close(self) -> None:
        """Remove what has not been moved."""
        self._release()
        self.path.unlink(missing_ok=True)

    def _release(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _target(path: Path) -> Path:
    """Return the file that is written for a path; raise unless it can be replaced."""
    target = Path(os.path.realpath(path))
    if _STREAMS.fullmatch(os.path.abspath(path)) or (target.exists() and not (target.is_file() or target.is_dir())):
        raise InputError(f"{path} is not a file that can be replaced. Name a file.")
    if target.is_file() and not os.access(target, os.W_OK):
        raise InputError(f"{path} is read-only. Name another file, or make it writable.")
    return target


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Lock a file; return whether it is locked now."""
    if not _HAS_LOCKS:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process holds it, or the file system has no locks
        return False
    return True


def _remove_abandoned(folder: Path) -> None:
    with suppress(OSError):  # a folder whose files may not be listed
        for path in [path for path in folder.iterdir() if _TEMPORARY.fullmatch(path.name)]:
            with suppress(OSError):
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    if not _HAS_LOCKS:
        if time.time() - path.stat().st_mtime > _OLD:
            path.unlink()
        return
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _lock(descriptor, wait=False):
            path.unlink()
    finally:
        os.close(descriptor)


def check_output(path: Path, *used: Path) -> None:
    """Raise before the work starts if a file cannot be written: a folder in its place, no folder, no right.

    Also if it is one of the files that are used, by whatever name: see `check_apart`.
    """
    if path.is_dir():
        raise InputError(f"{path}: Is a directory. Name a file.")
    folder = _target(path).parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise InputError(f"{path}: {folder} is a file, not a folder.")
    check_apart(path, *used)
    try:
        _Beside(folder / _NAME).close()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}.") from error


def check_apart(path: Path, *used: Path) -> None:
    """Raise if a file to be written is one of those that are used, also through links or another spelling.

    >>> check_apart(Path("new.csv"), Path("model.dw"), Path("./new.csv"))
    Traceback (most recent call last):
    decidewise.kit.errors.InputError: new.csv is an input of this command; choose another output file.
    """
    for other in used:
        same = os.path.realpath(path) == os.path.realpath(other)
        with suppress(OSError, ValueError):
            same = same or os.path.samefile(path, other)
        if same:
            raise InputError(f"{path} is an input of this command; choose another output file.")


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Return the table in a TOML file; raise an `InputError` that names the file, and says `what` it should be."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as reason:
        raise InputError(f"cannot read {what} {path}: {reason.strerror}.") from reason
    except (ValueError, RecursionError) as reason:
        raise InputError(f"{path} is not valid TOML: {reason}.") from reason
