"""A fit from files is the fit in memory, in the memory of a few blocks, and goes on after it was killed."""

import errno
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from decidewise import GeneralizedLinear, WiseRegressor
from decidewise.kit import files as whole_files
from decidewise.rows import ArrayRows, FileRows
from decidewise.rows.checkpoint import Checkpoint
from decidewise.rows.table_file import TableFile

COLUMNS = {"features": "x_*", "costs": "c_*", "block_rows": 600}
MODELS = [
    GeneralizedLinear(alpha=0.1),
    GeneralizedLinear("gamma"),
    GeneralizedLinear("tweedie", alpha=0.1),
    WiseRegressor(),
    WiseRegressor(scale="unit", exponent=0.5),
    WiseRegressor(scale="iterated"),
    WiseRegressor(lifted=True),
    WiseRegressor(lifted=True, scale="iterated", exponent=0.5),
    WiseRegressor(GeneralizedLinear("gamma", alpha=0.01)),
    WiseRegressor(GeneralizedLinear("poisson"), lifted=True),
]


@pytest.fixture(params=[False, True], ids=["small", "large"])
def large(request, monkeypatch):
    """Whether files count as large, so that sums come straight from their columns."""
    if request.param:
        monkeypatch.setattr("decidewise.rows.files._LARGE", 0)
    return request.param


def parameters(model):
    learner = getattr(model, "estimator_", model)
    return np.column_stack([learner.intercept_, learner.coef_])


def close(found, expected, tolerance=1e-9):
    return np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_files_give_the_fit_in_memory(model, weighted, large, table, folder):
    streamed = clone(model).fit_files(folder, **COLUMNS, sample_weight="w" if weighted else None)
    expected = clone(model).fit(table.X, table.costs, sample_weight=table.weights if weighted else None)
    # Intercepts extrapolate over a million deviations; so compare coefficients and predictions.
    assert close(parameters(streamed)[:, 1:], parameters(expected)[:, 1:])
    frame = pa.table({f"x_{j}": table.X[:, j] for j in range(4)}).to_pandas()
    assert close(streamed.predict(frame), expected.predict(table.X))
    assert list(streamed.feature_names_in_) == [f"x_{j}" for j in range(4)]
    assert list(streamed.cost_names_in_) == ["c_0", "c_1", "c_2"]


@pytest.mark.parametrize("write", [csv.write_csv, feather.write_feather])
def test_other_formats(write, table, folder, tmp_path):
    path = tmp_path / ("a.csv" if write is csv.write_csv else "a.feather")
    write(table.arrow, path)
    found = WiseRegressor().fit_files(path, features="x_*", costs="c_*", block_rows=600)
    assert close(parameters(found)[:, 1:], parameters(WiseRegressor().fit(table.X, table.costs))[:, 1:])


def test_the_rows_of_a_text_are_estimated_for_the_time_left(table, tmp_path):
    csv.write_csv(pa.concat_tables([table.arrow] * 4), tmp_path / "a.csv")
    source = FileRows(tmp_path, **COLUMNS)
    assert source.n_rows is None
    assert abs(source.n_rows_about / 12_000 - 1) < 0.01
    source.reduce(lambda rows: (np.array(len(rows)),))
    assert source.n_rows == source.n_rows_about == 12_000


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_arrow_files_are_mapped_only_if_their_batches_are_large(compression, table, tmp_path, monkeypatch):
    feather.write_feather(table.arrow, tmp_path / "a.arrow", compression=compression, chunksize=800)
    found = []
    for most in (2**26, 1):
        monkeypatch.setattr("decidewise.rows.table_file._BATCH_BYTES", most)
        source = FileRows(tmp_path, **COLUMNS)
        assert source.files[0].is_mapped == (most == 1)
        assert source.n_rows in (3_000, None)  # the oldest pyarrow does not count them
        found.append(parameters(WiseRegressor().fit_rows(source)))
    assert (found[0] == found[1]).all()


CUT = """
import os, sys
from pathlib import Path
from pyarrow import lib
from decidewise.rows.table_file import open_arrow
with open_arrow(Path(sys.argv[1])) as (file, is_mapped):
    file.get_batch(0)
    os.truncate(sys.argv[1], 100)
    try:
        print(file.get_batch(1)["x_0"].to_numpy().sum())
    except (OSError, lib.ArrowException):
        print("refused")
"""


