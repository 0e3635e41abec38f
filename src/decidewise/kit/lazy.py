"""What need not be installed, or imported at the start: the modules of extras, and what packages offer.

A package that imports what it offers when it is first used has its imports in a stub, `__init__.pyi`, which type
checkers and editors read as they read any other; its `__init__.py` calls `import_lazily(__name__)`. This is the
convention of the scientific Python ecosystem (SPEC 1).

>>> import decidewise.problems
>>> "TopK" in dir(decidewise.problems)
True
>>> decidewise.problems.TopK(3, 1)  # only now is decidewise.problems.topk imported
TopK(n=3, k=1, sense='max')
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package whose names are listed from the start and imported when they are first used."""

    _origins: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        origin = self._origins.get(name)
        if origin is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if origin == self.__name__:
            return import_module(f"{origin}.{name}")
        return getattr(import_module(origin), name)

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system binds each submodule to its package. Where a function has a module of the same name to
        # itself, the name is the function's; `from package.name import ...` finds the module all the same.
        if isinstance(value, ModuleType) and self._origins.get(name) == value.__name__:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> Iterable[str]:
        return {*self._origins, *(name for name in vars(self) if name.startswith("__"))}


def import_lazily(package: str) -> None:
    """Make a package, which calls this with its `__name__`, import on first use the names that its stub imports.

    Every import of the stub has the form `from module import name`. Names from the package itself are its submodules:
    they are attributes, but `from package import *` leaves them out.
    """
    module = sys.modules[package]
    stub = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    origins = {alias.name: str(node.module) for node in imports for alias in node.names}
    vars(module).update(_origins=origins, __all__=sorted(name for name, origin in origins.items() if origin != package))
    module.__class__ = LazyPackage


#: The modules that an extra of `pyproject.toml` installs.
EXTRAS = {
    "cli": ("jinja2", "matplotlib", "msgspec", "pyarrow", "typer"),
    "boosting": ("lightgbm",),
    "onnx": ("onnx",),
    "serve": ("fastapi", "uvicorn"),
    "skops": ("skops",),
    "gurobi": ("gurobipy",),
    "scip": ("pyscipopt",),
    "cp-sat": ("ortools",),
}


def require(extra: str, *modules: str, by: str) -> None:
    """Raise an `ImportError` that names the extra unless its modules, or those given, are installed.

    `by` says who needs it; it opens the message.
    """
    missing = [module for module in modules or EXTRAS[extra] if find_spec(module) is None]
    if missing:
        raise ImportError(f'{by} needs {", ".join(missing)}: pip install "decidewise[{extra}]".')
