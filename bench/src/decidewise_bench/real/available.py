"""Which tasks of a plan can be run on this machine."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from decidewise.kit.errors import InputError
from decidewise_bench.experiments import Plan
from decidewise_bench.real.files import MissingDataError, find_file


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
