"""The versions behind a row: a fingerprint of the source that determines results, and the versions of libraries."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from pathlib import Path

import decidewise
from decidewise.kit.errors import InputError

#: The source that determines results. The store, the display, the report and the command line are not part of it.
PARTS = (
    "kit/checks.py",
    "measure.py",
    "evaluate/hindsight.py",
    "kit/batches.py",
    "kit/kernels.py",
    "solvers",
    "data",
    "problems",
    "losses",
    "models",
)
#: The same of this package.
OWN_PARTS = ("experiments/methods.py", "experiments/cells.py", "paper/same_model.py")
#: The libraries that compute results, with the names of their packages.
LIBRARIES = {
    "NumPy": "numpy",
    "SciPy": "scipy",
    "scikit-learn": "scikit-learn",
    "Numba": "numba",
    "HiGHS": "highspy",
    "Clarabel": "clarabel",
    "DAQP": "daqp",
}


@cache
def library_versions() -> str:
    """Return the installed versions as "NumPy 2.3.1, SciPy 1.16.0, ..."; no library is imported."""
    return _joined({name: version(package) for name, package in LIBRARIES.items()})


def with_libraries(changes: str) -> str:
    """Return the installed versions with some of them replaced, given as "NumPy 2.2.6, SciPy 1.15.0"."""
    found = _versions(library_versions())
    for name, number in _versions(changes).items():
        if name not in found or not number:
            raise InputError(
                f'expected versions such as "NumPy 2.2.6, SciPy 1.15.0", of the libraries {", ".join(found)}; got '
                f"{changes!r}."
            )
        found[name] = number
    return _joined(found)


def other_libraries(libraries: str) -> str:
    """Return the versions that differ from the installed ones.

    >>> other_libraries(library_versions()), other_libraries(with_libraries("NumPy 2.0.0"))
    ('', 'NumPy 2.0.0')
    """
    installed = _versions(library_versions())
    return _joined({name: it for name, it in _versions(libraries).items() if it != installed.get(name)})


def _versions(text: str) -> dict[str, str]:
    parts = (part.strip().rpartition(" ") for part in text.split(","))
    return {name: number for name, _, number in parts}


def _joined(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


@cache
def code_version(modules: tuple[str, ...] = (), folder: str = "") -> str:
    """Return one version for decidewise and the modules together, such as "0.1.0+3f2a90c41d77".

    Modules are looked up as an import would, then in the folder, but nothing is imported.

    Examples
    --------
    >>> code_version().partition("+")[0] == decidewise.__version__
    True
    """
    library, bench = Path(decidewise.__file__).parent, Path(__file__).parents[1]
    parts = [*(library / part for part in PARTS), *(bench / part for part in OWN_PARTS)]
    ours = [file for part in parts for file in _files(part)]
    found = [_find(module, folder) for module in modules]
    theirs = [Path(spec.origin) for spec in found if spec and spec.has_location and spec.origin]
    return f"{decidewise.__version__}+{fingerprint([*ours, *theirs])}"


def _find(module: str, folder: str) -> ModuleSpec | None:
    """Find a module without importing; `importlib.util.find_spec` would import, and so execute, its parent packages."""
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
    """Return a hash of the code in the files, without layout, comments and docstrings."""
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
    """Return a hash of a source without layout, comments and docstrings."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # a run reports the error when it imports the file
        return source
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and _documented(node):
            del node.body[0]
    return hashlib.sha256(ast.dump(tree).encode()).digest()


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None
