"""The table of made-up rows, and the sentences that it supports."""

import csv
import io

import pyarrow as pa
import pytest

from decidewise_bench.field import TITLES, published_numbers
from decidewise_bench.field.published_numbers import comparisons
from decidewise_bench.field.report import report_of_boards
from decidewise_bench.field.sentences import sentence_of
from decidewise_bench.field.standings import Standings, to_csv, to_markdown
from decidewise_bench.report.read_results import compare_with, read_boards
from decidewise_bench.report.results import Conventions, Published, Setting, Summary

REGRETS = {
    "knapsack": {"least squares": (6.0, 8.0, 7.0), "SPO+": (5.0, 6.9, 6.1), "NID": (9.0, 12.0, 10.0)},
    "tours": {"least squares": (20.0, 22.0, 21.0), "SPO+": (20.5, 21.0, 21.5), "NID": (30.0, 31.0, 33.0)},
}


@pytest.fixture
def table(row):
    at = {"plan": "field", "degree": None, "samples": 200, "floor": None, "chosen": ""}
    made = [
        row(**at, problem=problem, method=method, trial=trial, regret=regret, n_solves=0 if "least" in method else 900)
        for problem, methods in REGRETS.items()
        for method, regrets in methods.items()
        for trial, regret in enumerate(regrets)
    ]
    without = {"regret": None, "train_seconds": None, "label_seconds": None, "n_solves": None}
    made.append(row(**at | without, problem="knapsack", method="CaVE", status="refused", reason="Cave needs a cone."))
    made += [
        row(**at, problem="tours", method="CaVE", trial=0, regret=19.0),
        row(**at | without, problem="tours", method="CaVE", trial=1, status="failed", reason="RuntimeError: no"),
    ]
    return pa.Table.from_pylist(made)


@pytest.fixture
def boards(table):
    return read_boards(table, None, Conventions(titles=TITLES))


@pytest.fixture
def standings(boards):
    return Standings("field", boards)


def test_the_table(standings):
    lines = to_markdown(standings).splitlines()
    assert lines[0] == "| method | Knapsack | Tours | place | rank | seconds | solver calls |"
    assert "| SPO+ | **6.00 ± 0.55** | 21.00 ± 0.29 | 25 | 1.3 | 0.1 | 900 |" in lines
    assert "| CaVE | refused | **19.00 (n=1)** | 0 |  | 0.1 | 0 |" in lines
    assert lines[2].startswith("| CaVE |")
    assert lines[-1].startswith("| NID | 10.33 ± 0.88 | 31.33 ± 0.88 | 100 | 3.0 |")
    knapsack, tours = standings.boards
    assert standings.entry("SPO+", knapsack).verdict == "lower"  # by 1.0, 1.1 and 0.9
    assert standings.entry("SPO+", tours).verdict == ""
    assert standings.entry("NID", tours).verdict == "higher"
    assert standings.entry("CaVE", knapsack).reason == "Cave needs a cone."
    rows = list(csv.DictReader(io.StringIO(to_csv(standings))))
    assert {(line["method"], line["status"]) for line in rows if line["problem"] == "knapsack"} == {
        ("least squares", "ok"), ("SPO+", "ok"), ("NID", "ok"), ("CaVE", "refused"),
    }  # fmt: skip


def test_ranks_are_of_the_methods_with_a_result_on_every_problem(standings):
    assert set(standings.ranks.mean) == {"least squares", "SPO+", "NID"}
    assert standings.ranks.n_blocks == 6
    assert standings.ranks.mean["SPO+"] == pytest.approx(8 / 6)


def test_sentences_say_what_the_numbers_say(standings):
    assert sentence_of(standings, "SPO+") == (
        "regret lower on 1 of 2 problems than least squares by more than two standard errors; the lowest mean of all "
        "on Knapsack; average rank 1.3, number 1 of 3; 0.1 s and 900 solver calls on average, search included."
    )
    assert sentence_of(standings, "NID").startswith("regret higher on 2 of 2 problems than least squares by")
    assert sentence_of(standings, "CaVE") == (
        "lower mean than least squares on 1 of 1 problems, in too few trials to be sure; the lowest mean of all on "
        "Tours; 0.1 s and no solver calls on average, search included; 1 failed on Tours; not for Knapsack, as it says "
        "itself."
    )
    assert "than least squares" not in sentence_of(standings, "least squares")


def test_published_numbers_are_compared_on_the_scale_of_their_draw(table, boards, monkeypatch):
    monkeypatch.setattr(published_numbers, "UNIT", "NID")
    setting = Setting(None, 200)
    numbers = {"SPO+": 8.0, "NID": 10.0, "LTR": 6.8}
    cells = {(setting, name): Published(Summary(value, 0.0), Summary(0.0, 0.0)) for name, value in numbers.items()}
    board = compare_with(boards[0], cells)
    found = {each.method: each.shown for each in comparisons(board)}
    assert list(found) == ["SPO+", "NID", "LTR", "least squares", "CaVE"]
    assert found["SPO+"] == ["6.00 ± 0.55", "8.00", "−2.00", "0.58 ± 0.03", "0.80"]  # 5/9, 6.9/12 and 6.1/10
    assert found["LTR"] == ["not run", "6.80", "", "", "0.68"]
    assert found["CaVE"] == ["refused", "", "", "", ""]
    report = report_of_boards(table, [board, boards[1]])
    assert [section.name for section in report.sections] == [
        "standings", "ranks", "price", "sentences", "published", "failures", "refusals",
    ]  # fmt: skip
