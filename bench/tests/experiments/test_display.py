from dataclasses import replace
from io import StringIO
from time import monotonic, sleep

import msgspec
import pytest
from rich.console import Console

from decidewise_bench.experiments.cells import compute
from decidewise_bench.experiments.display import Tally, _Log, describe, display


@pytest.fixture
def cells(tiny):
    return tiny.cells()


@pytest.fixture
def rows(cells):
    (row,) = compute([cells[2]])
    return [
        replace(row, degree=c.degree, method=c.method.name, mode=c.method.mode, trial=c.trial, regret=10.0 * i)
        for i, c in enumerate(cells)
    ]


def show(renderable, *, width=100):
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system="standard")
    console.print(renderable)
    return console.file.getvalue()


def plain(table):
    console = Console(file=StringIO(), width=100)
    console.print(table)
    return [line.split("│")[1:-1] for line in console.file.getvalue().splitlines() if line.startswith("│")]


def test_entries_are_means_over_the_trials_that_are_done(cells, rows):
    tally = Tally(cells, [])
    tally.update(rows[:6])  # the first trial: regrets 0, 10, ... 50
    (table,) = tally.tables()
    assert str(table.title) == "tiny: paths"
    assert [str(column.header) for column in table.columns] == ["degree", "samples", "MSE", "SPO+", "WISE exact"]
    assert [[float(entry) for entry in line] for line in plain(table)] == [[1, 40, 0, 10, 20], [4, 40, 30, 40, 50]]
    tally.update(rows)  # and now the mean with 60, 70, ... 110
    assert [float(line[2]) for line in plain(tally.tables()[0])] == [30, 60]


def test_data_without_degrees_have_no_column_for_them(cells, rows):
    without = [replace(c, degree=None) for c in cells if c.degree == 1]
    (table,) = Tally(without, [replace(r, degree=None) for r in rows if r.degree == 1]).tables()
    assert [str(column.header) for column in table.columns] == ["samples", "MSE", "SPO+", "WISE exact"]
    assert [[float(entry) for entry in line] for line in plain(table)] == [[40, 30, 40, 50]]
    assert "(tiny, paths, 40 samples, trial 0)" in describe(replace(rows[0], degree=None))


def test_many_methods_stand_below_each_other(tiny):
    many = ", ".join(f'{{ name = "M{i}", loss = "mse" }}' for i in range(12))
    tiny.plan.write_text(tiny.plan.read_text().partition("methods = [")[0] + f"methods = [{many}]")
    (table,) = Tally(tiny.cells(), []).tables()
    assert [str(column.header) for column in table.columns] == ["degree", "1", "4"]
    assert [line[0].strip() for line in plain(table)] == ["samples", *(f"M{i}" for i in range(12))]


def test_the_best_is_bold_and_the_unfinished_dim(cells, rows):
    tally = Tally(cells, [])
    tally.update(rows[:6])
    assert "\x1b[1;2;32m0.00" in show(tally.tables()[0])
    tally.update(rows)
    assert "\x1b[1;32m30.00" in show(tally.tables()[0])
    assert "\x1b[2m" not in show(tally.tables()[0])


def test_failures_leave_the_mean_alone(cells, rows):
    tally = Tally(cells, [])
    tally.update([rows[0], replace(rows[6], status="failed", regret=None, reason="X: no")])
    assert plain(tally.tables()[0])[0][2].strip() == "0.00"
    assert "1 failed" in tally.line()


def test_the_line_counts_cells_rate_and_time_left(cells, rows, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("decidewise_bench.experiments.display.monotonic", lambda: clock[0])
    tally = Tally(cells, rows[:2])
    clock[0] += 10
    tally.update(rows[:7])
    assert tally.line() == "7 of 12 cells, 0.5 per second, 0:00:10 left"
    clock[0] += 10
    tally.update(rows)
    assert tally.line() == "12 of 12 cells, 0.5 per second, 0:00:20 in all"


def test_a_log_has_a_line_now_and_then_and_every_failure_once(cells, rows, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("decidewise_bench.experiments.display.monotonic", lambda: clock[0])
    failed = replace(rows[3], status="failed", regret=None, reason="ValueError: [no] luck")
    console = Console(file=StringIO(), width=40)
    log = _Log(cells, rows[:1], console)
    for _ in range(2):
        log.update([rows[1], failed])
    clock[0] += 11
    log.update(rows[:5])
    clock[0] += 1
    log.update(rows)
    log.update(rows)
    lines = console.file.getvalue().splitlines()
    assert lines[:2] == ["1 of 12 cells are done already", describe(failed)]
    assert [line.split(" cells")[0] for line in lines[2:]] == ["5 of 12", "12 of 12"]


def test_a_display_sees_rows_as_they_are_stored(tiny, cells, rows, monkeypatch):
    monkeypatch.setattr("decidewise_bench.experiments.display._POLL_SECONDS", 0.01)
    monkeypatch.setattr("decidewise_bench.experiments.display._LOG_SECONDS", 0.0)
    store, console = tiny.store(), Console(file=StringIO(), width=100)
    with display(cells, store, console):
        store.add(cells[0], rows[0])
        deadline = monotonic() + 30
        while "1 of 12 cells, " not in console.file.getvalue():
            assert monotonic() < deadline
            sleep(0.01)
        store.add(cells[1], rows[1])
    assert "2 of 12 cells, " in console.file.getvalue()


@pytest.mark.parametrize("height", [10, 60])
def test_a_terminal_shows_the_tables_and_keeps_them(tiny, cells, rows, height):
    console = Console(file=StringIO(), width=100, height=height, force_terminal=True, _environ={})
    store = tiny.store()
    with display(cells, store, console):
        for cell, row in zip(cells, rows, strict=True):
            store.add(cell, row)
    shown = console.file.getvalue()
    assert "12 of 12 cells" in shown.rpartition("WISE exact")[0]
    assert "30.00" in shown.rpartition("WISE exact")[2]


def test_names_are_shown_as_they_are(cells, rows):
    names = ("x [/nope]", "[ours]", ":smile:")
    odd = [
        replace(c, problem="[red]p[/]", method=msgspec.structs.replace(c.method, name=names[i % 3]))
        for i, c in enumerate(cells)
    ]
    tally = Tally(odd, [replace(r, problem="[red]p[/]", method=names[i % 3]) for i, r in enumerate(rows)])
    (table,) = tally.tables()
    shown = show(table)
    assert all(text in shown for text in (*names, "tiny: [red]p[/]", "30.00"))
