import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from decidewise import GeneralizedLinear, WiseRegressor, WiseRegressorCV, decide, normalized_regret
from decidewise.data import Dataset, read_features, read_table
from decidewise.problems import PresentItems, Storage, TopK
from decidewise.rows import columns as columns_module

DAYS, HOURS = ["2024-01-02", "2024-01-01", "2024-01-03"], ["8", "9", "10"]


@pytest.fixture
def long():
    """Lines in order, as a frame."""
    rng = np.random.default_rng(0)
    pairs = pd.MultiIndex.from_product([DAYS, [int(hour) for hour in HOURS]], names=["day", "hour"]).to_frame(
        index=False
    )
    return pairs.assign(x_load=rng.normal(size=9), x_wind=rng.normal(size=9), price=rng.normal(size=9))


@pytest.fixture
def problem():
    return TopK(3, 1)


def read(source, problem, **changes):
    options = {"rows": "day", "items": "hour", "features": "x_*", "costs": "price", "problem": problem}
    return read_table(source, **(options | changes))


def test_a_long_table_is_read_by_keys_in_whatever_order_its_lines_come(long, problem):
    data = read(long, problem)
    assert repr(data).startswith("Dataset(3 rows, 3 items with 2 features each")
    assert (list(data.row_names), data.cost_names, data.feature_names) == (DAYS, tuple(HOURS), ("x_load", "x_wind"))
    np.testing.assert_array_equal(data.costs, long["price"].to_numpy().reshape(3, 3))
    np.testing.assert_array_equal(data.X, long[["x_load", "x_wind"]].to_numpy().reshape(3, 3, 2))
    shuffled = long.sample(frac=1, random_state=0)
    for options, order in (({}, [0, 1, 2]), ({"item_order": [9, 8, 10]}, [1, 0, 2])):
        again = read(shuffled, problem, **options)
        place = [list(again.row_names).index(day) for day in DAYS]
        np.testing.assert_array_equal(again.costs[place], data.costs[:, order])
        np.testing.assert_array_equal(again.X[place], data.X[:, order])


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([10, 9, 8], ["8", "9", "10"]),
        ([1.5, -2.0, 0.5], ["-2.0", "0.5", "1.5"]),
        (["10", "9", "8.5"], ["8.5", "9", "10"]),
        (["h10", "h9", "h8"], ["h8", "h9", "h10"]),
        (["13:00", "01:00", "09:30"], ["01:00", "09:30", "13:00"]),
        (["1/2/2026 1:00 PM", "1/2/2026 12:30 AM", "1/10/2026 1:00 AM"], [1, 0, 2]),
        (["2026-01-01T00:00+01:00", "2025-12-31T22:00Z", "2026-01-01 00:00"], [1, 0, 2]),
        (["south", "east", "north"], ["south", "east", "north"]),
        (["a1", "b2", "a3"], ["a1", "b2", "a3"]),
    ],
)
def test_keys_of_items_are_in_their_own_order(long, problem, keys, expected):
    table = long.assign(hour=np.tile(np.array(keys), 3)).sort_values("day", ascending=False)
    names = [keys[entry] if isinstance(entry, int) else entry for entry in expected]
    assert list(read(table, problem).cost_names) == names


def test_periods_of_a_store_are_in_the_order_of_time(long):
    battery = Storage(3, power=1.0, energy=1.0)
    named = long.assign(hour=np.tile(["night", "day", "evening"], 3))
    with pytest.raises(
        ValueError, match="'hour' has names, 'night', 'day', 'evening', which have no order of their own"
    ):
        read(named, battery)
    order = ["day", "evening", "night"]
    assert list(read(named, battery, item_order=order).cost_names) == order
    wide = {"x": [1.0], "c_2": [1.0], "c_10": [2.0], "c_1": [3.0]}
    with pytest.raises(ValueError, match="the table has 'c_2', 'c_10', 'c_1' in another order"):
        read_table(wide, problem=battery, features="x", costs="c_*")
    columns = ["c_1", "c_2", "c_10"]
    assert read_table(wide, problem=battery, features="x", costs=columns).costs.tolist() == [[3.0, 1.0, 2.0]]


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "feather", "polars", "arrow table", "dictionary"])
def test_every_source_gives_the_same_data(long, problem, tmp_path, kind):
    table = pa.Table.from_pandas(long)
    path = tmp_path / f"history.{kind}"
    writers = {"csv": csv.write_csv, "parquet": parquet.write_table, "arrow": feather.write_feather}
    if kind in ("csv", "parquet", "arrow", "feather"):
        writers.get(kind, feather.write_feather)(table, path)
    others = {"polars": pl.from_pandas, "arrow table": pa.Table.from_pandas, "dictionary": lambda f: f.to_dict("list")}
    data = read(others[kind](long) if kind in others else path, problem)
    expected = read(long, problem)
    np.testing.assert_allclose(data.X, expected.X)
    np.testing.assert_allclose(data.costs, expected.costs)
    assert data.cost_names == expected.cost_names
    assert [str(day)[:10] for day in data.row_names] == DAYS


