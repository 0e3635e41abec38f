"""Raw columns as features: what becomes of categories, dates and gaps, and that it is said."""

import datetime
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from decidewise import TableFeatures, WiseRegressorCV, decide, load_model, save_model
from decidewise.app.tables.raw_values import as_numbers
from decidewise.app.tables.table_model import Unfamiliar
from decidewise.kit.errors import InputError
from decidewise.problems import TopK
from decidewise.rows.columns import NamedColumns

DAYS = np.datetime64("2024-01-01") + np.arange(800)  # a Monday


def prepared(columns, **options):
    return TableFeatures(list(columns), **options).fit({name: np.asarray(column) for name, column in columns.items()})


def test_gaps_are_filled_with_the_median_of_training_and_flagged():
    fitted = prepared({"x": [1.0, np.nan, 3.0, 8.0]})
    assert fitted.feature_names_ == ("x", "x is missing")
    np.testing.assert_array_equal(fitted.transform({"x": np.array([np.nan, 5.0])}), [[3.0, 1.0], [5.0, 0.0]])
    assert "1 of 4 values missing (25 %)" in fitted.notes_[0]


class Name(str):
    """A name that counts how often names are compared."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def test_a_thousand_columns_are_not_compared_with_each_other():
    table = {Name(f"x{j}"): np.array([j, 1.0]) for j in range(1000)}
    fitted = TableFeatures(list(map(Name, table))).fit(table)
    assert fitted.transform(pd.DataFrame({str(name): table[name] for name in table})).shape == (2, 999)
    assert fitted.transform(table).shape == (2, 999)
    assert len(NamedColumns.of(pa.table(table)).matching(list(map(Name, table)), argument="x")) == 1000
    assert NamedColumns.of(table).n_rows == 2
    assert Name.compared < 20 * len(table)


def test_a_gap_that_training_did_not_have_is_filled_too():
    fitted = prepared({"x": [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(fitted.transform({"x": np.array([np.nan])}), [[2.0]])


def test_names_are_compared_with_the_most_frequent_one():
    fitted = prepared({"k": ["b", "a", "b", "c", "c", "b"]})
    assert fitted.feature_names_ == ("k = c",)  # "a" was seen once
    np.testing.assert_array_equal(fitted.transform({"k": np.array(["c", "a", "new"])})[:, 0], [1, 0, 0])
    assert "1 rare value" in fitted.notes_[0]
    unfamiliar = Unfamiliar.of(fitted, {"k": np.array(["c", "new"])})
    assert unfamiliar.sentences(fitted) == ["'k': 'new' not seen in training, treated as 'b'."]


def test_numbers_far_out_of_the_range_of_training_are_said():
    fitted = prepared({"x": [0.0, 12.4, np.nan], "y": [1.0, 2.0, 3.0]})
    unfamiliar = Unfamiliar()
    for x in ([13.0, np.nan, 24.7], [12_400.0, 30.0], [-9999.0]):
        unfamiliar.add(Unfamiliar.of(fitted, {"x": np.array(x), "y": np.full(len(x), 2.5)}))
    said = "'x': 3 values far out of the range of training (0 to 12.4): -9999 to 12400. Is the unit the same?"
    assert unfamiliar.sentences(fitted) == [said]


def test_one_hot_equals_that_of_pandas():
    values = np.random.default_rng(0).choice(list("pqrst"), 200)
    fitted = prepared({"k": values})
    expected = pd.get_dummies(pd.Series(values)).astype(float)
    made = fitted.transform({"k": values})
    assert made.shape == (200, 4)
    for name, column in zip(fitted.feature_names_, made.T, strict=True):
        np.testing.assert_array_equal(column, expected[name.removeprefix("k = ")])


def test_many_names_are_cut_off_and_said():
    fitted = prepared({"k": np.repeat([f"n{i:03d}" for i in range(100)], 3)})
    assert len(fitted.feature_names_) == 30
    assert "69 rare values" in fitted.notes_[0]


def test_almost_as_many_names_as_rows_are_left_out_unless_they_are_wanted():
    values = np.array([f"n{row % 60}" for row in range(100)])
    with pytest.raises(InputError, match="left out, since it has 60 names in 100 rows; --categories 'k' keeps"):
        prepared({"k": values})
    assert len(prepared({"k": values}, categories=["k"]).feature_names_) == 30


@pytest.mark.parametrize(
    "text", ["85,239", "€ 12.5", "1 234,5", "1.234.567", "12,5", "$1,200.50", "-3,000", "12 EUR", "7 %", "1\u202f234"]
)
def test_numbers_with_separators_or_a_currency_are_no_names(text):
    for values in ([text] * 3 + [""] + ["5"] * 3, [text, "85,240", "85,241", "n.a."]):
        with pytest.raises(InputError, match=r"column 'x' has numbers as text, such as .* in row 1 .*--categories 'x'"):
            prepared({"x": np.array(values, dtype=object)})
    with pytest.raises(InputError, match=r"Write numbers like 1234.5, without thousands separators"):
        as_numbers(np.array([1.0, text], dtype=object), "x")


@pytest.mark.parametrize("text", ["SKU 123", "1,23,4", "12:30", "3 apples", "A1", "2026-01", "030 123"])
def test_names_with_digits_are_names(text):
    assert prepared({"x": [text, text, "b", "b", "b"]}).feature_names_ == (f"x = {text}",)


def test_gaps_among_names_are_a_name():
    fitted = prepared({"k": np.array(["a", None, "a", None, "a"], dtype=object)})
    assert fitted.feature_names_ == ("k = missing",)
    np.testing.assert_array_equal(fitted.transform({"k": np.array([None, "a"], dtype=object)})[:, 0], [1, 0])


def test_numbers_that_are_names():
    fitted = prepared({"shop": [1, 2, 2, 1, 1]}, categories=["shop"])
    assert fitted.feature_names_ == ("shop = 2",)
    for same in ([2], [2.0], ["2"]):  # a reader widens whole numbers if others are missing
        assert fitted.transform({"shop": np.array(same)})[0, 0] == 1


def test_dates_become_their_place_in_the_calendar():
    fitted = prepared({"day": DAYS})
    made = dict(zip(fitted.feature_names_, fitted.transform({"day": DAYS}).T, strict=True))
    weekdays = pd.DatetimeIndex(DAYS).day_name()
    for day in ("Tuesday", "Sunday"):
        np.testing.assert_array_equal(made[f"day is a {day}"], weekdays == day)
    angle = 2 * np.pi * (pd.DatetimeIndex(DAYS).day_of_year - 1) / 365.25
    np.testing.assert_allclose(made["sine of the year of day"], np.sin(angle))
    assert not any("day of day" in name for name in made)  # all are at midnight
    assert "a date, as the day of the week and the time of the year" in fitted.notes_[0]


def test_the_time_of_the_day_if_it_varies():
    times = np.datetime64("2026-01-01T00:00") + np.arange(48) * np.timedelta64(1, "h")
    fitted = prepared({"t": times})
    assert fitted.feature_names_ == ("sine of the day of t", "cosine of the day of t")
    np.testing.assert_allclose(fitted.transform({"t": times[6:7]}), [[1.0, 0.0]], atol=1e-12)


def test_dates_of_other_libraries_and_zones_are_the_same():
    zone = datetime.timezone(datetime.timedelta(hours=2))
    aware = np.array([datetime.datetime(2026, 1, 1, hour, tzinfo=zone) for hour in range(24)], dtype=object)
    naive = np.datetime64("2025-12-31T22:00") + np.arange(24) * np.timedelta64(1, "h")
    fitted = prepared({"t": naive})
    np.testing.assert_allclose(fitted.transform({"t": aware}), fitted.transform({"t": naive}))


@pytest.mark.parametrize("value", [np.nan, None, "2024-05-06", datetime.date(2024, 5, 6)])
def test_dates_of_new_rows_as_text_and_objects(value):
    fitted = prepared({"day": DAYS})
    made = fitted.transform({"day": np.array([value, "2024-01-02"], dtype=object)})
    monday = value not in (None,) and value == value  # noqa: PLR0124 - NaN is not equal to itself
    assert made[0, fitted.feature_names_.index("day is a Tuesday")] == 0
    assert made[1, fitted.feature_names_.index("day is a Tuesday")] == 1
    assert bool(made[0].any()) == monday


@pytest.mark.parametrize("value", [3, 3.5, "soon"])
def test_numbers_and_words_are_no_dates(value):
    with pytest.raises(InputError, match="column 'day' must be dates like 2026-01-31"):
        prepared({"day": DAYS}).transform({"day": np.array([value])})


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ([3.0] * 9, "it is 3 in every row"),
        ([np.nan] * 9, "it has no value at all"),
        (["same"] * 9, "it is 'same' in every row"),
        ([f"id {i}" for i in range(9)], "it has another text in every row"),
        (DAYS[:9], "its 8 days are too few"),
    ],
)
def test_what_cannot_help_is_left_out_and_said(column, reason):
    fitted = prepared({"x": np.arange(9.0), "useless": column})
    assert fitted.feature_names_ == ("x",)
    assert reason in fitted.notes_[0]
    assert list(fitted.needed) == ["x"]
    np.testing.assert_array_equal(fitted.transform({"x": np.ones(2)}), np.ones((2, 1)))


def test_a_forecast_is_kept_even_if_constant():
    assert prepared({"f": [3.0, 3.0], "x": [1.0, 2.0]}, kept=["f"]).feature_names_ == ("f", "x")


def test_text_of_digits_is_numbers():
    np.testing.assert_array_equal(prepared({"x": ["1.5", "2", "-3e2"]}).transform({"x": ["7"]}), [[7.0]])


def test_text_among_numbers_is_named_with_its_row():
    with pytest.raises(InputError, match=r"column 'x' is numbers, but row 3 has 'n/k' \(1 such rows\)"):
        prepared({"x": ["1", "2", "n/k", "4"]})


def test_values_of_different_kinds():
    with pytest.raises(InputError, match=r"numbers \(row 1\) and dates \(row 2\)"):
        prepared({"x": np.array([1, datetime.date(2026, 1, 1)], dtype=object)})


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    table = {"x": [1.0, None, 3.0], "k": ["a", "b", "a"], "when": [datetime.datetime(2026, 1, 1, h) for h in range(3)]}
    made = frame(table)
    fitted = TableFeatures(["x", "k", "when"], max_levels=5).fit(made)
    assert fitted.feature_names_[:2] == ("x", "x is missing")
    assert np.isfinite(fitted.transform(made)).all()


def test_what_is_fitted_is_json():
    fitted = prepared({"x": [1.0, np.nan, 2.0], "k": list("aab"), "day": DAYS[::399]})
    again = TableFeatures(["x", "k", "day"])
    again.columns_ = json.loads(json.dumps(fitted.columns_))
    again._check_kept()
    table = {"x": np.array([np.nan]), "k": np.array(["a"]), "day": DAYS[:1]}
    np.testing.assert_array_equal(again.transform(table), fitted.transform(table))


@pytest.mark.parametrize(
    "change",
    [
        {"fill": "1"},
        {"kind": "names"},
        {"kind": "code"},
        {"more": 1},
        {"gaps": 1},
        {"name": 3},
        {"low": 3.0},
        {"high": np.inf},
        {"low": np.nan},
        {"high": 2},
    ],
)
def test_what_a_file_may_have_made_of_it_is_refused(change):
    fitted = prepared({"x": [1.0, np.nan, 2.0]})
    fitted.columns_[0] |= change
    with pytest.raises((ValueError, KeyError)):
        fitted._check_kept()


@parametrize_with_checks([TableFeatures()])
def test_scikit_learn(estimator, check):
    check(estimator)


class TestInNotebooks:
    """On frames as people have them, in a pipeline and by itself."""

    @pytest.fixture
    def frame(self):
        rng = np.random.default_rng(0)
        wind = rng.normal(size=120)
        wind[::9] = np.nan
        kind = pd.Categorical(rng.choice(["calm", "gusty", "storm"], 120))
        frame = pd.DataFrame({"day": DAYS[:120], "wind": wind, "kind": kind, "open": rng.random(120) < 0.5})
        return frame.set_axis([f"row {i}" for i in range(120)])

    @pytest.fixture
    def costs(self, frame):
        level = frame["wind"].fillna(0.0).to_numpy() + 2.0 * (frame["kind"] == "storm")
        return pd.DataFrame({"a": 3.0 + level, "b": 5.0 - level, "c": np.full(120, 4.0)}, index=frame.index)

    def test_every_kind_of_table_gives_the_same(self, frame):
        expected = TableFeatures().fit_transform(frame)
        plain = frame.assign(kind=frame["kind"].astype(str))
        for table in (pl.DataFrame(plain), pa.table(plain), {name: plain[name].to_numpy() for name in plain}):
            np.testing.assert_array_equal(TableFeatures().fit_transform(table), expected)

    def test_a_raw_frame_is_decided_in_a_pipeline(self, frame, costs, tmp_path):
        problem = TopK(3, 1, sense="min")
        model = make_pipeline(TableFeatures(), WiseRegressorCV(problem, cv=2, random_state=0)).fit(frame, costs)
        decisions = decide(model, problem, frame)
        assert list(decisions) == ["a", "b", "c"]
        assert decisions.index.equals(frame.index)
        np.testing.assert_array_equal(decide(model, problem, frame[frame.columns[::-1]].assign(new="x")), decisions)
        save_model(model, tmp_path / "m.dw")
        for again in (pickle.loads(pickle.dumps(model)), load_model(tmp_path / "m.dw")):  # noqa: S301
            np.testing.assert_array_equal(decide(again, problem, frame), decisions)

    def test_forecasts_are_found_by_name(self, frame, costs):
        table = pd.concat([frame, costs.add_prefix("forecast_")], axis=1)
        search = WiseRegressorCV(
            TopK(3, 1, sense="min"), forecast=[f"forecast_{name}" for name in costs], cv=2, random_state=0
        )
        kept = [f"forecast_{name}" for name in costs]  # one is the same in every row
        model = make_pipeline(TableFeatures(kept=kept).set_output(transform="pandas"), search).fit(table, costs)
        assert model[-1].best_name_ == "forecast"

    def test_names_clones_and_positions(self, frame):
        fitted = TableFeatures(["kind", "wind"]).fit(frame)
        assert fitted.get_feature_names_out().tolist() == list(fitted.feature_names_)
        assert fitted.feature_names_in_.tolist() == ["kind", "wind"]
        assert clone(fitted).get_params() == {
            "columns": ["kind", "wind"],
            "categories": (),
            "kept": (),
            "max_levels": 30,
        }
        made = fitted.set_output(transform="pandas").transform(frame)
        assert made.index.equals(frame.index)
        assert made.columns.tolist() == list(fitted.feature_names_)
        array = TableFeatures().fit(np.array([[1.0, 2.0], [3.0, 5.0]]))
        assert array.get_feature_names_out().tolist() == ["x0", "x1"]
