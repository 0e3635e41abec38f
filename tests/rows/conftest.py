from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet


class Table:
    """Positive costs of ill-scaled features (mean 1e6, deviation 1), in memory and as files."""

    def __init__(self, n=3_000, p=4, d=3):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(n, p)) + 1e6
        self.costs = np.exp(0.3 * (self.X - 1e6) @ rng.normal(size=(p, d)) + 0.3 * rng.normal(size=(n, d)))
        self.weights = np.arange(n) % 3 + 0.5
        self.arrow = pa.table(
            {
                **{f"x_{j}": self.X[:, j] for j in range(p)},
                **{f"c_{j}": self.costs[:, j] for j in range(d)},
                "w": self.weights,
            }
        )

    def write(self, folder, cuts=(1_100, 2_000)):
        """Write consecutive rows to files, with an empty one among them."""
        borders = [0, *cuts, len(self.X)]
        for number, (first, last) in enumerate(pairwise(borders)):
            parquet.write_table(
                self.arrow.slice(first, last - first), folder / f"part-{number}.parquet", row_group_size=700
            )
        parquet.write_table(self.arrow.slice(0, 0), folder / "part-0-empty.parquet")
        return folder


@pytest.fixture(scope="session")
def table():
    return Table()


@pytest.fixture(scope="session")
def folder(table, tmp_path_factory):
    return table.write(tmp_path_factory.mktemp("parts"))
