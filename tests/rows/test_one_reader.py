"""Whatever `decidewise fit` reads, `fit_files` reads too, and the other way round: there is one reader."""

import gzip

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from typer.testing import CliRunner

from decidewise import WiseRegressor, decide_files, evaluate_files, load_model
from decidewise.app.cli.app import app
from decidewise.kit.errors import InputError
from decidewise.problems import TopK
from decidewise.rows.file_blocks import KINDS, FileBlocks, find_files, read_files

N = 300
ROLES = {"features": "x_*", "costs": "c_*"}
PROBLEM = 'kind = "top_k"\nn = 3\nk = 1\nsense = "min"\n[table]\ncosts = "c_*"\nfeatures = "x_*"\n'


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    costs = np.exp(0.3 * X @ rng.normal(size=(2, 3)) + 0.1 * rng.normal(size=(N, 3)))
    return pa.table(
        {f"x_{j}": X[:, j] for j in range(2)} | {f"c_{j}": costs[:, j] for j in range(3)} | {"name": ["a b"] * N}
    )


def write(table, path, separator=","):
    kind = next(ending for ending in sorted(KINDS, key=len, reverse=True) if path.name.endswith(ending))
    if KINDS[kind] == "parquet":
        parquet.write_table(table, path, row_group_size=70)
    elif KINDS[kind] == "arrow":
        feather.write_feather(table, path, chunksize=70)
    else:
        sink = pa.BufferOutputStream()
        delimiter = "\t" if ".tsv" in kind else separator
        csv.write_csv(table, sink, csv.WriteOptions(delimiter=delimiter))
        content = sink.getvalue().to_pybytes()
        path.write_bytes(gzip.compress(content) if kind.endswith(".gz") else content)
    return path


def halves(table, folder, kinds=("a.parquet", "b.csv.gz")):
    for name, part in zip(kinds, (table.slice(0, 100), table.slice(100)), strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part, path)


def by_shell(source, folder, *options):
    (folder / "problem.toml").write_text(PROBLEM)
    out = folder / "model.dw"
    call = ["fit", source, "-p", folder / "problem.toml", "--model", "wise", "--out", out, "-q", *options]
    done = CliRunner().invoke(app, [str(argument) for argument in call])
    assert done.exit_code == 0, done.output
    model = load_model(out)
    assert type(model.estimator).__name__ == "WiseRegressor"
    return model


def check(table, source, folder, text=None, options=()):
    """Check that a source of any kind gives the rows of the table to every reader, and the same fit."""
    expected = WiseRegressor().fit(*(np.column_stack([table[name] for name in names]) for names in names_of(table)))
    found = WiseRegressor().fit_files(source, **ROLES, text=text, block_rows=64)
    np.testing.assert_allclose(found.estimator_.coef_, expected.estimator_.coef_, rtol=1e-9)
    assert read_files(source, **(text or {})).num_rows == N
    assert sum(block.table.num_rows for block in FileBlocks(source, **(text or {}))) == N
    problem = TopK(3, 1, sense="min")
    assert evaluate_files(found, problem, source, text=text).n_rows == N
    assert decide_files(found, problem, source, folder / "decisions.csv", text=text) == N
    for how in ("--stream", "--no-stream"):
        model = by_shell(source, folder, how, *options)
        assert len(model.cost_names) == 3


def names_of(table):
    return [[name for name in table.column_names if name.startswith(start)] for start in ("x_", "c_")]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file(kind, table, tmp_path):
    check(table, write(table, tmp_path / f"t{kind}"), tmp_path)


def test_folders_patterns_and_lists_of_mixed_kinds(table, tmp_path):
    folder = tmp_path / "parts"
    halves(table, folder)
    (folder / ".hidden.csv").write_text("no table")
    (folder / "_SUCCESS").write_text("")
    for source in (folder, folder / "*.*", tmp_path / "**" / "[ab].*"):
        check(table, source, tmp_path)
    both = [folder / "a.parquet", str(folder / "b.csv.gz")]
    found = WiseRegressor().fit_files(both, **ROLES)
    assert (found.estimator_.coef_ == WiseRegressor().fit_files(folder, **ROLES).estimator_.coef_).all()


def test_text_of_another_country(table, tmp_path):
    columns = {name: table[name] for name in table.column_names if name != "name"} | {"name": ["größe"] * N}
    sink = pa.BufferOutputStream()
    csv.write_csv(pa.table(columns), sink, csv.WriteOptions(delimiter=";"))
    text = sink.getvalue().to_pybytes().decode().replace(".", ",")
    (tmp_path / "t.csv").write_text(text, encoding="latin-1")
    how = {"decimal": ",", "encoding": "latin-1"}
    check(table, tmp_path / "t.csv", tmp_path, how, ("--decimal", ",", "--encoding", "latin-1"))


@pytest.mark.parametrize("kinds", [("x_2=0/a.parquet", "x_2=7/b.parquet"), ("x_2=0/a.csv.gz", "x_2=7/b.arrow")])
def test_folders_of_partitions_are_columns(kinds, table, tmp_path):
    folder = tmp_path / "hive"
    halves(table, folder, kinds)
    whole = table.append_column("x_2", pa.array([0] * 100 + [7] * 200))
    for source in (folder, folder / "x_2=*" / "*"):
        assert read_files(source)["x_2"].to_pylist() == whole["x_2"].to_pylist()
        check(whole, source, tmp_path)
    model = WiseRegressor().fit_files(folder, **ROLES)
    assert list(model.feature_names_in_) == ["x_0", "x_1", "x_2"]
    only = folder / kinds[1]
    assert "x_2" not in read_files(only).column_names  # a file that is named itself is what it holds


def test_partitions_of_text_are_keys(table, tmp_path):
    halves(table, tmp_path / "hive", ("shop=a%20b/a.parquet", "shop=__HIVE_DEFAULT_PARTITION__/b.parquet"))
    assert [file.partition for file in find_files(tmp_path / "hive")] == [{"shop": None}, {"shop": "a b"}]
    assert set(read_files(tmp_path / "hive")["shop"].to_pylist()) == {"a b", None}
    with pytest.raises(InputError, match="column 'shop' must hold numbers"):
        WiseRegressor().fit_files(tmp_path / "hive", features=["x_0", "shop"], costs="c_*")
    write(table, tmp_path / "hive" / "z.parquet")
    with pytest.raises(InputError, match=r"z\.parquet lacks 'shop'"):
        read_files(tmp_path / "hive")


def test_what_is_no_table(tmp_path):
    (tmp_path / "t.xlsx").write_text("x")
    for paths, error, expected in (
        (tmp_path / "t.xlsx", InputError, r"t\.xlsx is not a table that can be read"),
        (tmp_path / "s.csv", FileNotFoundError, "there is no file"),
        ([], ValueError, "paths is empty"),
    ):
        with pytest.raises(error, match=expected):
            WiseRegressor().fit_files(paths, **ROLES)
    (tmp_path / "t.csv").write_text("x_1,c_1\n1,2\n")
    with pytest.raises(ValueError, match="is listed twice"):
        WiseRegressor().fit_files([tmp_path / "t.csv"] * 2, **ROLES)
