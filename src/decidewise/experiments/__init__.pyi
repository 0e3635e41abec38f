# What the package offers; see `decidewise.runtime.lazy`.
from decidewise.errors import NotForProblemError
from decidewise.experiments.cells import Cell
from decidewise.experiments.methods import Method
from decidewise.experiments.plan import Plan, PlannedProblem, read_plan
from decidewise.experiments.rows import Row, as_table, export
from decidewise.experiments.runner import OtherCodeError, cells_of_all, run
from decidewise.experiments.store import Store
from decidewise.experiments.version import code_version

__all__ = [
    "Cell",
    "Method",
    "NotForProblemError",
    "OtherCodeError",
    "Plan",
    "PlannedProblem",
    "Row",
    "Store",
    "as_table",
    "cells_of_all",
    "code_version",
    "export",
    "read_plan",
    "run",
]
