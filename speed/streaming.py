"""Time the exact WISE fit from Parquet files against pyarrow merely decoding the same files.

Run: `python speed/streaming.py`. Target: at most 1.3 times the time of the decoding. One file has random numbers, which
do not compress; the other has numbers rounded to cents, compressed by zstd. The script also prints rows per second and
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
COLUMNS = {"features": "x_*", "costs": "c_*"}
FIT, TARGET = "WiseRegressor().fit_files", 1.3


def write(path, n_rows, rng, *, rounded):
    """Write rows to a file, a part at a time."""
    names = [*(f"x_{j}" for j in range(P)), *(f"c_{j}" for j in range(D))]
    schema = pa.schema([(name, pa.float64()) for name in names])
    effects = rng.normal(size=(P, D))
    with parquet.ParquetWriter(path, schema, compression="zstd" if rounded else "snappy") as file:
        for first in range(0, n_rows, 2**17):
            n = min(2**17, n_rows - first)
            X = rng.normal(size=(n, P))
            values = np.hstack([X, 20 * np.exp(0.2 * X @ effects + 0.3 * rng.normal(size=(n, D)))])
            values = np.round(values, 2) if rounded else values
            file.write_table(pa.table(dict(zip(names, values.T, strict=True)), schema=schema))


def decode(path):
    with parquet.ParquetFile(path) as file:
        for _ in file.iter_batches(2**16):
            pass


def seconds(function):
    wall, processor = perf_counter(), process_time()
    function()
    return np.array([perf_counter() - wall, process_time() - processor])


def measure(path, repeats, *, everything):
    """Return for each work its least seconds and processor seconds per pass."""
    model = WiseRegressor().fit_files(path, **COLUMNS)  # loads every library, and the file into the page cache
    works = {"pyarrow decodes": lambda: decode(path), FIT: lambda: WiseRegressor().fit_files(path, **COLUMNS)}
    n_passes = {}
    if everything:
        gamma = "gamma deviance, per pass"
        works[gamma] = lambda: GeneralizedLinear("gamma").fit_files(path, **COLUMNS)
        n_passes[gamma] = 2 + int(GeneralizedLinear("gamma").fit_files(path, **COLUMNS).n_iter_.max())
        works["evaluate_files, top 5 of 20"] = lambda: evaluate_files(model, TopK(D, 5, sense="min"), path)
    measured = {name: [] for name in works}
    for _ in range(repeats):  # in turn, so that a busy moment of the machine hits all
        for name, work in works.items():
            measured[name].append(seconds(work) / n_passes.get(name, 1))
    return {name: np.min(times, axis=0) for name, times in measured.items()}


def main(n_rows=N, repeats=REPEATS):
    for rounded in (False, True):
        with TemporaryDirectory() as folder:
            path = Path(folder, "rows.parquet")
            write(path, n_rows, np.random.default_rng(0), rounded=rounded)
            size = path.stat().st_size
            best = measure(path, repeats, everything=not rounded)
        decoding = best["pyarrow decodes"]
        what = "rounded to cents, zstd" if rounded else "random numbers"
        table = Table(title=f"{n_rows:,} rows of {P} features and {D} costs, {what}, {size / 1e6:.0f} MB")
        for heading in ("what", "seconds", "of decoding", "processor s", "of decoding", "rows/s", "rows/s per core"):
            table.add_column(heading, justify="left" if heading == "what" else "right")
        for name, (wall, processor) in best.items():
            ratios = f"{wall / decoding[0]:.2f}", f"{processor / decoding[1]:.2f}"
            speeds = f"{n_rows / wall:,.0f}", f"{n_rows / processor:,.0f}"
            table.add_row(name, f"{wall:.3f}", ratios[0], f"{processor:.3f}", ratios[1], *speeds)
        Console(width=120).print(table)
        ratio = best[FIT][0] / decoding[0]
        met = "met" if ratio <= TARGET else "NOT met"
        print(f"{FIT}: {ratio:.2f} times the time of decoding; target {TARGET}: {met}.")


if __name__ == "__main__":
    main(*(int(argument.replace("_", "")) for argument in sys.argv[1:]))
