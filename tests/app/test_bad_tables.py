"""A corpus of bad tables, problems and options: one line on stderr, code 2, no traceback, nothing half-written."""
# ruff: noqa: E501 - one case per line

import errno
import gzip
import io
import os
import re
import shlex
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from typer.testing import CliRunner

from decidewise import GeneralizedLinear, save_model
from decidewise.app.cli.app import app

N = 40
HEADING = "day,x,kind,forecast_a,forecast_b,forecast_c,cost_a,cost_b,cost_c"
PROBLEM = 'kind = "top_k"\nn = 3\nk = 1\nsense = "min"\n'
LONG = PROBLEM + '[table]\nrows = "day"\nitems = "item"\ncosts = "cost"\n'


def good_lines():
    rng = np.random.default_rng(0)
    days = np.datetime64("2026-01-01") + np.arange(N)
    x, kind, costs = rng.normal(size=N), rng.choice(["u", "v"], N), rng.uniform(1, 2, (N, 3))
    forecast = costs + rng.normal(0, 0.1, (N, 3))
    return [
        ",".join([str(days[i]), f"{x[i]:.3f}", kind[i], *(f"{v:.3f}" for v in (*forecast[i], *costs[i]))])
        for i in range(N)
    ]


def with_entry(column, row, value):
    """Return the good table with another value in a column of the row, counted from 1."""
    lines = [line.split(",") for line in good_lines()]
    lines[row - 1][HEADING.split(",").index(column)] = value
    return table(",".join(line) for line in lines)


def with_column(column, value):
    lines = [line.split(",") for line in good_lines()]
    for line in lines:
        line[HEADING.split(",").index(column)] = value
    return table(",".join(line) for line in lines)


def table(lines, heading=HEADING):
    return "\n".join([heading, *lines]) + "\n"


def long_lines():
    return [
        f"2026-01-{day:02d},{item},{day * item % 5},{1 + day % 3 + item % 2}"
        for day in range(1, 15)
        for item in (1, 2, 3)
    ]


def long_table(lines):
    return table(lines, "day,item,x,cost")