def test_an_arrow_file_that_is_cut_between_a_check_and_a_read_does_not_end_the_process(table, tmp_path):
    feather.write_feather(table.arrow, tmp_path / "a.arrow", compression="uncompressed", chunksize=800)
    command = [sys.executable, "-c", CUT, tmp_path / "a.arrow"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "refused"), done.stderr  # mapped, it would be killed by SIGBUS


@pytest.mark.parametrize("model", [GeneralizedLinear("gamma"), WiseRegressor()], ids=repr)
def test_digits_depend_on_the_blocks_alone(model, large, table, tmp_path, monkeypatch):
    parquet.write_table(table.arrow, tmp_path / "a.parquet")
    few = clone(model).fit_files(tmp_path, **COLUMNS)
    arrays = clone(model).fit_rows(ArrayRows(table.X, table.costs, block_rows=600))

    class FiveThreads:
        __enter__ = lambda self: 5  # noqa: E731
        __exit__ = lambda self, *_: None  # noqa: E731

    monkeypatch.setattr("decidewise.kit.machine.one_library_thread", FiveThreads)
    many = clone(model).fit_files(tmp_path, **COLUMNS)
    assert (parameters(few) == parameters(many)).all()
    assert close(
        parameters(arrays)[:, 1:], parameters(few)[:, 1:], 1e-12
    )  # arrays are laid out in rows, and files in columns


@pytest.mark.parametrize(("model", "n_passes"), [(WiseRegressor(), 1), (WiseRegressor(lifted=True), 3)], ids=repr)
def test_a_pass_reads_each_file_once(model, n_passes, folder, monkeypatch):
    opened = []
    read = TableFile.pieces
    monkeypatch.setattr(TableFile, "pieces", lambda file, *rest: opened.append(file.path.name) or read(file, *rest))
    model.fit_files(folder, **COLUMNS)  # its first rows, which set the units, are those of the first pass
    assert sorted(opened) == sorted(n_passes * [path.name for path in folder.iterdir()])


def test_without_an_intercept(table):
    X = table.X - 1e6  # sums of squares about zero lose twice the digits of an offset
    found = GeneralizedLinear(fit_intercept=False).fit_rows(ArrayRows(X, table.costs, block_rows=77))
    assert close(parameters(found), parameters(GeneralizedLinear(fit_intercept=False).fit(X, table.costs)))


def test_rows_are_added_to_those_of_files(table, tmp_path):
    parquet.write_table(table.arrow.slice(0, 2_000), tmp_path / "a.parquet")
    model = WiseRegressor().fit_files(tmp_path, **COLUMNS)
    names = {"feature_names_in_", "cost_names_in_"}
    for part in (model, model.estimator_):
        for name in names & set(vars(part)):
            delattr(part, name)
    model.partial_fit(table.X[2_000:], table.costs[2_000:])
    assert close(parameters(model)[:, 1:], parameters(WiseRegressor().fit(table.X, table.costs))[:, 1:])


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 5, 2))
    return X, np.exp(X @ [0.5, -0.3] + 0.1 * rng.normal(size=(400, 5)))


def long_table(items, order):
    X, costs = items
    n, d, _ = X.shape
    lines = np.arange(n * d).reshape(n, d)
    lines[1:] = np.take_along_axis(lines[1:], order.permuted(np.tile(np.arange(d), (n - 1, 1)), axis=1), axis=1)
    at = lines.ravel()
    return pa.table(
        {
            "day": [f"day {line // d}" for line in at],
            "hour": [int(line % d) + 8 for line in at],
            "forecast": X[:, :, 0].ravel()[at],
            "load": X[:, :, 1].ravel()[at],
            "price": costs.ravel()[at],
        }
    )


