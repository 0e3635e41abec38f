import math
import unicodedata

import pyarrow as pa
import pytest

from decidewise_bench.paper.report import CONVENTIONS
from decidewise_bench.report.read_results import read_boards, read_published
from decidewise_bench.report.results import Column, Setting, Summary
from decidewise_bench.report.sections import failures_section
from decidewise_bench.report.tables import regret_table


def boards_of(*rows, published=None):
    return read_boards(pa.Table.from_pylist(list(rows)), read_published(published) if published else None, CONVENTIONS)


def test_trials_are_gathered_into_cells(row):
    (board,) = boards_of(
        row(trial=0, regret=11.0, label_seconds=1.0, train_seconds=2.0),
        row(trial=1, regret=13.0, label_seconds=3.0, train_seconds=4.0),
        row(trial=0, regret=9.0, mode="exact"),
    )
    cell = board.cells[Setting(1, 100), Column("WISE", "adam")]
    assert cell.regret == Summary(12.0, math.sqrt(2))
    assert cell.seconds.mean == 5.0
    assert cell.excess.mean == 2.0
    assert board.n_trials == 2
    assert [column.label for column in board.columns] == ["WISE", "WISE, exact"]


def test_the_floor_is_a_mean_over_trials_whichever_method_knows_it(row):
    (board,) = boards_of(
        row(trial=0, floor=10.0), row(trial=0, floor=10.0, method="MSE"), row(trial=1, floor=4.0, method="MSE")
    )
    assert board.floors == {Setting(1, 100): 7.0}
    (board,) = boards_of(row(floor=None))
    assert board.floors == {}


def test_columns_follow_the_paper_and_then_the_rows(row):
    names = ["mine", "LAVA", "CaVE", "MSE", "another"]
    (board,) = boards_of(*(row(method=name) for name in names), row(method="MSE", mode="exact"))
    assert [column.label for column in board.columns] == ["MSE", "CaVE", "LAVA", "mine", "another", "MSE, exact"]


def test_a_failed_trial_keeps_its_reason_and_does_not_enter_the_mean(row):
    (board,) = boards_of(
        row(trial=0, regret=11.0),
        row(trial=1, regret=None, status="failed", reason="out of memory", n_solves=None, train_seconds=None),
        row(trial=2, regret=float("nan")),
    )
    cell = board.cells[Setting(1, 100), Column("WISE", "adam")]
    assert cell.regret == Summary(11.0, 0.0)
    assert [tuple(failure) for failure in cell.failures] == [(1, "out of memory"), (2, "no regret was recorded")]


def test_a_refusal_is_no_failure(row):
    without = {"regret": None, "status": "refused", "reason": "Cave needs linear constraints."}
    (board,) = boards_of(row(method="MSE"), row(method="CaVE", **without))
    cell = board.cells[Setting(1, 100), Column("CaVE", "adam")]
    assert (cell.absence, cell.failures, [refusal.reason for refusal in cell.refusals]) == (
        "refused",
        [],
        ["Cave needs linear constraints."],
    )
    assert [entry.ours for entry in regret_table(board).rows[0].entries] == ["12.00", "refused", "10.00"]
    (section,) = failures_section([board])
    assert (section.name, "Cave needs linear constraints." in section.body) == ("refusals", True)


def test_only_the_plan_of_that_name_is_compared(row, published):
    boards = boards_of(row(), row(plan="quick"), published=published)
    assert [board.title for board in boards] == ["Shortest path", "2D knapsack", "Portfolio", "2D knapsack (quick)"]
    assert [len(board.published) for board in boards] == [120, 84, 60, 0]
    assert boards[3].name == "quick_knapsack"


def test_plans_of_ones_own_are_compared_with_nothing(row, published):
    (board,) = boards_of(row(plan="mine", problem="vehicle_routing"), published=published)
    assert board.title == "Vehicle routing (mine)"
    assert not board.published


def test_spelling_of_a_published_method(row, published):
    board = boards_of(row(method="CAVE"), published=published)[1]
    assert (Setting(1, 100), "CAVE") in board.published
    assert {column.method for column in board.columns} == {"MSE", "WISE", "SPO+", "PFY", "DBB", "CAVE", "LAVA"}


def test_no_two_boards_share_a_file(row):
    places = [
        ("a", "x y"), ("a", "x_y"), ("a_x", "y"), ("a", "X_Y"), ("x", "x"), ("x_seconds", "x_seconds"),
        ("main", "main"), ("a", "é"), ("a", "e\u0301"), ("long", "n" * 300), ("long", "n" * 299),
    ]  # fmt: skip
    boards = boards_of(*(row(plan=plan, problem=problem) for plan, problem in places))
    files = [name for board in boards for name in (board.name, f"{board.name}_seconds")] + ["main"]
    assert len({unicodedata.normalize("NFC", name).casefold() for name in files}) == len(files)
    assert [board.name for board in boards][:1] == ["a_x_y"]
    assert max(len(name.encode()) for name in files) < 150


def test_bad_input(row, tmp_path):
    with pytest.raises(ValueError, match=r"lacks the columns \['regret'\]"):
        read_boards(pa.Table.from_pylist([row()]).drop_columns("regret"))
    with pytest.raises(ValueError, match="two rows are of the same trial"):
        boards_of(row(version="1"), row(version="2"))
    with pytest.raises(ValueError, match="no published numbers"):
        boards_of(row(), published=tmp_path)
