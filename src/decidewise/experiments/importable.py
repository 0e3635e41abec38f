"""Names in plans: labels for tables and figures, and importable names, `package.module:attribute`.

Reading a plan only checks the syntax of its names. A run imports them, and so executes their modules.
"""

from __future__ import annotations

import sys
import traceback
import unicodedata
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from decidewise.errors import InputError


def check_text(value: str, name: str) -> None:
    """Raise unless the value can be shown in tables, figures and file names: not blank, and no control characters."""
    if not value.strip() or any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in value):
        raise InputError(f"{name} must be text, not blank and without control characters; got {value!r}.")


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


def load(module: str, folder: str = "") -> Any:
    """Import a module, from the folder too; if that fails, raise an `InputError` that says why and what to do."""
    if folder and folder not in sys.path:
        sys.path.append(folder)  # at the end, so that a file beside a plan never hides an installed module
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        raise InputError(
            f"cannot import {module!r} ({missing}); put the module beside the plan, or install its package."
        ) from missing
    except (Exception, SystemExit) as error:  # user code may raise anything
        last = traceback.extract_tb(error.__traceback__)[-1]
        # The message of a syntax error already names the file and the line.
        place = "" if isinstance(error, SyntaxError) else f" ({Path(last.filename).name}, line {last.lineno})"
        raise InputError(
            f"cannot import {module!r}: {type(error).__name__}: {error}{place}. Correct the module, or remove it from "
            "the plan."
        ) from error
