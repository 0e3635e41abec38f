"""Importable names: `package.module:attribute`, looked up and never evaluated."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def resolve(name: str) -> Callable[..., Any]:
    """Return the callable that a name stands for.

    >>> resolve("decidewise.data:make_knapsack").__name__
    'make_knapsack'
    """
    module, colon, attribute = name.partition(":")
    if not (colon and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise ValueError(f'expected an importable name such as "package.module:function"; got {name!r}.')
    found = getattr(load(module), attribute, None)
    if not callable(found):
        raise ValueError(f"module {module!r} has no function {attribute!r}; check {name!r}.")
    return found


def load(module: str) -> Any:
    """Import a module, or say where it was looked for."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        raise ValueError(
            f"cannot import {module!r} ({missing}); put the module beside the plan, or install its package."
        ) from missing