def test_a_wide_table_has_a_column_for_each_cost(long, problem):
    wide = long.pivot(index="day", columns="hour", values="price").add_prefix("price_").reset_index()
    wide["temperature"] = [1.0, 2.0, 3.0]
    data = read_table(wide, problem=problem, costs="price_*", features=["temp*"], rows="day")
    assert data.X.shape == (3, 1)
    assert data.cost_names == ("price_8", "price_9", "price_10")
    assert (data.feature_names, list(data.row_names)) == (("temperature",), sorted(DAYS))


def test_a_wide_table_may_have_columns_for_the_features_of_each_item(long, problem):
    parts = {"price": "price", "load": "x_load", "wind": "x_wind"}
    wide = pd.concat(
        [
            long.pivot(index="day", columns="hour", values=column).add_prefix(f"{name}_")
            for name, column in parts.items()
        ],
        axis=1,
    ).reset_index()
    wide["temperature"] = [1.0, 2.0, 3.0]
    wide = wide[wide.columns[::-1]]  # so that the columns of a feature come in another order than those of the costs
    mapping = {"load": "load_*", "wind": "wind_*", "warm": "temperature"}
    costs = ["price_9", "price_8", "price_10"]
    data = read_table(wide, problem=problem, costs="price_*", features=mapping, rows="day")
    assert (data.X.shape, data.cost_names, data.feature_names) == (
        (3, 3, 3),
        ("10", "9", "8"),
        ("load", "wind", "warm"),
    )
    expected = read(long.sort_values("day"), problem, item_order=[10, 9, 8])
    np.testing.assert_array_equal(data.X[:, :, :2], expected.X)
    np.testing.assert_array_equal(data.costs, expected.costs)
    np.testing.assert_array_equal(data.X[:, :, 2], [[1, 1, 1], [2, 2, 2], [3, 3, 3]])
    by_place = {"load": ["load_9", "load_8", "load_10"]}
    data = read_table(wide, problem=problem, costs=costs, features=by_place, rows="day")
    np.testing.assert_array_equal(data.X[:, :, 0], expected.X[:, [1, 2, 0], 0])


def test_new_rows_are_read_in_the_order_of_the_training_items(long, problem):
    train = read(long, problem)
    new = long.drop(columns="price").iloc[::-1]
    X = read_features(new, train, rows="day", items="hour")
    np.testing.assert_array_equal(X[::-1], train.X)
    model = WiseRegressor(GeneralizedLinear(per_item="intercept")).fit(train.X, train.costs)
    assert model.predict(X).shape == (3, 3)
    with pytest.raises(ValueError, match=r"hour '11' is not among the 3 known items, '8', '9', '10'"):
        read_features(new.assign(hour=new["hour"] + (new["hour"] == 10)), train, rows="day", items="hour")
    with pytest.raises(ValueError, match="day 2024-01-03, hour 10 is missing in the table"):
        read_features(new.iloc[1:], train, rows="day", items="hour")
    plain = read_table({"x": [1.0, 2.0], "c": [3.0, 4.0]}, problem=TopK(1, 1), costs="c", features="x")
    np.testing.assert_array_equal(read_features({"x": [5.0]}, plain), [[5.0]])


def test_names_stay_with_their_rows(long, problem):
    train, test = read(long, problem).split(1)
    assert (list(train.row_names), list(test.row_names)) == (DAYS[:1], DAYS[1:])
    assert train.cost_names == test.cost_names
    with pytest.raises(ValueError, match="cost_names must have 3 names; got 2"):
        Dataset(train.X, train.costs, problem, cost_names=("a", "b"))
    with pytest.raises(ValueError, match="X has features of 2 items and there are 3 costs"):
        Dataset(train.X[:, :2], train.costs, problem)


