"""Which code made a row: the version of the package, and a fingerprint of the source that decides results."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import decidewise

#: What a result depends on. The store, the displays, the report and the command line may change under old rows.
PARTS = (
    "checks.py",
    "measure.py",
    "evaluate.py",
    "runtime/batches.py",
    "runtime/kernels.py",
    "polyhedra",
    "data",
    "problems",
    "losses",
    "models",
    "experiments/methods.py",
    "experiments/cells.py",
    "paper/same_model.py",
)


@cache
def code_version(modules: tuple[str, ...] = (), folder: str = "") -> str:
    """Return the version of decidewise and of other modules together, such as "0.1.0+3f2a90c41d77".

    Modules are found as an import finds them, or else in the folder, but nothing is imported.
    """
    package = Path(decidewise.__file__).parent
    ours = [file for part in PARTS for file in _files(package / part)]
    found = [_find(module, folder) for module in modules]
    theirs = [Path(spec.origin) for spec in found if spec and spec.has_location and spec.origin]
    return f"{decidewise.__version__}+{fingerprint([*ours, *theirs])}"


def _find(module: str, folder: str) -> ModuleSpec | None:
    """Find a module; `importlib.util.find_spec` would import, and so execute, the packages around it."""
    top, *parts = module.split(".")
    finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
    spec = next(filter(None, (find(top, None) for find in finders if find)), None)
    spec = spec or PathFinder.find_spec(top, [folder] if folder else [])
    for part in parts:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(part, list(spec.submodule_search_locations))
    return spec


def fingerprint(files: Iterable[Path]) -> str:
    """Return a hash of what the files do: layout, comments and docstrings do not count."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        source = file.read_bytes()
        digest.update(_code(source) if file.suffix == ".py" else source)
    return digest.hexdigest()[:12]


def _files(part: Path) -> list[Path]:
    return sorted(part.rglob("*.py")) if part.is_dir() else [part]


@cache
def _code(source: bytes) -> bytes:
    """Return a hash of what a source does."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # a run will say what is wrong with it
        return source
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and _documented(node):
            del node.body[0]
    return hashlib.sha256(ast.dump(tree).encode()).digest()


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None
