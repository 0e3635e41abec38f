import os
from csv import DictReader
from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from decidewise_bench.experiments import Row, as_table, export
from decidewise_bench.experiments.rows import SCHEMA, machine

GOOD = Row("p", "paths", 1, 40, "MSE", "adam", 0, 12.5, 10.0, 0.1, 0.2, 0.3, 40, 42, "1+a", "NumPy 2", "here", "ok", "")
BAD = Row(
    "p", "paths", None, 40, "X, Y", "adam", 0, None, 10.0, None, None, None, None, 42, "1+a", "NumPy 2", "here",
    "failed", 'no "x"',
)  # fmt: skip


def test_table_has_the_columns_of_the_contract():
    table = as_table([GOOD, BAD])
    assert table.schema == SCHEMA
    assert dict(zip(SCHEMA.names, map(str, SCHEMA.types), strict=True)) == {
        **dict.fromkeys(
            ("plan", "problem", "method", "mode", "version", "libraries", "machine", "status", "reason", "chosen"),
            "string",
        ),
        **dict.fromkeys(("degree", "samples", "trial", "n_solves", "seed"), "int64"),
        **dict.fromkeys(("regret", "floor", "label_seconds", "train_seconds", "evaluate_seconds"), "double"),
    }
    assert as_table([]).schema == SCHEMA


def test_parquet_and_csv_give_the_same_table_back(tmp_path):
    table = as_table([GOOD, BAD])
    export(table, tmp_path / "new" / "rows.parquet")
    export(table, tmp_path / "new" / "rows.csv")
    assert parquet.read_table(tmp_path / "new" / "rows.parquet").equals(table)
    options = csv.ConvertOptions(column_types=dict(zip(SCHEMA.names, SCHEMA.types, strict=True)))
    assert csv.read_csv(tmp_path / "new" / "rows.csv", convert_options=options).equals(table)


def test_text_in_csv_is_no_formula(tmp_path):
    names = ["=1+1", "+1", "-1", "@SUM(A1)", "SPO+", "a=b"]
    export(as_table([replace(GOOD, method=name, regret=-1.0) for name in names]), tmp_path / "rows.csv")
    lines = list(DictReader((tmp_path / "rows.csv").read_text().splitlines()))
    assert [line["method"] for line in lines] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "SPO+", "a=b"]
    assert {line["regret"] for line in lines} == {"-1"}


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .parquet or .csv; got 'rows.xlsx'"):
        export(pa.table({}), tmp_path / "rows.xlsx")


def test_machine_says_how_many_cores():
    assert f"{os.cpu_count()} cores" in machine()
