"""A fingerprint of the code that is running, for those who compute together."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path


@cache
def code_fingerprint() -> str:
    """Return the versions of Python, NumPy and scikit-learn, and a hash of all modules of decidewise, as one text."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(f"{file.relative_to(package).as_posix()}\0".encode())
        digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    python = ".".join(map(str, sys.version_info[:2]))
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scikit-learn"))
    return f"decidewise {digest.hexdigest()[:12]} on Python {python}, {libraries}"
