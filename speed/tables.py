"""Tables of random rows as Parquet files, for the scripts that stream."""

import numpy as np
import pyarrow as pa
from pyarrow import parquet

COLUMNS = {"features": "x_*", "costs": "c_*"}


def write_rows(path, n_rows, rng, *, n_features, n_costs, rounded=False):
    """Write rows to a file, a part at a time: random numbers, or rounded to cents and compressed by zstd."""
    names = [*(f"x_{j}" for j in range(n_features)), *(f"c_{j}" for j in range(n_costs))]
    schema = pa.schema([(name, pa.float64()) for name in names])
    effects = rng.normal(size=(n_features, n_costs))
    with parquet.ParquetWriter(path, schema, compression="zstd" if rounded else "snappy") as file:
        for first in range(0, n_rows, 2**17):
            n = min(2**17, n_rows - first)
            X = rng.normal(size=(n, n_features))
            values = np.hstack([X, 20 * np.exp(0.2 * X @ effects + 0.3 * rng.normal(size=(n, n_costs)))])
            values = np.round(values, 2) if rounded else values
            file.write_table(pa.table(dict(zip(names, values.T, strict=True)), schema=schema))


def batches(paths):
    """Yield the record batches of files, one after another."""
    for path in paths:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(2**16)
