"""Time the exact WISE fit from a Parquet file against pyarrow merely decoding the same file.

Run: `python speed/streaming.py`. Target: at most 1.3 times the time of the decoding. It also prints rows per second and
per core (in processor time), from which `docs/scale.md` computes what large tables cost.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

from decidewise import GeneralizedLinear, WiseRegressor, evaluate_files
from decidewise.problems import TopK

N, P, D, REPEATS = 1_000_000, 10, 20, 5


def write(path, n_rows, rng):
    """Write rows to a file, a part at a time."""
    names = [*(f"x_{j}" for j in range(P)), *(f"c_{j}" for j in range(D))]
    schema = pa.schema([(name, pa.float64()) for name in names])
    effects = rng.normal(size=(P, D))
    with parquet.ParquetWriter(path, schema) as file:
        for first in range(0, n_rows, 2**17):
            n = min(2**17, n_rows - first)
            X = rng.normal(size=(n, P))
            costs = np.exp(0.2 * X @ effects + 0.3 * rng.normal(size=(n, D)))
            file.write_table(pa.table(dict(zip(names, [*X.T, *costs.T], strict=True)), schema=schema))


def decode(path):
    with parquet.ParquetFile(path) as file:
        for _ in file.iter_batches(2**16):
            pass


def seconds(function):
    wall, processor = perf_counter(), process_time()
    function()
    return np.array([perf_counter() - wall, process_time() - processor])


def main(n_rows=N, repeats=REPEATS):
    columns = {"features": "x_*", "costs": "c_*"}
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        write(path, n_rows, np.random.default_rng(0))
        size = path.stat().st_size
        model = WiseRegressor().fit_files(path, **columns)  # loads every library, and the file into the page cache
        problem = TopK(D, 5, sense="min")
        works = {
            "pyarrow decodes": lambda: decode(path),
            "WiseRegressor().fit_files": lambda: WiseRegressor().fit_files(path, **columns),
            "one pass, gamma deviance": lambda: GeneralizedLinear("gamma").fit_files(path, **columns),
            "evaluate_files, top 5 of 20": lambda: evaluate_files(model, problem, path),
        }
        n_passes = {
            "one pass, gamma deviance": 2 + int(GeneralizedLinear("gamma").fit_files(path, **columns).n_iter_.max())
        }
        # In turn, so that a busy moment of the machine hits all.
        measured = {name: [] for name in works}
        for _ in range(repeats):
            for name, work in works.items():
                measured[name].append(seconds(work) / n_passes.get(name, 1))
    best = {name: np.min(times, axis=0) for name, times in measured.items()}
    decoding = best["pyarrow decodes"]
    table = Table(title=f"Streaming {n_rows:,} rows of {P} features and {D} costs, {size / 1e6:.0f} MB")
    for heading in ("what", "seconds", "of decoding", "processor s", "of decoding", "rows/s", "rows/s per core"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for name, (wall, processor) in best.items():
        ratios = f"{wall / decoding[0]:.2f}", f"{processor / decoding[1]:.2f}"
        speeds = f"{n_rows / wall:,.0f}", f"{n_rows / processor:,.0f}"
        table.add_row(name, f"{wall:.3f}", ratios[0], f"{processor:.3f}", ratios[1], *speeds)
    Console(width=120).print(table)
    ratio = best["WiseRegressor().fit_files"][0] / decoding[0]
    print(
        f"fit_files against decoding: {ratio:.2f} times its time; target 1.3: {'met' if ratio <= 1.3 else 'NOT met'}."
    )


if __name__ == "__main__":
    main(*(int(argument.replace("_", "")) for argument in sys.argv[1:]))
