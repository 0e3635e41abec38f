"""Tables that are read block by block give what they give in memory, in constant memory, with errors that say where."""

import json
import signal
import subprocess
import sys
from functools import partialmethod

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from typer.testing import CliRunner

from decidewise import load_model, model_file
from decidewise.app.cli.app import app
from decidewise.app.tables import blocks as table_blocks
from decidewise.app.tables import choice, fitting, new_rows
from decidewise.app.tables.fitting import Advice
from decidewise.app.tables.new_rows import OrderedRegrets
from decidewise.kit.errors import InputError
from decidewise.rows import file_blocks, table_file
from decidewise.rows.file_blocks import FileBlocks, read_files
from decidewise.rows.files import FileRows

N, ITEMS = 600, ("a", "b", "c")
PROBLEM = 'kind = "top_k"\nn = 3\nk = 1\nsense = "min"\n'
LONG = PROBLEM + '[table]\nrows = "day"\nitems = "item"\ncosts = "cost"\nforecast = "f"\n'


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exc_info)
    return result


def tables():
    """Return a wide table with names, dates and gaps, and a long one, of the same costs."""
    rng = np.random.default_rng(0)
    x, kind = rng.normal(size=N), rng.choice(["u", "v"], N)
    effects = 1 + 0.3 * x[:, None] * [1, -1, 0.5] + 0.4 * (kind == "v")[:, None] * [0, 1, 0]
    costs = np.exp(effects + rng.normal(0, 0.1, (N, 3)))
    day = np.datetime64("2026-01-01") + np.arange(N)
    gaps = np.where(np.arange(N) % 9 == 4, np.nan, x)
    wide = {"day": day, "x": pa.array(gaps, from_pandas=True), "kind": kind, "whole": np.arange(N) // 300}
    wide |= {f"cost_{item}": costs[:, j] for j, item in enumerate(ITEMS)}
    long = {"day": np.repeat(day, 3), "item": np.tile(ITEMS, N), "x": np.repeat(x, 3) + np.tile([0.0, 1.0, 2.0], N)}
    long |= {"f": costs.ravel() * rng.uniform(0.9, 1.1, 3 * N), "cost": costs.ravel()}
    return pa.table(wide), pa.table(long)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streamed")
    wide, long = tables()
    csv.write_csv(wide, folder / "wide.csv")
    csv.write_csv(wide, folder / "wide.tsv", csv.WriteOptions(delimiter="\t"))
    parquet.write_table(wide, folder / "wide.parquet", row_group_size=250)
    feather.write_feather(wide, folder / "wide.arrow")
    csv.write_csv(long, folder / "long.csv")
    (folder / "parts").mkdir()
    for part, rows in enumerate((slice(0, 100), slice(100, 100), slice(100, N))):
        some = wide.slice(rows.start, rows.stop - rows.start)
        parquet.write_table(some, folder / "parts" / f"{part}.parquet")
    (folder / "problem.toml").write_text(PROBLEM)
    (folder / "long.toml").write_text(LONG)
    run(
        "fit", folder / "wide.csv", "-p", folder / "problem.toml", "--model", "gamma", "--out", folder / "wide.dw", "-q"
    )
    run("fit", folder / "long.csv", "-p", folder / "long.toml", "--model", "wise", "--out", folder / "long.dw", "-q")
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(file_blocks, "_MOST_ROWS", 70)
    monkeypatch.setattr(file_blocks, "_LEAST_ROWS", 70)
    monkeypatch.setattr(table_file, "_TEXT_BYTES", 2_000)


SOURCES = [("wide", f"wide{kind}") for kind in (".csv", ".tsv", ".parquet", ".arrow")]
SOURCES += [("wide", "parts"), ("long", "long.csv")]


@pytest.mark.parametrize(("model", "source"), SOURCES)
def test_rows_are_predicted_decided_and_evaluated_as_in_memory(folder, tmp_path, small_blocks, model, source):
    assert sum(1 for _ in FileBlocks(folder / source)) > 6
    problem = ("-p", folder / ("long.toml" if model == "long" else "problem.toml"))
    for command, more in (("predict", ()), ("decide", problem)):
        for how in ("--stream", "--no-stream"):
            run(command, folder / f"{model}.dw", folder / source, *more, how, "--out", tmp_path / f"{how}.parquet")
        in_blocks, whole = (read_files(tmp_path / f"{how}.parquet") for how in ("--stream", "--no-stream"))
        assert in_blocks.column_names == whole.column_names
        for name in whole.column_names:
            got, expected = in_blocks[name].to_numpy(), whole[name].to_numpy()
            if got.dtype.kind == "f":
                np.testing.assert_allclose(got, expected, rtol=1e-12)
            else:
                assert (got == expected).all()
    call = ("evaluate", folder / f"{model}.dw", folder / source, *problem, "--json")
    in_blocks, whole = (json.loads(run(*call, how).stdout) for how in ("--stream", "--no-stream"))
    assert in_blocks["rows"] == whole["rows"] == N
    assert [row["name"] for row in in_blocks["models"]] == [row["name"] for row in whole["models"]]
    for got, expected in zip(in_blocks["models"], whole["models"], strict=True):
        for key in ("regret percent", "regret per row", "minus forecast"):
            if expected[key] is not None:
                assert got[key]["estimate"] == pytest.approx(expected[key]["estimate"], rel=1e-9)
                assert got[key]["high"] == pytest.approx(expected[key]["high"], abs=0.4 * abs(expected[key]["high"]))


def test_intervals_of_rows_in_order_are_those_in_memory(folder, tmp_path, small_blocks, monkeypatch):
    wide, _ = tables()
    shuffled = wide.take(np.random.default_rng(1).permutation(N))
    for name, table in (("sorted", wide), ("shuffled", shuffled)):
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    problem = tmp_path / "problem.toml"
    problem.write_text(PROBLEM + '[table]\ntime = "day"\n')
    run("fit", tmp_path / "sorted.parquet", "-p", problem, "--model", "least squares", "--out", tmp_path / "m.dw", "-q")

    def evaluated(name, *how):
        return json.loads(run("evaluate", tmp_path / "m.dw", tmp_path / name, "-p", problem, "--json", *how).stdout)

    def same(one, other, rel):
        for key in ("regret percent", "regret per row"):
            got, expected = (found["models"][0][key] for found in (one, other))
            assert got["estimate"] == pytest.approx(expected["estimate"], rel=1e-9)
            widths = [ends["high"] - ends["low"] for ends in (got, expected)]
            assert widths[0] == pytest.approx(widths[1], rel=rel)

    whole = evaluated("sorted.parquet", "--no-stream")
    for name in ("sorted.parquet", "shuffled.parquet"):  # sorted by time at the end
        in_blocks = evaluated(name, "--stream")
        assert in_blocks["intervals"] == "bootstrap"
        assert in_blocks["rows drawn together"] == whole["rows drawn together"] > 1
        same(in_blocks, whole, 1e-6)
    monkeypatch.setattr(new_rows.OrderedRegrets, "__init__", partialmethod(OrderedRegrets.__init__, most=200))
    in_blocks = evaluated("sorted.parquet", "--stream")  # four neighbours are added up
    assert in_blocks["rows drawn together"] % 4 == 0
    same(in_blocks, whole, 0.5)
    late = evaluated("shuffled.parquet", "--stream")
    assert "not in the order of time" in late["intervals"]
    same(late, whole, 0.7)


@pytest.mark.parametrize("name", ["wise", "gamma", "wise iterated"])
def test_a_fit_in_blocks_is_the_fit_in_memory(folder, tmp_path, small_blocks, name):
    call = ("fit", folder / "wide.csv", "-p", folder / "problem.toml", "--model", name, "-q")
    run(*call, "--no-stream", "--out", tmp_path / "whole.dw")
    run(*call, "--stream", "--out", tmp_path / "blocks.dw")
    whole, blocks = (load_model(tmp_path / f"{kind}.dw") for kind in ("whole", "blocks"))
    assert blocks.features.columns_ == whole.features.columns_  # 600 rows are all in the part
    got, expected = (np.asarray(model.estimator.estimator_.coef_) for model in (blocks, whole))
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_the_choice_is_made_on_a_part_and_said(folder, tmp_path, small_blocks):
    call = ("fit", folder / "long.csv", "-p", folder / "long.toml", "--sample", 200)
    said = run(*call, "--out", tmp_path / "m.dw").stdout
    assert "Features prepared and model chosen on " in said
    assert f" random rows of {N}; fitted on all rows." in said
    model = load_model(tmp_path / "m.dw")
    assert set(model.decide(folder / "long.csv", folder / "long.toml").decisions.sum(axis=1)) == {1.0}
    summary = json.loads(run(*call, "--out", tmp_path / "again.dw", "--json").stdout)
    assert summary["rows"] == N
    assert 100 < summary["chosen on"] <= 200
    assert (tmp_path / "m.dw").read_bytes() == (tmp_path / "again.dw").read_bytes()  # the part is drawn by the seed
    shown = run(
        "compare", folder / "long.csv", "-p", folder / "long.toml", "--sample", 200, "--out", tmp_path / "c.html"
    )
    assert f"of {N} rows is used (--sample)." in " ".join(shown.stdout.split())


def test_a_learner_that_needs_all_rows_is_refused_with_what_to_do(folder, tmp_path):
    call = ("fit", folder / "wide.csv", "-p", folder / "problem.toml", "--out", tmp_path / "m.dw")
    said = run(*call, "--stream", "--model", "trees", code=2).stderr
    assert "'trees' needs all rows in memory, and the table is read block by block. Take one of 'training mean'" in said
    assert "pass --no-stream" in said
    assert (
        "for tables that are read block by block: --stream."
        in run(*call, "--no-stream", "--sample", 200, code=2).stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_a_killed_fit_continues_from_its_checkpoint_bit_for_bit(folder, tmp_path, small_blocks, monkeypatch):
    call = ("fit", folder / "wide.csv", "-p", folder / "problem.toml", "--model", "gamma", "-q")
    run(*call, "--stream", "--out", tmp_path / "whole.dw")
    checkpoint = tmp_path / "fit.npz"

    n_blocks, as_rows = 0, table_blocks._as_rows

    def killed(*arguments):
        nonlocal n_blocks
        n_blocks += 1
        if n_blocks == 30:  # in the middle of a later pass
            signal.raise_signal(signal.SIGINT)
        return as_rows(*arguments)

    monkeypatch.setattr(table_blocks, "_as_rows", killed)
    said = run(*call, "--checkpoint", checkpoint, "--out", tmp_path / "m.dw", code=130).stderr
    assert f"Error: stopped. What is finished is kept in {checkpoint}, and the same command continues." in said
    assert not (tmp_path / "m.dw").exists()
    monkeypatch.setattr(table_blocks, "_as_rows", as_rows)
    other = (*call[:4], "--model", "poisson", "--checkpoint", checkpoint, "--out", tmp_path / "m.dw")
    assert "belongs to another fit" in run(*other, code=2).stderr
    n_blocks = -1_000
    monkeypatch.setattr(table_blocks, "_as_rows", killed)
    run(*call, "--checkpoint", checkpoint, "--out", tmp_path / "m.dw")
    continued = n_blocks + 1_000
    n_blocks = -1_000
    run(*call, "--stream", "--out", tmp_path / "again.dw")
    assert continued + 20 < n_blocks + 1_000  # finished passes were not repeated
    assert not checkpoint.exists()
    assert (tmp_path / "m.dw").read_bytes() == (tmp_path / "whole.dw").read_bytes()


@pytest.mark.parametrize("how", [(), ("--one-model",), ("--model", "choice")])
def test_a_continued_fit_repeats_neither_the_random_part_nor_the_choice(folder, tmp_path, monkeypatch, how):
    call = ("fit", folder / "wide.csv", "-p", folder / "problem.toml", *how, "-q", "--max-solves", 20_000)
    run(*call, "--stream", "--out", tmp_path / "whole.dw")
    call += ("--checkpoint", tmp_path / "fit.npz", "--out", tmp_path / "m.dw")

    def killed(*_):
        raise KeyboardInterrupt

    def refused(*_, **__):
        raise AssertionError("this was finished before the run was killed")

    with monkeypatch.context() as patched:  # killed in the first pass, after the choice
        patched.setattr(table_blocks, "_as_rows", killed)
        run(*call, code=130)
    monkeypatch.setattr(fitting, "random_part", refused)
    monkeypatch.setattr(choice, "WiseRegressorCV", refused)
    assert "belongs to another fit" in run(*call, "--seed", 3, code=2).stderr
    with monkeypatch.context() as patched:  # the disk is full when the model is written
        patched.setattr(model_file, "save_model", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left")))
        assert run(*call, code=2).stderr == "Error: No space left.\n"
    monkeypatch.setattr(table_blocks, "_on_rows", refused)  # all passes are finished as well
    run(*call)
    assert (tmp_path / "m.dw").read_bytes() == (tmp_path / "whole.dw").read_bytes()
    assert not (tmp_path / "fit.npz").exists()


def test_the_checkpoint_of_another_model_file_is_refused(folder, tmp_path, monkeypatch):
    model, toml = tmp_path / "model.lp", tmp_path / "model.toml"
    text = "min\n 0 a\nst\n one: a + b + c = {}\nbounds\n a <= 2\n b <= 2\n c <= 2\nend\n"
    model.write_text(text.format(1))
    toml.write_text('kind = "file"\npath = "model.lp"\ncosts = ["a", "b", "c"]\n')
    call = ("fit", folder / "wide.csv", "-p", toml, "--model", "wise", "-q", "--checkpoint", tmp_path / "fit.npz")
    call += ("--out", tmp_path / "m.dw")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(table_blocks, "_as_rows", killed)
        run(*call, code=130)
    model.write_text(text.format(2))
    assert "belongs to another fit" in run(*call, code=2).stderr
    model.write_text(text.format(1))
    run(*call)


def with_rows(table, first, last, **columns):
    """Return the table with other values in some rows."""
    made = {}
    for name in table.column_names:
        values = table[name].to_pylist()
        if name in columns:
            values[first:last] = [columns[name]] * (last - first)
        made[name] = list(map(str, values)) if "much" in values else values
    return pa.table(made)


BAD = [
    ("text", lambda wide: with_rows(wide, 450, 451, x="much"), "b.csv could not be read: In CSV column"),
    ("infinite", lambda wide: with_rows(wide, 450, 451, x=float("inf")), "column 'x' has an infinite value in row 451"),
    ("gap", lambda wide: with_rows(wide, 450, 451, cost_b=None), "--costs: row 1051 has no value for 'b'"),
    ("columns", lambda wide: wide.drop_columns(["kind"]), "b.csv lacks 'kind', unlike a.csv"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "complaint"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_what_is_wrong_in_a_late_block_is_named(folder, tmp_path, small_blocks, change, complaint):
    wide, _ = tables()
    (tmp_path / "in").mkdir()
    csv.write_csv(wide, tmp_path / "in" / "a.csv")
    csv.write_csv(change(wide), tmp_path / "in" / "b.csv")
    call = ("fit", tmp_path / "in", "-p", folder / "problem.toml", "--model", "wise", "--sample", 100, "--out")
    result = run(*call, tmp_path / "m.dw", code=2)
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_blocks_without_costs_are_left_out_and_counted(folder, tmp_path, small_blocks):
    wide, _ = tables()
    csv.write_csv(with_rows(wide, 100, 400, cost_a=None, cost_b=None, cost_c=None), tmp_path / "some.csv")
    call = ("fit", "-p", folder / "problem.toml", "--model", "wise", "--stream", "--out", tmp_path / "m.dw")
    said = run(*call, tmp_path / "some.csv").stdout
    assert "300 of 600 rows have no costs yet, and are left out." in said
    assert "wise, fitted on 300 rows" in said
    found = json.loads(
        run(
            "evaluate", folder / "wide.dw", tmp_path / "some.csv", "-p", folder / "problem.toml", "--json", "--stream"
        ).stdout
    )
    assert found["rows"] == 300


def test_a_model_that_fails_in_the_passes_gives_way_to_the_next_best(folder, tmp_path, small_blocks, monkeypatch):
    """A cost of zero in a row that is not in the random part: a gamma deviance does not admit it."""
    wide, _ = tables()
    csv.write_csv(with_rows(wide, 450, 451, cost_b=0.0), tmp_path / "zero.csv")
    monkeypatch.setattr(Advice, "on", lambda *_, **__: Advice(("gamma", "wise"), ("Use gamma.",)))
    call = ("fit", tmp_path / "zero.csv", "-p", folder / "problem.toml", "--sample", 100, "--out")
    plain = run(*call, tmp_path / "m.dw").stdout
    kept = run(*call, tmp_path / "kept.dw", "--checkpoint", tmp_path / "fit.npz").stdout
    for said in (plain, kept):
        assert "'gamma' failed on all rows (ValueError: " in said
        assert "wise, fitted on 600 rows" in said
    monkeypatch.undo()
    call = ("fit", tmp_path / "zero.csv", "-p", folder / "problem.toml", "--model", "wise", "--sample", 100, "--out")
    run(*call, tmp_path / "named.dw", "-q")
    new = str(folder / "wide.csv")
    expected = load_model(tmp_path / "named.dw").predict(new)
    for name in ("m.dw", "kept.dw"):
        np.testing.assert_allclose(load_model(tmp_path / name).predict(new), expected)


@pytest.mark.parametrize("error", [RuntimeError("a worker died"), MemoryError(), InputError("no such row")])
def test_a_failure_of_the_machine_or_of_the_table_does_not_change_the_model(folder, tmp_path, monkeypatch, error):
    results = iter([error])
    fit_table = fitting.fit_table

    def fails_once(*arguments, **options):
        for found in results:
            raise found
        return fit_table(*arguments, **options)

    monkeypatch.setattr(Advice, "on", lambda *_, **__: Advice(("gamma", "wise"), ("Use gamma.",)))
    monkeypatch.setattr(fitting, "fit_table", fails_once)
    call = ["fit", str(folder / "wide.csv"), "-p", str(folder / "problem.toml"), "--stream", "--out"]
    result = CliRunner().invoke(app, [*call, str(tmp_path / "m.dw")])
    assert result.exit_code
    assert "next best" not in result.output
    assert not (tmp_path / "m.dw").exists()


def test_a_table_without_any_costs_says_so(folder, tmp_path):
    wide, _ = tables()
    csv.write_csv(with_rows(wide, 0, N, **{f"cost_{item}": None for item in ITEMS}), tmp_path / "none.csv")
    call = ("fit", tmp_path / "none.csv", "-p", folder / "problem.toml", "--stream", "--model", "wise", "--out")
    assert "no row of the table has costs" in run(*call, tmp_path / "m.dw", code=2).stderr


def test_a_long_table_that_is_not_sorted_says_so(folder, tmp_path, small_blocks):
    _, long = tables()
    csv.write_csv(long.take(np.random.default_rng(0).permutation(3 * N)), tmp_path / "shuffled.csv")
    call = (
        "decide",
        folder / "long.dw",
        tmp_path / "shuffled.csv",
        "-p",
        folder / "long.toml",
        "--out",
        tmp_path / "d.csv",
    )
    assert "must have the lines of each 'day' next to each other, in one file" in run(*call, "--stream", code=2).stderr
    assert not (tmp_path / "d.csv").exists()
    run(*call, "--no-stream")


def test_items_are_in_one_order_however_a_table_is_read(folder, tmp_path, small_blocks):
    """Names as the first sample lists them, numbers in their own order; a part of the rows need not have the first."""
    _, long = tables()
    order = np.concatenate([3 * day + np.roll([2, 0, 1], day % 3) for day in range(N)])
    named = long.take(order)
    numbered = named.set_column(
        1, "item", pa.array([{"a": 10, "b": 2, "c": 1}[item.as_py()] for item in named["item"]])
    )
    for table, expected in ((named, ["c", "a", "b"]), (numbered, ["1", "2", "10"])):
        csv.write_csv(table, tmp_path / "long.csv")
        for how in (["--no-stream"], ["--stream", "--sample", 100]):
            call = (
                "fit",
                tmp_path / "long.csv",
                "-p",
                folder / "long.toml",
                "--model",
                "wise",
                "--out",
                tmp_path / "m.dw",
            )
            said = run(*call, *how).stdout
            assert ("in the order in which the table lists 'item' first: 'c', 'a', 'b'." in said) == (
                expected[0] == "c"
            )
            assert "Rows are in the order of 'day'" in said
            model = load_model(tmp_path / "m.dw")
            assert (model.cost_names, model.options["time"]) == (expected, "day")
        rows = FileRows(tmp_path / "long.csv", features="x", costs="cost", rows="day", items="item")
        assert list(rows.columns.item_names) == expected


def test_ctrl_c_leaves_nothing(folder, tmp_path, small_blocks, monkeypatch):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(new_rows.Written, "of", stopped)
    call = ("decide", folder / "wide.dw", folder / "wide.csv", "-p", folder / "problem.toml", "--stream")
    run(*call, "--out", tmp_path / "d.csv", code=130)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_changes_while_it_is_read(folder, tmp_path, small_blocks, monkeypatch):
    path = tmp_path / "wide.parquet"
    path.write_bytes((folder / "wide.parquet").read_bytes())
    blocks = iter(FileBlocks(path))
    next(blocks)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match=r"wide\.parquet changed while it was read \(it had "):
        list(blocks)


def test_a_table_that_does_not_fit_is_read_in_blocks_by_itself_and_it_is_said(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("decidewise.kit.machine.available_memory", lambda: 10_000)
    call = (
        "decide",
        folder / "wide.dw",
        folder / "wide.csv",
        "-p",
        folder / "problem.toml",
        "--out",
        tmp_path / "d.csv",
    )
    said = run(*call).stderr
    assert "of memory, and 0 MB are free. It is read block by block (--stream).\n" in said
    assert "read block by block" not in run(*call, "--no-stream").stderr
    assert "read block by block" not in run(*call, "-q").stderr


MEASURE = """
import sys
from pathlib import Path
from decidewise.app.cli.app import app
from decidewise.rows import file_blocks

file_blocks._BLOCK_BYTES, folder = 2**19, Path(sys.argv[1])


def peak():  # of this program alone: `ru_maxrss` begins at the size of the process that started it
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def run(*arguments):
    before = peak()
    try:
        app([str(argument) for argument in arguments])
    except SystemExit as stop:
        assert not stop.code
    return peak() - before


def both(name, how):
    problem = ("-p", folder / "problem.toml", "-q")
    fit = ("fit", folder / name, *problem, "--model", "wise", "--sample", 500, "--out", folder / "m.dw")
    decide = ("decide", folder / "m.dw", folder / name, *problem, "--out", folder / "d.parquet", how)
    return (run(*fit) if how == "--stream" else 0) + run(*decide)


both("small.parquet", "--stream")  # all imports, threads and buffers
print(both("large.parquet", "--stream"), both("large.parquet", "--no-stream"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is read")
def test_memory_is_bounded_whatever_the_table(tmp_path):
    rng = np.random.default_rng(0)
    names = [*(f"x_{j}" for j in range(45)), *(f"cost_{j}" for j in range(3))]
    part = pa.table({name: rng.random(2**14) for name in names} | {"kind": rng.choice(["u", "v", "w"], 2**14)})
    for name, times in (("small", 6), ("large", 32)):
        with parquet.ParquetWriter(tmp_path / f"{name}.parquet", part.schema, compression="none") as file:
            for _ in range(times):
                file.write_table(part)
    (tmp_path / "problem.toml").write_text(PROBLEM)
    size = (tmp_path / "large.parquet").stat().st_size
    assert size > 160e6
    command = [sys.executable, "-c", MEASURE, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    in_blocks, in_memory = map(int, done.stdout.strip().splitlines()[-1].split())
    assert in_blocks < size / 4
    assert in_memory > size  # what is measured would show it
    assert parquet.ParquetFile(tmp_path / "d.parquet").metadata.num_rows == 32 * 2**14
