"""Experiments: run a plan, get rows.

A plan (`plan`) lists problems, numbers of samples, methods and trials. A run (`runner`) computes its cells (`cells`) in
parallel and writes each row to the store (`store`) as soon as it is done. The key of a row is a hash of everything that
determines it, so a killed run continues where it stopped, and old rows never mix with those of a changed plan, seed,
code or library.

>>> from decidewise_bench.experiments import Store, as_table, cells_of_all, read_plan, run
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

from decidewise.kit.lazy import import_lazily

import_lazily(__name__)
