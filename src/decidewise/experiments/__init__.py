"""Experiments: a plan in, rows out.

A plan (`plan`) lists problems, numbers of samples, methods and trials. Its cells (`cells`) are computed in parallel
(`runner`), and each row goes to the store (`store`) as soon as it is done, under a key that holds everything that
decides it. A run that was killed continues where it stopped; old rows are never mixed with those of changed plans,
seeds, code or libraries.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> text = '''
... trials = 2
... [[problems]]
... name = "paths"
... data = "decidewise.data:make_shortest_path"
... degrees = [4]
... samples = [50]
... test_samples = 100
... methods = [{ name = "MSE", loss = "mse", mode = "exact" }, { name = "WISE", loss = "wise", mode = "exact" }]
... '''
>>> with TemporaryDirectory() as folder:
...     _ = Path(folder, "mine.toml").write_text(text)
...     cells = cells_of_all([read_plan(Path(folder, "mine.toml"))])
...     store = Store(Path(folder, "rows.sqlite"))
...     run(cells, store, jobs=1)
...     table = as_table(store.rows(cells))
>>> table.num_rows, table.column("method").to_pylist()
(4, ['MSE', 'WISE', 'MSE', 'WISE'])
"""

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