@pytest.mark.parametrize(
    "model",
    [
        WiseRegressor(),
        GeneralizedLinear("gamma", per_item="intercept"),
        WiseRegressor(GeneralizedLinear(per_item="coefficients", alpha=0.1), scale="iterated"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_long_tables(model, kind, items, tmp_path):
    long = long_table(items, np.random.default_rng(2))
    for number, part in enumerate((long.slice(0, 500), long.slice(500))):
        write = parquet.write_table if kind == "parquet" else csv.write_csv
        write(part, tmp_path / f"{number}.{kind}")
    found = clone(model).fit_files(
        tmp_path, features=["forecast", "load"], costs="price", rows="day", items="hour", block_rows=60
    )
    assert close(found.predict(items[0]), clone(model).fit(*items).predict(items[0]))
    assert list(found.cost_names_in_) == ["8", "9", "10", "11", "12"]
    with_hour = np.concatenate([items[0], np.tile(np.arange(8.0, 13), (400, 1))[:, :, None]], axis=2)
    found = clone(model).fit_files(
        tmp_path, features=["forecast", "load", "hour"], costs="price", rows="day", items="hour", block_rows=60
    )
    assert close(found.predict(with_hour), clone(model).fit(with_hour, items[1]).predict(with_hour))


def test_wide_tables_with_features_of_items(items, tmp_path):
    X, costs = items
    columns = {f"price_{j}": costs[:, j] for j in range(5)} | {f"forecast_{j}": X[:, j, 0] for j in range(5)}
    parquet.write_table(pa.table(columns | {"load": X[:, 0, 1]}), tmp_path / "a.parquet")
    found = WiseRegressor().fit_files(
        tmp_path, features={"forecast": "forecast_*", "load": "load"}, costs="price_*", block_rows=77
    )
    shared = np.stack([X[:, :, 0], np.tile(X[:, :1, 1], (1, 5))], axis=2)
    assert close(found.predict(shared), WiseRegressor().fit(shared, costs).predict(shared))


def test_long_tables_that_are_not_sorted_or_not_complete(items, tmp_path):
    long = long_table(items, np.random.default_rng(2))
    arguments = {"features": "forecast", "costs": "price", "rows": "day", "items": "hour", "block_rows": 60}
    path = tmp_path / "a.parquet"
    order = np.arange(len(long))
    order[[500, 700]] = order[[700, 500]]
    for lines, expected in (
        (long.take(order), "day 140 from row 500 on does not have 5 lines next to each other"),
        (long.slice(0, 1_998), "day 399 from row 1995 on does not have 5 lines"),
        (long.set_column(1, "hour", [[8, 9, 10, 11, 12] * 399 + [8, 9, 10, 11, 11]]), "lacks hour '12'"),
        (long.set_column(1, "hour", [[8, 9, 10, 11, 12] * 399 + [8, 9, 10, 11, 30]]), "row 1999: hour is '30'"),
    ):
        parquet.write_table(lines, path)
        with pytest.raises(ValueError, match=expected):
            WiseRegressor().fit_files(path, **arguments)


def test_a_killed_run_continues_bit_for_bit(large, folder, tmp_path, monkeypatch):
    checkpoint = tmp_path / "checkpoint.npz"
    keep = {"checkpoint": checkpoint, "checkpoint_every": 0.0}
    model = WiseRegressor(GeneralizedLinear("gamma"), scale="mean")
    expected = clone(model).fit_files(folder, **COLUMNS)
    read = FileRows.blocks
    n_blocks = []

    def dying(self, *place):
        for rows in read(self, *place):
            n_blocks.append(rows)
            if len(n_blocks) == 17:  # in the middle of the third pass
                raise KeyboardInterrupt
            yield rows

    monkeypatch.setattr(FileRows, "blocks", dying)
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit_files(folder, **COLUMNS, **keep)
    assert checkpoint.exists()
    with pytest.raises(ValueError, match="belongs to another fit"):
        WiseRegressor().fit_files(folder, **COLUMNS, **keep)
    n_before = len(n_blocks)
    found = clone(model).fit_files(folder, **COLUMNS, **keep)
    assert (parameters(found) == parameters(expected)).all()
    assert not checkpoint.exists()
    n_after = len(n_blocks)
    clone(model).fit_files(folder, **COLUMNS)
    assert n_after - n_before <= len(n_blocks) - n_after - 12  # two passes of six blocks were not read again


KILLED = """
import sys, time
from decidewise import GeneralizedLinear
from decidewise.rows import FileRows
read = FileRows.blocks
def slow(self, *place):
    for rows in read(self, *place):
        yield rows
        time.sleep(0.2)
FileRows.blocks = slow
GeneralizedLinear("gamma").fit_files(
    sys.argv[1], features="x_*", costs="c_*", block_rows=600, checkpoint=sys.argv[2], checkpoint_every=0.0
)
"""


def test_a_process_that_is_killed_leaves_a_whole_checkpoint(folder, tmp_path):
    checkpoint = tmp_path / "checkpoint.npz"
    process = subprocess.Popen([sys.executable, "-c", KILLED, folder, checkpoint])
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    process.kill()
    assert process.wait() != 0
    assert checkpoint.exists()
    found = GeneralizedLinear("gamma").fit_files(str(folder), **COLUMNS, checkpoint=checkpoint)
    assert (parameters(found) == parameters(GeneralizedLinear("gamma").fit_files(folder, **COLUMNS))).all()


def test_a_full_disk_at_a_checkpoint(folder, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(whole_files.Path, "write_bytes", full)
    model = WiseRegressor()
    with pytest.raises(OSError, match=r"the checkpoint could not be written \(No space left on device\)") as raised:
        model.fit_files(folder, **COLUMNS, checkpoint=tmp_path / "c.npz", checkpoint_every=0.0)
    assert raised.value.errno == errno.ENOSPC
    assert not [thread for thread in threading.enumerate() if thread.name == "decidewise-reader"]
    assert not hasattr(model, "estimator_")


def test_what_is_no_checkpoint(folder, tmp_path):
    (tmp_path / "c.npz").write_bytes(b"PK no archive")
    with pytest.raises(ValueError, match=r"c\.npz is not a checkpoint of a fit"):
        WiseRegressor().fit_files(folder, **COLUMNS, checkpoint=tmp_path / "c.npz")
    Checkpoint(tmp_path / "d.npz", "other").write()
    with pytest.raises(ValueError, match="belongs to another fit"):
        WiseRegressor().fit_files(folder, **COLUMNS, checkpoint=tmp_path / "d.npz")


def test_a_missing_value_names_file_row_and_column(large, table, folder, tmp_path):
    table.write(tmp_path)
    values = table.costs[1_100:2_000, 1].copy()
    values[777] = np.nan
    part = table.arrow.slice(1_100, 900)
    parquet.write_table(part.set_column(5, "c_1", [values]), tmp_path / "part-1.parquet")
    for model in (GeneralizedLinear(), WiseRegressor(scale="iterated"), GeneralizedLinear("gamma")):
        with pytest.raises(ValueError, match=r"part-1\.parquet, row 777, column 'c_1' has no value, or NaN \(1 such"):
            model.fit_files(tmp_path, **COLUMNS)
        assert not hasattr(model, "n_features_in_")
    parquet.write_table(part.set_column(7, "w", [-table.weights[1_100:2_000]]), tmp_path / "part-1.parquet")
    with pytest.raises(ValueError, match=r"part-1\.parquet, row 0, column 'w' has -2\.5"):
        WiseRegressor().fit_files(tmp_path, **COLUMNS, sample_weight="w")


def test_targets_that_a_deviance_does_not_admit(table, tmp_path):
    values = table.costs[:, 1].copy()
    values[1_234] = -1.0
    parquet.write_table(table.arrow.set_column(5, "c_1", [values]), tmp_path / "a.parquet")
    with pytest.raises(
        ValueError, match=r"a\.parquet, in the block from row 1200 on: .*row 1234, column 1 is negative"
    ):
        GeneralizedLinear("gamma").fit_files(tmp_path, **COLUMNS)


def test_a_file_of_another_schema(table, tmp_path):
    table.write(tmp_path)
    other = tmp_path / "part-9.parquet"
    for changed, expected in (
        (table.arrow.drop_columns("c_1"), r"part-9\.parquet has other columns than .*: without 'c_1'"),
        (table.arrow.append_column("x_9", [table.weights]), r"part-9\.parquet has other columns .*with also 'x_9'"),
        (table.arrow.select([0, 1, 2, 3]), r"part-9\.parquet: costs: the table has no column 'c_\*'"),
        (table.arrow.set_column(0, "x_0", [["one"] * 3_000]), r"part-9\.parquet: column 'x_0' must hold numbers"),
    ):
        parquet.write_table(changed, other)
        with pytest.raises(ValueError, match=expected):
            WiseRegressor().fit_files(tmp_path, **COLUMNS)


def test_a_file_that_changes_while_it_is_read(table, tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    parquet.write_table(table.arrow, path)
    source = FileRows(path, **COLUMNS)
    blocks = source.blocks()
    next(blocks)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match=r"a\.parquet changed while it was read \(it had"):
        list(blocks)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_a_file_that_is_cut_or_written_again_while_it_is_read(kind, table, tmp_path):
    path = tmp_path / f"a.{kind}"
    write = {"parquet": parquet.write_table, "arrow": feather.write_feather, "csv": csv.write_csv}[kind]
    for cut in (True, False):
        write(table.arrow, path)
        blocks = FileRows(path, **COLUMNS).blocks()
        next(blocks)
        if cut:
            os.truncate(path, 100)  # an Arrow file is mapped: to read beyond its end would end the process
        else:
            os.utime(path, ns=(0, 0))
        what = "it had .* bytes and now has 100" if cut else "it was written again"
        with pytest.raises(ValueError, match=rf"a\.{kind} changed while it was read \({what}\)"):
            list(blocks)


def test_bad_arguments(folder, tmp_path):
    for arguments, expected in (
        ({"features": "y_*"}, r"features: the table has no column 'y_\*'"),
        ({"features": "*"}, "are both features and costs"),
        ({"items": "w"}, "needs the column of the sample keys"),
        ({"block_rows": 0}, "block_rows must be"),
        ({"sample_weight": "v"}, "sample_weight: the table has no column 'v'"),
    ):
        with pytest.raises(ValueError, match=expected):
            WiseRegressor().fit_files(folder, **COLUMNS | arguments)
    with pytest.raises(ValueError, match=r"GeneralizedLinear\(\) or None; got LinearRegression"):
        WiseRegressor(LinearRegression()).fit_files(folder, **COLUMNS)
    with pytest.raises(ValueError, match="needs all rows in memory"):
        WiseRegressor(scale=LinearRegression()).fit_files(folder, **COLUMNS)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        WiseRegressor().fit_files(tmp_path / "*.parquet", **COLUMNS)
    with pytest.raises(ValueError, match="has no table: none of its files ends in"):
        WiseRegressor().fit_files(tmp_path, **COLUMNS)
    with pytest.raises(ValueError, match="have no rows at all"):
        WiseRegressor().fit_files(folder / "part-0-empty.parquet", **COLUMNS)
    (tmp_path / "twice.csv").write_text("x_1,x_1,c_1\n1,2,3\n")
    with pytest.raises(ValueError, match=r"twice\.csv: the columns of a table must have different names; 'x_1' occur"):
        WiseRegressor().fit_files(tmp_path, **COLUMNS)
    (tmp_path / "twice.csv").unlink()
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match=r"bad\.parquet could not be read"):
        WiseRegressor().fit_files(tmp_path, **COLUMNS)


MEASURE = """
import sys
from pathlib import Path
from pyarrow import parquet
from decidewise import WiseRegressor

path, small = sys.argv[1:]


def peak():  # of this program alone: `ru_maxrss` begins at the size of the process that started it
    return 1024 * int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])


WiseRegressor().fit_files(small, features="x_*", costs="c_*", block_rows=4096)  # all imports, threads and buffers
before = peak()
WiseRegressor().fit_files(path, features="x_*", costs="c_*", block_rows=4096)
in_blocks = peak()
whole = parquet.read_table(path)
print(in_blocks - before, peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is read")
@pytest.mark.parametrize("group", [2**14, 2**21], ids=["many row groups", "one row group"])
def test_memory_is_bounded_by_blocks_whatever_the_file(group, tmp_path):
    rng = np.random.default_rng(0)
    part = pa.table(
        {name: rng.random(2**14) for name in [*(f"x_{j}" for j in range(10)), *(f"c_{j}" for j in range(6))]}
    )
    for name, times in (("small", 17), ("large", 80)):
        rows = pa.concat_tables([part] * times)
        options = {"row_group_size": group, "compression": "none", "use_dictionary": False}
        parquet.write_table(rows, tmp_path / f"{name}.parquet", **options)
    size = (tmp_path / "large.parquet").stat().st_size
    assert size > 160e6
    command = [sys.executable, "-c", MEASURE, tmp_path / "large.parquet", tmp_path / "small.parquet"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    in_blocks, in_memory = map(int, done.stdout.split())
    assert in_blocks < size / 4  # a few blocks of half a megabyte, and what allocators keep: 5 to 20 MB
    assert in_memory > size / 2  # what is measured would show it
