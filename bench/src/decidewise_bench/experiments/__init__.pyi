# What the package offers; see `decidewise.kit.lazy`.
from decidewise_bench.experiments.cells import Cell
from decidewise_bench.experiments.methods import Method
from decidewise_bench.experiments.plan import Plan, PlannedProblem, read_plan
from decidewise_bench.experiments.rows import Row, as_table, export
from decidewise_bench.experiments.runner import cells_of_all, run
from decidewise_bench.experiments.store import Store
from decidewise_bench.experiments.version import code_version

__all__ = [
    "Cell",
    "Method",
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
