"""How much memory this process may still take."""

from __future__ import annotations

import os
from pathlib import Path

_PROC, _CGROUP = Path("/proc"), Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Return the bytes that this process may still take: of the machine, of its container and under its own limit.

    >>> available_memory() > 2**20
    True
    """
    return max(0, min(filter(None, (_of_machine(), _of_container(), _under_limit())), default=2**32))


def _of_machine() -> int | None:
    for line in _text(_PROC / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2  # what others hold is not known here
    except (AttributeError, ValueError, OSError):  # Windows
        return None


def _of_container() -> int | None:
    limit, used = (_text(_CGROUP / name).strip() for name in ("memory.max", "memory.current"))
    return max(1, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else None


def _under_limit() -> int | None:
    """Return what is left of the address space and of the data, if they are limited (`ulimit -v`, `ulimit -d`)."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ModuleNotFoundError:
        return None
    used = _text(_PROC / "self" / "statm").split()  # in pages: all, in memory, shared, code, -, data and stack
    limits = [(resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)]
    left = [
        limit - int(used[place]) * resource.getpagesize()
        for kind, place in limits
        if used and (limit := resource.getrlimit(kind)[0]) != resource.RLIM_INFINITY
    ]
    return max(1, min(left)) if left else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
