"""Time the exact WISE fit from Parquet files against pyarrow merely decoding the same files.

Run: `python speed/streaming.py`, or with other numbers of rows and rounds, `python speed/streaming.py 600000 3`.
Target: at most 1.3 times the time of the decoding. One file has random numbers, which do not compress; the other has
numbers rounded to cents, compressed by zstd. The lines about rows per second and core (of processor time) are those
from which `docs/scale.md` computes what large tables cost.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmark import Bench, parser
from decidewise import GeneralizedLinear, WiseRegressor, evaluate_files
from decidewise.models.linear.blocks import Blocks
from decidewise.models.linear.column_sums import column_sums
from decidewise.problems import TopK
from decidewise.rows.source import ColumnMatrix, Rows
from tables import COLUMNS, batches, write_rows

N, P, D, ROUNDS, TARGET = 1_000_000, 10, 20, 5, 1.3


def works_on(path, *, everything):
    """Return the works on a file, with the number of passes that each makes."""
    works = {
        "decoding": (lambda: [None for _ in batches([path])], 1),
        "WISE, from Parquet": (lambda: WiseRegressor().fit_files(path, **COLUMNS), 1),
    }
    works["the sums alone, of columns in memory"] = (SumsAlone(path), 1)
    if everything:
        gamma, model = GeneralizedLinear("gamma"), WiseRegressor().fit_files(path, **COLUMNS)
        n_passes = 2 + int(gamma.fit_files(path, **COLUMNS).n_iter_.max())
        works["gamma deviance, per pass"] = (lambda: GeneralizedLinear("gamma").fit_files(path, **COLUMNS), n_passes)
        works[f"evaluate_files, top 5 of {D}"] = (lambda: evaluate_files(model, TopK(D, 5, sense="min"), path), 1)
    return works


class SumsAlone:
    """The sums of a WISE fit, of columns that are decoded already: with the decoding, the least that a fit can take."""

    def __init__(self, path):
        self.blocks = [
            Blocks(None, exponent=1.0, scale=1.0).of(Rows(ColumnMatrix(columns[:P]), ColumnMatrix(columns[P:])))
            for columns in ([column.to_numpy() for column in batch.columns] for batch in batches([path]))
        ]

    def __call__(self):
        """Return the sums of each block."""
        return [column_sums(blocks, np.zeros(P)) for blocks in self.blocks]


def report(bench, path, n_rows, *, everything):
    """Time each work by both clocks."""
    works = works_on(path, everything=everything)
    for clock in ("wall", "processor"):
        times = bench.time(*(work for work, _ in works.values()), clock=clock, warm=clock == "wall")
        decoding, *others = (time.per(passes) for time, (_, passes) in zip(times, works.values(), strict=True))
        for name, ours in zip(list(works)[1:], others, strict=True):
            is_target = name.startswith("WISE") and clock == "wall"
            target = {"at_most": TARGET} if is_target else {"limit": True}
            same = "not a part of it" if name.startswith("the sums") else "a part of ours"
            bench.claim(name, ours, decoding, peer="pyarrow decodes", same=same, **target)
            what = "rows per second" if clock == "wall" else "rows per second and core"
            bench.claim(f"{name}: {what}", n_rows / ours.value)


def main(arguments):
    n_rows = arguments.rows // 10 if arguments.quick else arguments.rows
    with Bench(__file__, "Streaming", arguments.quick, rounds=arguments.rounds) as bench:
        for rounded in (False, True):
            with TemporaryDirectory() as folder:
                path = Path(folder, "rows.parquet")
                write_rows(path, n_rows, np.random.default_rng(0), n_features=P, n_costs=D, rounded=rounded)
                what = "rounded to cents, zstd" if rounded else "random numbers"
                size = path.stat().st_size / 1e6
                bench.group = f"{n_rows:,} rows of {P} features and {D} costs, {what}, {size:.0f} MB"
                report(bench, path, n_rows, everything=not rounded)


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("rows", nargs="?", type=lambda text: int(text.replace("_", "")), default=N)
    options.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    main(options.parse_args())
