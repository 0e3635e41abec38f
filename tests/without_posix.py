"""A plugin of pytest that takes away what Windows lacks, and macOS in part: `PYTHONPATH=tests pytest -p without_posix`.

Modules are taken from the tests and from decidewise alone: libraries know which system they are on.
"""

import builtins
import errno
import os
import signal
from pathlib import Path

MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "termios"}
NAMES = {
    os: ("fork", "mkfifo", "sched_getaffinity"),
    signal: ("SIGALRM", "setitimer", "pthread_sigmask"),
}

_import, _open, _stat = builtins.__import__, Path.open, Path.stat


def _without_modules(name, scope=None, *more, **options):
    file = str((scope or {}).get("__file__", ""))
    if name in MODULES and ("decidewise" in Path(file).parts or Path(__file__).parent in Path(file).parents):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _import(name, scope, *more, **options)


def _without_proc(method):
    def refused(path, *more, **options):
        if path.parts[:2] == (os.sep, "proc"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return method(path, *more, **options)

    return refused


def pytest_load_initial_conftests():
    """Take all that away before a test, or decidewise, is imported."""
    builtins.__import__ = _without_modules
    Path.open, Path.stat = _without_proc(_open), _without_proc(_stat)
    for module, names in NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
