"""Importable names in files of a user, `package.module:attribute`.

Reading such a file only checks the syntax of its names. Whoever looks up what they stand for imports, and so executes,
their modules.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from decidewise.kit.checks import nearest_names
from decidewise.kit.errors import InputError


def check_name(name: str) -> tuple[str, str]:
    """Return the module and the attribute of a name; raise if it is malformed. Nothing is imported.

    >>> check_name("decidewise.data:make_knapsack")
    ('decidewise.data', 'make_knapsack')
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in [attribute, *module.split(".")]):
        raise InputError(f'expected an importable name such as "package.module:function"; got {name!r}.')
    return module, attribute


def resolve(name: str) -> Callable[..., Any]:
    """Import and return the callable with this name.

    >>> resolve("decidewise.data:make_knapsack").__name__
    'make_knapsack'
    """
    module, attribute = check_name(name)
    found = getattr(load(module), attribute, None)
    if not callable(found):
        raise InputError(f"module {module!r} has no function or class {attribute!r}; check {name!r}.")
    return found


def find(name: str, folder: str, *, file: str) -> Any:
    """Import and return whatever has this name, in a module that may be in the folder; `file` names it in messages."""
    module, attribute = check_name(name)
    loaded = load(module, folder, file=file)
    if not hasattr(loaded, attribute):
        names = [known for known in dir(loaded) if not known.startswith("_")]
        raise InputError(f"module {module!r} has no {attribute!r}{nearest_names(attribute, names)}")
    return getattr(loaded, attribute)


def load(module: str, folder: str = "", *, file: str = "plan") -> Any:
    """Import a module, from the folder too; if that fails, raise an `InputError` that says why and what to do.

    The folder is that of the `file` that names the module; "" if the module must be installed.
    """
    if folder and folder not in sys.path:
        sys.path.append(folder)  # at the end, so that a file beside a plan never hides an installed module
    try:
        loaded = import_module(module)
    except ModuleNotFoundError as missing:
        raise InputError(
            f"cannot import {module!r} ({missing}); put the module beside the {file}, or install its package."
        ) from missing
    except (Exception, SystemExit) as error:  # user code may raise anything
        last = traceback.extract_tb(error.__traceback__)[-1]
        # The message of a syntax error already names the file and the line.
        place = "" if isinstance(error, SyntaxError) else f" ({Path(last.filename).name}, line {last.lineno})"
        raise InputError(
            f"cannot import {module!r}: {type(error).__name__}: {error}{place}. Correct the module, or remove it from "
            f"the {file}."
        ) from error
    _check_it_is_the_one_beside(loaded, module, folder, file)
    return loaded


def _check_it_is_the_one_beside(loaded: Any, module: str, folder: str, file: str) -> None:
    """Raise if the folder has the module, but another one of the same name was imported."""
    place = os.path.join(folder, *module.split("."))
    for path in (f"{place}.py", os.path.join(place, "__init__.py")) if folder else ():
        origin = getattr(loaded, "__file__", None)
        if os.path.isfile(path) and not (origin and os.path.exists(origin) and os.path.samefile(origin, path)):
            raise InputError(
                f"{module!r} is another module, {origin or 'a part of Python'}, and not the one beside the {file}, "
                f"{path}. Rename that one."
            )