def spoilt(long, column, value):
    long = long.copy()
    long.loc[4, column] = value
    return long


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(index=4), "day 2024-01-01, hour 9 is missing in the table .1 such pairs"),
        (lambda t: t.iloc[[0, 1, 2, 3, 4, 5, 5, 7, 8]], "day 2024-01-01, hour 10 is more than once"),
        (lambda t: t.drop(index=0), "day 2024-01-02, hour 8 is missing"),
        (lambda t: spoilt(t, "price", np.nan), "day 2024-01-01, hour 9, column 'price' has no value, or NaN"),
        (lambda t: spoilt(t, "x_wind", np.inf), "day 2024-01-01, hour 9, column 'x_wind' has .inf"),
        (lambda t: spoilt(t, "day", None), "column 'day' has no key in row 4"),
        (lambda t: t.rename(columns={"price": "prize"}), "no column 'price'; the nearest of 5 names .*'prize'"),
        (lambda t: t[t["hour"] > 8], "the column 'hour' has 2 items, and TopK has 3 costs"),
        (lambda t: t.iloc[:0], "the table is empty"),
        (lambda t: t.assign(x_text="a"), "column 'x_text' must be an array of real numbers"),
        (lambda t: t.to_numpy(), "a table is a path of a file"),
    ],
)
def test_bad_long_tables_are_refused_with_the_pair(long, problem, change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read(change(long), problem)


def test_bad_wide_tables_are_refused(problem, tmp_path):
    table = {"day": [1, 2], "c_a": [1.0, 2.0], "c_b": [1.0, 2.0], "c_c": [1.0, 2.0], "f_a": [0, 0], "f_b": [0, 0]}
    options = {"problem": problem, "costs": "c_*"}
    cases = [
        (
            {"features": {"f": "f_*"}},
            r"features\['f'\] selects 2 columns, and there are 3 costs; there is none for 'c'",
        ),
        ({"features": {"f": ["f_a", "f_b"]}}, r"features\['f'\] selects 2 columns, and there are 3 costs"),
        ({"features": "*"}, "'c_a', 'c_b', 'c_c' are both features and costs"),
        ({"features": "f_a", "costs": "c_[ab]"}, "selects 2 columns, 'c_a', 'c_b', and TopK has 3 costs"),
        ({"features": "f_a", "item_order": ["a"]}, "item_order is for long tables"),
        ({"features": "f_a", "items": "day"}, "needs the column of the sample keys"),
        ({"features": {"f": "f_a"}, "items": "f_a", "rows": "day", "costs": "c_a"}, "not a mapping"),
        ({"features": "f_a", "items": "f_a", "rows": "day"}, "costs must be one column; 'c_.' selects 3"),
    ]
    for changes, message in cases:
        with pytest.raises(ValueError, match=message):
            read_table(table, **(options | changes))
    with pytest.raises(ValueError, match="day 1 is in 2 lines of the table"):
        read_table(table | {"day": [1, 1]}, **options, features="f_a", rows="day")
    with pytest.raises(ValueError, match="row 2, column 'c_b' has no value"):
        read_table(table | {"c_b": [1.0, np.nan]}, **options, features="f_a", rows="day")
    with pytest.raises(ValueError, match="row 1, item b, column 'f' has no value"):
        read_table(table | {"f_c": [1.0, 1.0], "f_b": [1.0, np.nan]}, **options, features={"f": "f_*"})
    with pytest.raises(ValueError, match="equally long"):
        read_table(table | {"day": [1]}, **options, features="f_a")
    with pytest.raises(ValueError, match=r"its name must end in \.csv"):
        read_table(tmp_path / "history.xlsx", **options, features="f_a")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_table(tmp_path / "history.csv", **options, features="f_a")
    (tmp_path / "bad.csv").write_text("a,b\n1,2,3\n")
    with pytest.raises(ValueError, match=r"bad.csv could not be read"):
        read_table(tmp_path / "bad.csv", **options, features="f_a")


def test_a_file_says_which_extra_is_missing(problem, tmp_path, monkeypatch):
    monkeypatch.setattr("decidewise.kit.lazy.find_spec", lambda module: None)
    (tmp_path / "history.csv").write_text("a\n1\n")
    with pytest.raises(ImportError, match=r'reading history.csv needs pyarrow: pip install "decidewise\[cli\]"'):
        columns_module.NamedColumns.of(tmp_path / "history.csv")


def test_dictionaries_need_none_of_the_libraries_of_frames():
    code = (
        "import sys; from decidewise.data import read_table; from decidewise.problems import TopK;"
        "read_table({'x': [1.0], 'c': [2.0]}, problem=TopK(1, 1), costs='c', features='x');"
        "print(sorted({'pandas', 'polars', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def of_some_items(n_days=40, n_items=6, seed=0):
    """Lines of days on each of which some of the items are there, in an order of their own."""
    rng = np.random.default_rng(seed)
    table = pd.MultiIndex.from_product([range(n_days), range(n_items)], names=["day", "item"]).to_frame(index=False)
    table = table.assign(x_a=rng.normal(5, 2, len(table)), x_b=rng.normal(size=len(table)))
    table["price"] = 9 + 2 * table["x_a"] - table["x_b"] + rng.normal(size=len(table)) * table["x_a"]
    there = (rng.random(len(table)) < 0.6) | (table["item"] < 2)
    return table[there].sample(frac=1, random_state=seed)


def test_a_table_may_lack_items():
    table = of_some_items()
    with pytest.raises(ValueError, match="If rows may lack items, say so: absent_items"):
        read(table, TopK(6, 2), items="item")
    data = read(table, TopK(6, 2), items="item", absent_items=True)
    assert data.feature_names == ("x_a", "x_b", "present")
    assert isinstance(data.problem, PresentItems)
    lines = {(line.day, int(line.item)): (line.x_a, line.x_b, 1.0, line.price) for line in table.itertuples()}
    for day, X, costs, present in zip(data.row_names, data.X, data.costs, data.problem.present, strict=True):
        for item in range(6):
            assert (*X[item], costs[item]) == lines.get((day, item), (0.0, 0.0, 0.0, 0.0))
            assert present[item] == ((day, item) in lines)
    train, test = data.split(30)
    # Absent items do not touch a linear model: it is that of the lines that are there, with the weights of their days.
    sizes = np.sqrt((table["price"] ** 2).groupby(table["day"]).transform("sum"))
    line_of = GeneralizedLinear().fit(table[["x_a", "x_b"]], table["price"] / sizes, sample_weight=sizes)
    model = WiseRegressor(scale="unit").fit(data.X, data.costs)
    there = data.problem.present
    of_lines = line_of.predict(pd.DataFrame(data.X[there][:, :2], columns=["x_a", "x_b"]))
    np.testing.assert_allclose(model.predict(data.X)[there], of_lines, atol=1e-9)
    np.testing.assert_allclose(model.predict(data.X)[~there], 0, atol=1e-9)
    chosen = WiseRegressorCV(train.problem, random_state=0).fit(train.X, train.costs)
    decisions = decide(chosen, test.problem, test.X)
    assert (decisions.sum(axis=1) == 2).all()
    assert not decisions[~test.problem.present].any()
    assert normalized_regret(test.problem, chosen.predict(test.X), test.costs) < 15
    today = table[table["day"] == 39].drop(columns="price")
    X = read_features(today, data, rows="day", items="item")
    np.testing.assert_array_equal(X, data.X[list(data.row_names).index(39)][np.newaxis])
    assert decide(chosen, PresentItems(TopK(6, 2), X[:, :, -1]), X).sum() == 2


def test_absent_items_are_for_long_tables(long):
    with pytest.raises(ValueError, match="absent_items is for long tables, whose lines may lack; pass items"):
        read_table(long, problem=TopK(1, 1), features="x_*", costs="price", absent_items=True)
    with pytest.raises(ValueError, match=r"cannot choose k=2 of the 1 items that are present in row 2"):
        read(long.drop(index=[7, 8]), TopK(3, 2), absent_items=True)
    with pytest.raises(ValueError, match="absent_items must be True or False; got 'no' of type str"):
        read(long, TopK(3, 2), absent_items="no")
    with pytest.raises(ValueError, match="absent_items makes a feature 'present', and features has one of this name"):
        read(long.assign(present=1.0), TopK(3, 2), features=["present"], absent_items=True)
    with pytest.raises(ValueError, match="more than once"):
        read(pd.concat([long.drop(index=7), long[:1]]), TopK(3, 1), absent_items=True)
