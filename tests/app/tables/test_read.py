"""Wide and long tables as samples."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from decidewise.app.tables.columns import Reading, TableOptions
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.samples import read_samples
from decidewise.kit.errors import InputError
from decidewise.problems import ProblemFile
from decidewise.rows.columns import NamedColumns

WIDE = {
    "day": np.array(["2026-01-03", "2026-01-01", "2026-01-02"], dtype="datetime64[D]"),
    "load": [3.0, 1.0, 2.0],
    "f_b": [30.0, 10.0, 20.0],
    "f_a": [300.0, 100.0, 200.0],
    "cost_a": [3.5, 1.5, 2.5],
    "cost_b": [33.0, 11.0, 22.0],
    "toll_a": [0.0, 9.0, 0.0],
    "toll_b": [0.0, 0.0, 0.0],
    "k": [1, 1, 2],
}
LONG = {
    "day": [2, 2, 1, 1],
    "item": ["b", "a", "a", "b"],
    "load": [22.0, 21.0, 11.0, 12.0],
    "cost": [2.2, 2.1, 1.1, 1.2],
    "k": [1, 1, 2, 2],
}


def problem(tmp_path, text='kind = "top_k"\nn = 2\nk = 1\nsense = "min"\n'):
    (tmp_path / "problem.toml").write_text(text)
    return ProblemFile.read(tmp_path / "problem.toml")


def read(table, file=None, *, like=None, needed=None, costs=True, in_order=True, **options):
    chosen = TableOptions.of({}, **options)
    columns = NamedColumns.of(table)
    return read_samples(columns, Reading(chosen, file, like, needed, costs=costs, in_order=in_order))


def test_a_wide_table_is_sorted_by_time_with_all_its_parts(tmp_path):
    file = problem(tmp_path, 'kind = "top_k"\nn = 2\nk = { column = "k" }\nsense = "min"\n')
    samples = read(WIDE, file, time="day", known=["toll_*"], forecast=["f_*"], groups="k")
    assert samples.cost_names == ("a", "b")
    np.testing.assert_array_equal(samples.costs, [[1.5, 11], [2.5, 22], [3.5, 33]])
    assert samples.forecast == ("f_a", "f_b")  # in the order of the costs, not of the table
    assert list(samples.lines) == ["day", "load", "f_b", "f_a"]  # the problem's column, groups and tolls are none
    np.testing.assert_array_equal(samples.lines["load"], [1, 2, 3])
    assert samples.groups.tolist() == ["1", "2", "1"]
    # Tolls and k are those of the same day: the first pays 9 for a, the second chooses both.
    np.testing.assert_array_equal(samples.problem.solve([[1.0, 2.0]] * 3), [[0, 1], [1, 1], [1, 0]])


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_dates_as_text_and_categories_with_gaps_are_those_of_a_text_file(tmp_path, ending):
    n = 50
    days = [str(np.datetime64("2026-01-01") + day) for day in range(n)]
    hours = [f"{day}T{number % 24:02d}:30:00Z" for number, day in enumerate(days)]
    kinds = [None if row % 7 == 3 else "uvw"[row % 3] for row in range(n)]
    wide = {"day": days[::-1], "seen": [None, *hours[1:]], "kind": kinds, "cost_a": np.arange(n), "cost_b": np.ones(n)}
    csv.write_csv(pa.table(wide), tmp_path / "t.csv")
    table = pa.table(wide | {"kind": pa.array(kinds).dictionary_encode()})
    (parquet.write_table if ending == ".parquet" else feather.write_feather)(table, tmp_path / f"t{ending}")
    found = []
    for name in ("t.csv", f"t{ending}"):
        samples = read(tmp_path / name, time="day")
        prepared = TableFeatures(list(samples.lines)).fit(samples.lines)
        found.append((samples.features(prepared), prepared.notes_, samples.times, samples.noun))
    (X, notes, times, noun), (expected, *_) = found
    assert noun == found[1][3] == "day"
    assert notes == found[1][1]
    assert "'seen': a date, as the day of the week and the time of the day; 1 of 50 values missing" in notes[1]
    assert "7 gaps count as a value" in notes[2]
    np.testing.assert_array_equal(times, np.array(days, dtype="datetime64[us]"))
    np.testing.assert_array_equal(times, found[1][2])
    np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize(
    ("keys", "noun"),
    [
        (["2026-01-01", "2026-01-02", "2026-01-03"], "day"),
        (["2026-01-01 00:00", "2026-01-01 01:00", "2026-01-01 02:00"], "hour"),
        (["2026-01-01", "2026-02-01", "2026-03-01"], "month"),
        (["2026-01-01", "2026-01-01", "2026-01-02"], "row"),
        (["2026-01-01", "2026-01-01 07:00", "2026-01-05"], "row"),
        ([1, 2, 3], "when"),
    ],
)
def test_what_a_row_is_called(keys, noun):
    assert read({"when": keys, "x": [1.0, 2.0, 3.0], "cost_a": [1.0, 2.0, 3.0]}, time="when").noun == noun


def test_features_of_each_item_in_a_wide_table():
    samples = read(WIDE, features=["forecast=f_*", "load=load"], forecast=["f_*"])
    X = samples.features(TableFeatures(list(samples.lines)).fit(samples.lines))
    np.testing.assert_array_equal(X[0], [[300, 3], [30, 3]])
    assert (samples.per_item, samples.forecast) == (True, ("forecast",))


def test_a_long_table_in_any_order(tmp_path):
    file = problem(tmp_path, 'kind = "top_k"\nn = 2\nk = { column = "k" }\nsense = "min"\n')
    samples = read(LONG, file, rows="day", items="item", item_order=["a", "b"], time="day")
    assert samples.keys.tolist() == [1, 2]
    np.testing.assert_array_equal(samples.costs, [[1.1, 1.2], [2.1, 2.2]])
    X = samples.features(TableFeatures(["load"]).fit(samples.lines))
    np.testing.assert_array_equal(X[:, :, 0], [[11, 12], [21, 22]])
    np.testing.assert_array_equal(samples.problem.solve([[1.0, 2.0]] * 2), [[1, 1], [1, 0]])


def test_rows_without_any_costs_are_left_out_and_said():
    table = WIDE | {"cost_a": [np.nan, 1.5, 2.5], "cost_b": [np.nan, 11.0, 22.0]}
    samples = read(table)
    assert len(samples) == 2
    assert samples.notes[0] == "1 of 3 rows have no costs yet, and are left out."


def test_new_rows_keep_their_order_and_need_no_costs():
    new = {name: WIDE[name] for name in ("day", "load")}
    samples = read(new, like=["a", "b"], needed={"load": "numbers"}, costs=None, in_order=False, time="day")
    np.testing.assert_array_equal(samples.lines["load"], [3, 1, 2])
    assert samples.costs is None


def test_taking_rows_takes_their_items_too():
    samples = read(LONG, rows="day", items="item").take([1])
    np.testing.assert_array_equal(samples.lines["load"], [22.0, 21.0])  # items in the order of the first sample
    assert samples.cost_names == ("b", "a")
    assert samples.notes[0].startswith("The costs are in the order in which the table lists 'item' first: 'b', 'a'.")


def test_options_of_a_command_come_before_those_of_the_file():
    options = TableOptions.of({"costs": "a_*", "rows": "day", "unit": "EUR"}, costs=["b_*"], rows=None)
    assert (options.costs, options.rows, options.unit) == (("b_*",), "day", "EUR")
    assert TableOptions.of(options.as_dict()) == options


def test_the_row_of_a_bad_value_in_a_long_table_is_that_of_the_table():
    table = LONG | {"load": ["1", "2", "oops", "4"]}
    with pytest.raises(InputError, match="column 'load' is numbers, but row 3 has 'oops'"):
        read(table, rows="day", items="item")
    with pytest.raises(InputError, match="column 'load' must be numbers; row 3 has 'oops'"):
        read(table, rows="day", items="item", like=["b", "a"], needed={"load": "numbers"}, costs=None, in_order=False)


def test_days_and_hours_of_a_column_of_times():
    times = np.datetime64("2026-01-01T00:00") + np.arange(48) * np.timedelta64(1, "h")
    table = {"time": times[::-1], "x": np.arange(48.0), "cost": np.arange(100.0, 148.0)}
    samples = read(table, rows="time.date", items="time.hour", time="time.date")
    assert (samples.title, samples.costs.shape, list(samples.lines)) == ("day", (2, 24), ["time", "x"])
    assert samples.cost_names == tuple(map(str, range(24)))
    np.testing.assert_array_equal(samples.costs[0], np.arange(147.0, 123.0, -1))


@pytest.mark.parametrize("keys", ["numbers", "dates", "names"])
def test_shuffled_lines_of_a_long_table_change_nothing(keys):
    rng = np.random.default_rng(0)
    days = np.repeat(np.arange(12), 11)
    made = {
        "numbers": days,
        "dates": np.datetime64("2026-01-01") + days,
        "names": np.array([f"d{day}" for day in days]),
    }
    table = {"day": made[keys], "hour": np.tile(np.arange(11).astype(str), 12), "x": rng.normal(size=132)}
    table["cost"] = rng.normal(size=132)
    order = rng.permutation(132)
    found = [read(some, rows="day", items="hour") for some in (table, {k: v[order] for k, v in table.items()})]
    for part in ("costs", "keys", "times"):
        np.testing.assert_array_equal(getattr(found[0], part), getattr(found[1], part))
    np.testing.assert_array_equal(found[0].lines["x"], found[1].lines["x"])
    assert found[0].cost_names == found[1].cost_names == tuple(map(str, range(11)))
    np.testing.assert_array_equal(found[0].costs, table["cost"].reshape(12, 11))


STORE = 'kind = "storage"\nperiods = 2\npower = 1\nenergy = 1\n'


def test_a_store_needs_the_order_of_its_periods(tmp_path):
    file = problem(tmp_path, STORE)
    with pytest.raises(ValueError, match="--item-order first,second"):
        read(LONG, file, rows="day", items="item")
    assert read(LONG, file, rows="day", items="item", item_order=["b", "a"]).cost_names == ("b", "a")
    wide = {"x": [1.0, 2.0], "cost_10": [1.0, 2.0], "cost_9": [3.0, 4.0]}
    with pytest.raises(ValueError, match="has 'cost_10', 'cost_9' in another order"):
        read(wide, file)
    named = TableOptions(costs=("cost_9", "cost_10"))
    assert read_samples(NamedColumns.of(wide), Reading(named, file)).costs[0].tolist() == [3.0, 1.0]


def test_keys_that_are_dates_are_the_time_unless_rows_are_shuffled():
    day = np.array(["2026-01-03", "2026-01-01", "2026-01-02"])
    samples = read(WIDE | {"day": day}, rows="day")
    assert samples.costs[:, 0].tolist() == [1.5, 2.5, 3.5]
    assert "in the order of 'day', which has dates" in samples.notes[0]
    assert samples.doubts == ()
    assert read(WIDE, rows="day", groups="k").times is None
    shuffled = read(WIDE, rows="day", shuffle=True)
    assert (shuffled.times, shuffled.notes) == (None, ())
    assert "Rows are shuffled, although 'day' has dates: --time 'day'" in read(WIDE).doubts[0]


def test_marks_of_gaps_and_changes_of_unit_are_said():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 9, 60)
    table = {"day": np.arange(60), "fine": x, "share": np.arange(60) % 2, "tail": rng.lognormal(0, 2, 60)}
    table |= {"mark": np.where(np.arange(60) % 20 == 3, -9999.0, x), "unit": x * np.where(np.arange(60) < 30, 1, 1000)}
    table["discount"] = np.where(np.arange(60) % 4 > 0, 0.0, x / 80 + 10)
    table |= {"cost_a": x + 1, "cost_b": np.where(np.arange(60) > 57, 999_999.0, x)}
    notes = read(table, rows="day").notes
    assert read(table, rows="day").doubts == notes
    assert [note.partition(":")[0] for note in notes] == ["'mark'", "'unit'", "the costs"]
    assert "-9999 occurs 3 times, far from all other values" in notes[0]
    assert "before day 30 and " in notes[1]
    assert "999999 occurs 2 times" in notes[2]


def test_times_that_exclude_each_other_or_are_none():
    with pytest.raises(InputError, match="--time must be a name; got ''"):
        TableOptions.of({}, time="")
    with pytest.raises(InputError, match="shuffle and time exclude each other"):
        TableOptions.of({}, time="day", shuffle=True)
    assert TableOptions.of({"time": "day"}, shuffle=True).as_dict() == {"shuffle": True}
    assert TableOptions.of({"shuffle": True}, time="day").as_dict() == {"time": "day"}
