"""Import a problem by the name of an object in a module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decidewise.kit.checks import shown
from decidewise.kit.errors import InputError
from decidewise.kit.importable import find
from decidewise.problems.contract import Problem, as_problem


def import_problem(object: str, arguments: Mapping[str, Any] | None = None, *, folder: str = "") -> Problem:
    """Import a problem, or a function that returns one. This executes the module: name only modules you trust.

    Parameters
    ----------
    object : str
        `"package.module:name"`, a problem or a function that returns one.
    arguments : table, optional
        What the function is called with.
    folder : str
        Where the module may be, if it is not installed; in a file, relative to the folder of that file, and by default
        that folder.

    Examples
    --------
    >>> import_problem("decidewise.problems:TopK", {"n": 3, "k": 1})
    TopK(n=3, k=1, sense='max')
    """
    if not isinstance(object, str):
        raise InputError(f'object must be an importable name such as "my_problem:build"; got {shown(object)}.')
    if arguments is not None and not isinstance(arguments, Mapping):
        raise InputError(f"arguments must be a table, such as {{ hours = 24 }}; got {shown(arguments)}.")
    found = find(object, folder, file="problem file")
    if isinstance(found, Problem):
        if arguments:
            raise InputError(f"object {object!r} is a problem already, and takes no arguments.")
        return as_problem(found)
    if not callable(found):
        raise InputError(f"object {object!r} must be a problem, or a function that returns one; got {shown(found)}.")
    try:
        return as_problem(found(**(arguments or {})))
    except (Exception, SystemExit) as error:  # user code may raise anything
        raise InputError(f"object {object!r} failed: {type(error).__name__}: {error}") from error