GOOD = table(good_lines())
TEXTS = {
    "good.csv": GOOD,
    "good.toml": PROBLEM,
    "long.csv": long_table(long_lines()),
    "long.toml": LONG,
    "empty.csv": "",
    "header.csv": HEADING + "\n",
    "blank.csv": "\n\n\n",
    "prices.csv": GOOD.replace("cost_", "price "),
    "twice.csv": GOOD.replace("kind", "x", 1),
    "twice_cost.csv": GOOD.replace("cost_b", "cost_a", 1),
    "ragged.csv": GOOD + "1,2\n",
    "table.xlsx": GOOD,
    "text_cost.csv": with_entry("cost_b", 17, "n.a"),
    "thousands.csv": with_entry("cost_a", 5, '"1,234.5"'),
    "currency.csv": with_entry("cost_a", 3, "12 EUR"),
    "mixed.csv": with_entry("x", 9, "high"),
    "gap_cost.csv": with_entry("cost_c", 11, ""),
    "no_costs.csv": table(",".join([*line.split(",")[:6], "", "", ""]) for line in good_lines()),
    "infinite_cost.csv": with_entry("cost_c", 4, "inf"),
    "infinite_x.csv": with_entry("x", 4, "-inf"),
    "date_cost.csv": with_column("cost_a", "2026-01-01"),
    "forecast_text.csv": with_entry("forecast_b", 2, "unknown"),
    "forecast_gap.csv": with_entry("forecast_b", 2, ""),
    "forecast_infinite.csv": with_entry("forecast_b", 2, "inf"),
    "constant.csv": table((f"{i + 1},{i + 2},3" for i in range(N)), "cost_a,cost_b,cost_c"),
    "constant_x.csv": table((f"7,{i + 1},{i + 2},3" for i in range(N)), "x,cost_a,cost_b,cost_c"),
    "all_empty_x.csv": table((f",{i + 1},{i + 2},3" for i in range(N)), "x,cost_a,cost_b,cost_c"),
    "ids.csv": table((f"id-{i}x,{i + 1},{i + 2},3" for i in range(N)), "x,cost_a,cost_b,cost_c"),
    "one.csv": table(good_lines()[:1]),
    "two.csv": table(good_lines()[:2]),
    "seven.csv": table(good_lines()[:7]),
    "same_day.csv": with_column("day", "2026-01-01"),
    "gap_day.csv": with_entry("day", 6, ""),
    "bad_day.csv": with_entry("day", 6, "31/01/2026"),
    "two_kinds.csv": GOOD,
    "pair_missing.csv": long_table(long_lines()[:-1]),
    "pair_twice.csv": long_table([*long_lines(), long_lines()[0]]),
    "item_gap.csv": long_table([*long_lines()[:-1], "2026-01-14,,1,2"]),
    "long_text.csv": long_table(["2026-01-01,1,2,dear", *long_lines()[1:]]),
    "long_gap.csv": long_table([*long_lines()[:-1], "2026-01-14,3,1,"]),
    "five.toml": PROBLEM.replace("n = 3", "n = 5"),
    "not.toml": "kind = ",
    "none.toml": "",
    "kind.toml": 'kind = "topk"',
    "key.toml": PROBLEM + "[table]\ncost = 'cost_*'\n",
    "section.toml": "table = 3\n" + PROBLEM,
    "type.toml": PROBLEM + "[table]\nrows = 5\n",
    "types.toml": PROBLEM + "[table]\ncosts = [1.5]\n",
    "empty_name.toml": PROBLEM + "[table]\nfeatures = ['']\n",
    "infeasible.toml": 'kind = "linear_program"\nA_ub = [[1, 1, 1]]\nb_ub = [-1]\n',
    "unbounded.toml": 'kind = "linear_program"\nA_ub = [[-1, 0, 0]]\nb_ub = [1]\nsense = "max"\n',
    "column.toml": PROBLEM + "known = { columns = 'toll_*' }\n",
    "known.toml": PROBLEM + "known = [1, 2, 3]\n",
    "module.toml": 'kind = "python"\nobject = "missing_module_x:build"\n',
    "order.toml": LONG + "item_order = [1, 2, 9]\n",
    "by_item.toml": LONG + "time = 'x'\n",
}
#: The arguments and the complaint; an empty complaint is a usage message of the command line.
CASES = {
    "no such file": ("compare nothing_here.csv -p good.toml", "there is no file nothing_here.csv."),
    "a near name": ("compare god.csv -p good.toml", "there is no file god.csv. Do you mean 'good.csv'?"),
    "no such folder": ("compare nowhere/good.csv -p good.toml", "there is no file nowhere/good.csv."),
    "another suffix": ("compare table.xlsx -p good.toml", "table.xlsx is not a table that can be read"),
    "no suffix": ("compare good -p good.toml", "its name must end in .csv"),
    "an empty file": ("compare empty.csv -p good.toml", "empty.csv is empty"),
    "only a heading": ("compare header.csv -p good.toml", "the table is empty: it has 0 rows"),
    "blank lines": ("compare blank.csv -p good.toml", "blank.csv could not be read"),
    "an empty folder": ("compare hollow -p good.toml", "the folder hollow has no table"),
    "an empty folder named as a table": ("compare hollow.csv -p good.toml", "hollow.csv has no table"),
    "no match": ("compare 'part-*.csv' -p good.toml", "no file that matches 'part-*.csv'"),
    "half a Parquet file": ("compare half.parquet -p good.toml", "half.parquet could not be read"),
    "no Parquet file": ("compare junk.parquet -p good.toml", "junk.parquet could not be read"),
    "an empty Parquet file": ("compare empty.parquet -p good.toml", "empty.parquet is empty"),
    "half an Arrow file": ("compare half.arrow -p good.toml", "half.arrow could not be read"),
    "no Arrow file": ("compare junk.feather -p good.toml", "junk.feather could not be read"),
    "Parquet called CSV": ("compare parquet.csv -p good.toml", "parquet.csv is not a text file"),
    "zeros": ("compare zeros.csv -p good.toml", "zeros.csv is not a text file"),
    "no gzip": ("compare junk.csv.gz -p good.toml", "junk.csv.gz could not be read"),
    "half a gzip": ("compare half.csv.gz -p good.toml", "half.csv.gz could not be read"),
    "UTF-16": ("compare utf16.csv -p good.toml", "utf16.csv is in UTF-16: pass --encoding utf-16."),
    "Latin in the heading": ("compare latin_heading.csv -p good.toml", "not in UTF-8: its first line"),
    "Latin in a column": ("compare latin.csv -p good.toml", "not in UTF-8: column 'kind'"),
    "no encoding": ("compare good.csv -p good.toml --encoding utf-9", "there is no encoding 'utf-9'"),
    "two separators": ("compare good.csv -p good.toml --separator ';;'", "separator must be a single ASCII"),
    "a comma for both": ("compare good.csv -p good.toml --decimal ,", "decimal point and the separator are both"),
    "a column twice": ("compare twice.csv -p good.toml", "must have different names; 'x' occur twice"),
    "a cost twice": ("compare twice_cost.csv -p good.toml", "'cost_a' occur twice"),
    "a short line": ("compare ragged.csv -p good.toml", "ragged.csv could not be read"),
    "files that differ": ("compare differing -p good.toml", "b.csv lacks 'x', unlike a.csv"),
    "kinds that differ": ("compare kinds -p good.toml", "column 'x' has values of different kinds"),
    "no costs there": ("compare good.csv -p good.toml --costs 'price_*'", "--costs: the table has no column 'price_*'; the"),
    "costs with another name": ("compare prices.csv -p good.toml", "Name the cost columns: --costs 'forecast_*' or --costs 'price *'?"),
    "a long table": ("compare long.csv -p good.toml", "If the table has one line per item, name the keys of both: --rows and --items."),
    "a long table with its cost": ("compare long.csv -p good.toml --costs cost", "one line per item, name the keys of both"),
    "an empty time": ("compare good.csv -p good.toml --time ''", "Error: --time must be a name; got ''"),
    "a time for shuffled rows": ("compare good.csv -p good.toml --time day --shuffle", "shuffle and time exclude each other"),
    "an order without an item": (
        "compare long.csv -p long.toml --item-order 1,2",
        "item_order (--item-order) must name all items; it lacks '3'.",
    ),
    "a cost misspelt": ("compare good.csv -p good.toml --costs cst_a", "no column 'cst_a'; the nearest of 9 names are 'cost_a'"),
    "a feature misspelt": ("compare good.csv -p good.toml --features knd", "--features: the table has no column 'knd'; the nearest"),
    "costs as features": ("compare good.csv -p good.toml --features 'cost_*'", "which are not known in advance"),
    "no rows": ("compare good.csv -p good.toml --rows date", "--rows: the table has no column 'date'"),
    "rows twice": ("compare good.csv -p good.toml --rows kind", "is in "),
    "items without rows": ("compare good.csv -p good.toml --items kind", "needs the column of the sample keys as well: --rows"),
    "no items": ("compare long.csv -p good.toml --rows day --items hour --costs cost", "--items: the table has no column 'hour'"),
    "no time": ("compare good.csv -p good.toml --time when", "--time: the table has no column 'when'"),
    "text for time": ("compare good.csv -p good.toml --time kind", "--time: column 'kind' has text, such as"),
    "a time missing": ("compare gap_day.csv -p good.toml --time day", "has no key in row"),
    "a date in another form": ("compare bad_day.csv -p good.toml --time day", "has text, such as '31/01/2026'"),
    "two times": ("compare good.csv -p good.toml --time 'forecast_*'", "--time must be one column"),
    "no groups": ("compare good.csv -p good.toml --groups shop", "--groups: the table has no column 'shop'"),
    "too few groups": ("compare good.csv -p good.toml --groups kind", "there are 2 groups"),
    "no known costs": ("compare good.csv -p good.toml --known 'toll_*'", "--known: the table has no column 'toll_*'"),
    "too few known costs": ("compare good.csv -p good.toml --known forecast_a", "--known: 'forecast_a' selects 1 columns, and there are 3"),
    "a gap in known costs": ("compare forecast_gap.csv -p good.toml --known 'forecast_*'", "row 2"),
    "infinite known costs": ("compare forecast_infinite.csv -p good.toml --known 'forecast_*'", "row 2"),
    "known costs twice": ("compare good.csv -p known.toml --known 'forecast_*'", "has known costs already"),
    "no forecast": ("compare good.csv -p good.toml --forecast 'fc_*'", "--forecast: the table has no column 'fc_*'"),
    "too few forecasts": ("compare good.csv -p good.toml --forecast forecast_a", "there is none for 'a'"),
    "a forecast of text": ("compare forecast_text.csv -p good.toml --forecast 'forecast_*'", "row 2 has 'unknown'"),
    "no category": ("compare good.csv -p good.toml --categories knd", "--categories: there is no feature 'knd'; the nearest"),
    "mixed features": ("compare good.csv -p good.toml --features 'f=forecast_*' --features x", "either all are name=pattern"),
    "no feature of items": ("compare good.csv -p good.toml --features 'f=load_*'", "no column 'load_*'"),
    "few features of items": ("compare good.csv -p good.toml --features 'f=forecast_[ab]'", "selects 2 columns, and there are 3 costs"),
    "text among costs": ("compare text_cost.csv -p good.toml", "column 'cost_b' must be numbers; row 17 has 'n.a'"),
    "thousands": ("compare thousands.csv -p good.toml", "column 'cost_a' must be numbers; row 5 has '1,234.5'"),
    "a currency": ("compare currency.csv -p good.toml", "row 3 has '12 EUR'"),
    "a word among numbers": ("compare mixed.csv -p good.toml", "column 'x' is numbers, but row 9 has 'high'"),
    "a cost missing": ("compare gap_cost.csv -p good.toml", "row 11 has no value for 'c'"),
    "a cost missing on a day": ("compare gap_cost.csv -p good.toml --rows day", "day 2026-01-11 has no value for 'c'"),
    "no cost at all": ("compare no_costs.csv -p good.toml", "no row of the table has costs"),
    "an infinite cost": ("compare infinite_cost.csv -p good.toml", "'cost_c' has an infinite value in row 4"),
    "an infinite feature": ("compare infinite_x.csv -p good.toml", "'x' has an infinite value in row 4"),
    "dates as costs": ("compare date_cost.csv -p good.toml", "column 'cost_a' must be numbers; it has dates"),
    "lists": ("compare lists.parquet -p good.toml", "column 'x' has a list in row 1"),
    "structs as costs": ("compare structs.parquet -p good.toml", "column 'cost_a' must be numbers"),
    "durations": ("compare durations.parquet -p good.toml", "column 'x' has durations"),
    "bytes": ("compare bytes.parquet -p good.toml", "column 'x' has bytes in row 1"),
    "NaN in Parquet": ("compare nan.parquet -p good.toml", "row 2 has no value for 'a'"),
    "no features": ("compare constant.csv -p good.toml", "no feature is left to predict from"),
    "a constant feature": ("compare constant_x.csv -p good.toml", "'x': left out, since it is 7 in every row"),
    "an empty feature": ("compare all_empty_x.csv -p good.toml", "'x': left out, since it has no value at all"),
    "another text in each row": ("compare ids.csv -p good.toml", "'x': left out, since it has another text in every row"),
    "one row": ("compare one.csv -p good.toml", "the table has 1 row with costs"),
    "two rows": ("compare two.csv -p good.toml", "the table has 2 rows with costs"),
    "seven rows": ("compare seven.csv -p good.toml", "a comparison needs at least 8"),
    "one row to fit": ("fit one.csv -p good.toml --out new.dw", ""),
    "another size": ("compare good.csv -p five.toml", "the table has 3 costs, 'a', 'b', 'c', and the problem of five.toml has 5"),
    "nothing to test": ("compare good.csv -p good.toml --test 0", "--test must be a share"),
    "all to test": ("compare good.csv -p good.toml --test 1", "--test must be a share"),
    "no number to test": ("compare good.csv -p good.toml --test nan", "--test must be a share"),
    "few solves": ("compare good.csv -p good.toml --max-solves 20", "--max-solves must be at least 32"),
    "no solves": ("compare good.csv -p good.toml --max-solves 0", ""),
    "a seed below zero": ("compare good.csv -p good.toml --seed -1", ""),
    "no jobs": ("compare good.csv -p good.toml --jobs 0", "n_jobs == 0"),
    "a gap without time": ("compare good.csv -p good.toml --gap 1", "--gap goes with --time"),
    "no gap": ("compare good.csv -p good.toml --time day --gap soon", "--gap must be a number of days, or like 36h"),
    "a gap below zero": ("compare good.csv -p good.toml --time day --gap=-1", "--gap must be a number of days"),
    "a long gap": ("compare good.csv -p good.toml --time day --gap 40", "Use a shorter gap"),
    "one moment": ("compare same_day.csv -p good.toml --time day", "nothing comes later"),
    "no problem": ("compare good.csv", ""),
    "no problem file": ("compare good.csv -p nothing.toml", "cannot read the problem nothing.toml: No such file"),
    "no TOML": ("compare good.csv -p not.toml", "not.toml is not valid TOML"),
    "an empty problem": ("compare good.csv -p none.toml", "none.toml: kind is missing"),
    "no kind": ("compare good.csv -p kind.toml", "there is no kind 'topk'; the nearest"),
    "a table as problem": ("compare good.csv -p good.csv", "good.csv is not valid TOML"),
    "a key of the table": ("compare good.csv -p key.toml", "key.toml: [table] has no key 'cost'; the nearest"),
    "no section": ("compare good.csv -p section.toml", "table must be a section, [table]"),
    "a number for a name": ("compare good.csv -p type.toml", "[table]: rows must be a name; got 5"),
    "a number for names": ("compare good.csv -p types.toml", "[table]: costs must be names; got 1.5"),
    "an empty name": ("compare good.csv -p empty_name.toml", "[table]: features must be names; got ''"),
    "an empty region": ("compare good.csv -p infeasible.toml", "infeasible.toml: the region is empty"),
    "no optimum": ("compare good.csv -p unbounded.toml", "The cost falls without end"),
    "a column of the problem": ("compare good.csv -p column.toml", "the table has no column 'toll_*'"),
    "no module": ("compare good.csv -p module.toml", "cannot import 'missing_module_x'"),
    "a pair missing": ("compare pair_missing.csv -p long.toml", "day 2026-01-14, item 3 is missing"),
    "a pair twice": ("compare pair_twice.csv -p long.toml", "day 2026-01-01, item 1 is more than once"),
    "an item missing": ("compare item_gap.csv -p long.toml", "column 'item' has no key in row"),
    "text in a long table": ("compare long_text.csv -p long.toml", "column 'cost' must be numbers; row 1 has 'dear'"),
    "a cost missing in a long table": ("compare long_gap.csv -p long.toml", "day 2026-01-14 has no value for '3'"),
    "an unknown item": ("compare long.csv -p order.toml", "must name all items; it lacks '3'"),
    "times within a sample": ("compare long.csv -p by_item.toml", "column 'x' must have one value per day; day 2026-01-01"),
    "features of items in a long table": ("compare long.csv -p long.toml --features 'f=x'", "name=pattern is for wide tables"),
    "the cost as a feature": ("compare long.csv -p long.toml --features cost", "'cost' is the cost"),
    "a folder for the page": ("compare good.csv -p good.toml --out hollow", "hollow: Is a directory"),
    "a file for a folder": ("compare good.csv -p good.toml --out good.csv/compare.html", "good.csv is a file, not a folder"),
    "a folder that cannot be written": ("compare good.csv -p good.toml --out /proc/compare.html", "/proc/compare.html: "),
    "a device for the page": ("compare good.csv -p good.toml --out /dev/full", "/dev/full is not a file"),
    "a device for the model": ("fit good.csv -p good.toml --out /dev/full", "/dev/full is not a file"),
    "no file for the model": ("fit good.csv -p good.toml", ""),
    "no such candidate": ("fit good.csv -p good.toml --out new.dw --model 'least square'", "no candidate 'least square'; the nearest"),
    "no such option": ("fit good.csv -p good.toml --out new.dw --epochs 3", ""),
    "a column to fit": ("fit good.csv -p good.toml --out new.dw --features no", "--features: the table has no column 'no'"),
    "no model": ("predict nothing.dw good.csv", "cannot read the model nothing.dw: No such file"),
    "a table as model": ("predict good.csv good.csv", "good.csv is not a model file"),
    "half a model": ("predict half.dw good.csv", "half.dw"),
    "an altered model": ("predict altered.dw good.csv", "altered.dw"),
    "a model of Python": ("predict python.dw good.csv", "python.dw holds a GeneralizedLinear that was saved from Python"),
    "a table that lacks a column": ("predict model.dw constant_x.csv", "no column 'kind', which the model needs; the nearest of"),
    "an empty table to predict": ("predict model.dw header.csv", "the table is empty"),
    "text to predict from": ("predict model.dw mixed.csv", "column 'x' must be numbers; row 9 has 'high'"),
    "no table to predict": ("predict model.dw nothing.csv", "there is no file nothing.csv"),
    "another format": ("predict model.dw good.csv --out predictions.xlsx", "must end in .csv"),
    "a folder for predictions": ("predict model.dw good.csv --out hollow.csv", "hollow.csv: Is a directory"),
    "predictions into a device": ("predict model.dw good.csv --out /dev/full", "must end in .csv"),
    "nothing to decide": ("decide model.dw good.csv", ""),
    "a problem of another size": ("decide model.dw good.csv -p five.toml", "the table has 3 costs"),
    "a problem of other columns": ("decide model.dw good.csv -p column.toml", "the table has no column 'toll_*'"),
    "text in costs to decide": ("decide model.dw text_cost.csv -p good.toml", "row 17 has 'n.a'"),
    "nothing to evaluate": ("evaluate model.dw new_rows.csv -p good.toml", "--costs: the table has no column 'cost_a'"),
    "a gap to evaluate": ("evaluate model.dw gap_cost.csv -p good.toml", "row 11 has no value for 'c'"),
    "nothing to inspect": ("inspect nothing.dw", "cannot read the model nothing.dw"),
    "a table to inspect": ("inspect good.csv", "good.csv is not a model file"),
    "half a model to inspect": ("inspect half.dw", "half.dw"),
    "seven rows to diagnose": ("diagnose two.csv -p good.toml", ""),
    "text to diagnose": ("diagnose text_cost.csv -p good.toml", "row 17 has 'n.a'"),
    "an example that is there": ("init example", "exists already. Name another folder"),
    "an example in a file": ("init good.csv", "good.csv"),
    "an example where nothing can be": ("init /proc/example", "/proc/example"),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("hollow", "hollow.csv", "differing", "kinds"):
        (folder / name).mkdir()
    (folder / "differing" / "a.csv").write_text(GOOD)
    (folder / "differing" / "b.csv").write_text(GOOD.replace(",x,", ",y,", 1))
    (folder / "kinds" / "a.csv").write_text(GOOD)
    (folder / "kinds" / "b.csv").write_text(with_column("x", "2026-01-01"))
    lines = [line.split(",") for line in good_lines()]
    (folder / "new_rows.csv").write_text(table((",".join(line[:6]) for line in lines), HEADING.split(",cost", 1)[0]))
    (folder / "utf16.csv").write_text(GOOD, encoding="utf-16")
    (folder / "latin.csv").write_bytes(with_entry("kind", 2, "Größe").encode("latin-1"))
    (folder / "latin_heading.csv").write_bytes(GOOD.replace("kind", "größe").encode("latin-1"))
    (folder / "zeros.csv").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    columns = {"x": list(range(N)), **{f"cost_{name}": np.arange(1.0, N + 1) for name in "abc"}}
    parquet.write_table(pa.table(columns), folder / "whole.parquet")
    whole = (folder / "whole.parquet").read_bytes()
    (folder / "half.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "parquet.csv").write_bytes(whole)
    for name in ("junk.parquet", "junk.feather", "junk.csv.gz"):
        (folder / name).write_bytes(b"junk" * 100)
    (folder / "empty.parquet").write_bytes(b"")
    feather.write_feather(pa.table(columns), folder / "whole.arrow", compression="uncompressed")
    (folder / "half.arrow").write_bytes((folder / "whole.arrow").read_bytes()[:700])
    packed = gzip.compress(GOOD.encode())
    (folder / "half.csv.gz").write_bytes(packed[: len(packed) // 2])
    odd = {
        "lists": {"x": [[1, 2]] * N},
        "durations": {"x": [timedelta(hours=1)] * N},
        "bytes": {"x": [b"ab"] * N},
        "structs": {"cost_a": [{"value": 1}] * N},
        "nan": {"cost_a": [1.0, float("nan"), *range(2, N)]},
    }
    for name, changes in odd.items():
        parquet.write_table(pa.table({**columns, **changes}), folder / f"{name}.parquet")
    command = ["fit", str(folder / "good.csv"), "-p", str(folder / "good.toml"), "--model", "least squares"]
    result = CliRunner().invoke(
        app, [*command, "--features", "x", "--features", "kind", "--out", str(folder / "model.dw")]
    )
    assert result.exit_code == 0, result.output
    content = (folder / "model.dw").read_bytes()
    (folder / "half.dw").write_bytes(content[: len(content) // 2])
    (folder / "altered.dw").write_bytes(content[:-40] + bytes([content[-40] ^ 1]) + content[-39:])
    save_model(GeneralizedLinear().fit(np.eye(3), np.eye(3)), folder / "python.dw")
    assert CliRunner().invoke(app, ["init", str(folder / "example")]).exit_code == 0
    return folder


def listing(folder):
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.parametrize("case", CASES)
def test_one_line_code_2_and_nothing_written(folder, monkeypatch, as_everywhere, case):
    arguments, complaint = CASES[case]
    if re.search("/proc/|/dev/", arguments) and sys.platform != "linux":
        pytest.skip("/proc and /dev are of Linux")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = listing(folder)
    result = CliRunner().invoke(app, shlex.split(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code == 2, result.output
    if complaint or result.stderr.startswith("Error: "):
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        said, complaint = as_everywhere(result.stderr, complaint)
        assert complaint in said
        assert len(result.stderr) < 700
    else:
        assert "Usage: " in result.output
    assert result.stdout == "" or "Usage: " in result.output
    assert listing(folder) == before


OVER_INPUTS = {
    "a table": "fit good.csv -p good.toml --out good.csv",
    "a problem": "fit good.csv -p good.toml --out ./good.toml",
    "a page": "compare good.csv -p good.toml --out hollow/../good.csv",
    "a symbolic link": "predict model.dw good.csv --out soft.csv",
    "a hard link": "decide model.dw good.csv -p good.toml --out hard.csv",
    "a file of a folder": "decide model.dw kinds -p good.toml --out kinds/a.csv",
    "a file of a pattern": "predict model.dw 'kinds/*.csv' --out kinds/a.csv",
    "the model": "predict model.csv good.csv --out model.csv",
    "a file of the problem": "fit good.csv -p files.toml --out weights.csv",
    "a module of the problem": "fit good.csv -p files.toml --out mine.py",
    "the checkpoint": "fit good.csv -p good.toml --stream --checkpoint good.csv --out new.dw",
    "the model, by the checkpoint": "fit good.csv -p good.toml --stream --checkpoint ./new.dw --out new.dw",
}


@pytest.mark.parametrize("case", OVER_INPUTS)
def test_no_command_overwrites_what_it_reads(folder, monkeypatch, case):
    monkeypatch.chdir(folder)
    if not Path("hard.csv").exists():
        Path("hard.csv").hardlink_to("good.csv")
        Path("soft.csv").symlink_to("hard.csv")
        Path("model.csv").write_bytes(Path("model.dw").read_bytes())
        Path("weights.csv").write_text("1,1,1\n")
        Path("mine.py").write_text("")
        Path("files.toml").write_text('kind = "python"\nobject = "mine:build"\narguments = { by = ["weights.csv"] }\n')
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = CliRunner().invoke(app, shlex.split(OVER_INPUTS[case]))
    assert result.exit_code == 2, result.output
    assert re.fullmatch(r"Error: \S+ is an input of this command; choose another output file\.\n", result.stderr)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_there_are_enough_cases():
    assert len(CASES) >= 100


def test_debug_shows_the_traceback(folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, ["compare", "text_cost.csv", "-p", "good.toml", "--debug"])
    assert isinstance(result.exception, ValueError)
    assert "row 17" in str(result.exception)


@pytest.mark.parametrize("command", ["init {out}", "fit good.csv -p good.toml --model wise --out {out}/m.dw",
                                     "predict model.dw good.csv --out {out}/p.csv",
                                     "decide model.dw good.csv -p good.toml --stream --out {out}/d.parquet"])  # fmt: skip
def test_a_full_disk_leaves_nothing(folder, tmp_path, monkeypatch, command):
    """What fails is the writing of bytes, after the file beside has been made."""
    monkeypatch.chdir(folder)
    out = tmp_path / "out"
    opened = Path.open

    def full_file(path, mode="r", *more, **options):
        return _Full() if mode == "wb" else opened(path, mode, *more, **options)

    monkeypatch.setattr(Path, "open", full_file)
    result = CliRunner().invoke(app, shlex.split(command.format(out=out)))
    monkeypatch.undo()
    assert result.exit_code == 2, result.output
    assert "No space left on device" in result.stderr
    assert result.stderr.count("\n") == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


class _Full(io.BytesIO):
    def write(self, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_ctrl_c_leaves_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("decidewise.app.tables.choice.WiseRegressorCV.fit", _interrupted)
    out = tmp_path / "compare.html"
    result = CliRunner().invoke(app, ["compare", "good.csv", "-p", "good.toml", "--out", str(out)])
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


def _interrupted(*arguments, **options):
    raise KeyboardInterrupt


def test_an_old_page_survives_a_bad_table(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    out = tmp_path / "compare.html"
    out.write_text("old")
    assert CliRunner().invoke(app, ["compare", "gap_cost.csv", "-p", "good.toml", "--out", str(out)]).exit_code == 2
    assert out.read_text() == "old"
