"""A line appears only where someone looks and has waited, and the items pass through in any case."""

import re
import sys
from threading import Event

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather
from rich.console import Console

from decidewise.kit import progress
from decidewise.rows import file_blocks as files
from decidewise.rows.write_table import write_table


@pytest.fixture
def terminal(monkeypatch):
    """A terminal on standard error."""
    monkeypatch.setattr(progress, "Console", lambda **options: Console(**options, force_terminal=True, width=120))


def test_no_bar_for_a_short_wait_or_without_a_terminal(capsys):
    assert list(progress.tracked([3, 1, 2], "Working")) == [3, 1, 2]
    assert list(progress.tracked([3, 1, 2], "Working", patience=0.0)) == [3, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_a_bar_of_rows_needs_a_terminal(capsys):
    with progress.RowBar("Reading", 100, patience=0.0) as bar:
        bar.advance(50)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("terminal")
def test_a_bar_of_rows_shows_their_speed(capsys):
    with progress.RowBar("Reading", 2_000, patience=0.0, done=1_000) as bar:
        bar.advance(500)
    shown = capsys.readouterr().err
    assert "Reading" in shown
    assert "1,500 rows" in shown
    assert "rows/s" in shown


@pytest.mark.usefixtures("terminal")
def test_a_bar_on_standard_error_after_the_wait(capsys):
    assert list(progress.tracked(range(3), "Working", patience=0.0)) == [0, 1, 2]
    shown = capsys.readouterr()
    assert "Working" in shown.err
    assert shown.out == ""

    list(progress.tracked(range(3), "Working"))
    assert "Working" not in capsys.readouterr().err


def test_a_notebook_without_ipywidgets_shows_nothing_and_does_not_complain(monkeypatch, capsys):
    """And warnings are errors: Rich has one for every refresh there."""
    monkeypatch.setattr(progress, "Console", lambda **options: Console(**options, force_jupyter=True))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(progress, "find_spec", lambda name: None, raising=False)
    assert list(progress.tracked(range(3), "Working", patience=0.0)) == [0, 1, 2]
    with progress.watched(console=progress.Console(stderr=True)) as bars:
        bars.advance(bars.add_task("Training", total=3))
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("terminal")
def test_no_bar_where_it_is_silenced(capsys):
    with progress.silenced():
        assert list(progress.tracked(range(3), "Working", patience=0.0)) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
    with progress.silenced(False):
        list(progress.tracked(range(3), "Working", patience=0.0))
    assert "Working" in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
def test_a_bar_of_bytes_counts_what_is_read_of_a_table(monkeypatch, capsys, tmp_path):
    with progress.ByteBar("Reading", 2_000_000, patience=0.0) as bar:
        bar.advance(500_000)
    shown = capsys.readouterr().err
    assert "500.0 kB of 2.0 MB" in shown
    assert "left" in shown
    assert "rows/s" not in shown
    with progress.ByteBar("Reading", 2_000_000, patience=0.0) as bar:
        bar.begin -= 10.0
        bar.advance(500_000, 100_000)
    assert re.search(r"\d,\d\d\d rows/s", capsys.readouterr().err)

    bars = []
    monkeypatch.setattr(files, "ByteBar", lambda *arguments: bars.append(progress.ByteBar(*arguments)) or bars[-1])
    table = {"x": np.arange(5_000) * 0.1}
    for kind in (".csv", ".csv.gz", ".parquet", ".arrow"):
        path = tmp_path / f"t{kind}"
        write_table([table], path)
        files.read_files(path)
        assert bars[-1].done == bars[-1].total == path.stat().st_size
    feather.write_feather(pa.table(table), tmp_path / "t.arrow", chunksize=700)
    files.read_files(tmp_path / "t.arrow")
    assert bars[-1].done == (tmp_path / "t.arrow").stat().st_size


@pytest.mark.usefixtures("terminal")
def test_a_first_step_that_takes_long_is_not_silent(monkeypatch, capsys):
    shown = Event()
    start = progress.Progress.start
    monkeypatch.setattr(progress.Progress, "start", lambda self: (start(self), shown.set()))
    for step in progress.tracked(range(2), "Working", patience=0.01):
        assert step or shown.wait(60)  # in the first step
    assert "0 of 2" in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
def test_lines_inside_lines_are_below_each_other(capsys):
    with progress.Line("Comparing [models]", patience=0.0):
        for _ in progress.tracked(range(3), "Scoring", patience=0.0):
            shown = [task.description for task in progress._display.progress.tasks]
            assert shown == ["Comparing [models]", "Scoring"]
        assert [task.description for task in progress._display.progress.tasks] == ["Comparing [models]"]
    assert progress._display.progress is None
    assert not progress._display.timers
    assert "Comparing [models]" in capsys.readouterr().err  # a name, never markup


@pytest.mark.usefixtures("terminal")
def test_what_is_printed_to_a_file_gets_there(monkeypatch, tmp_path):
    # A bar on a terminal once took the rows of `decidewise decide model.dw new.csv > decisions.csv`.
    with (tmp_path / "rows.csv").open("w") as rows:
        monkeypatch.setattr(sys, "stdout", rows)
        for row in progress.tracked(range(3), "Deciding", patience=0.0):
            print(row)
    assert (tmp_path / "rows.csv").read_text() == "0\n1\n2\n"


def test_the_time_left(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress, "perf_counter", lambda: now[0])
    line, endless = progress.Line("Working", 40, done=10), progress.Line("Waiting")
    assert (line.amount, line.time) == ("10 of 40", "-:--:-- left")
    line.advance(10)
    now[0] += 65
    assert (line.amount, line.time) == ("20 of 40", "0:02:10 left")
    assert (endless.amount, endless.time) == ("", "0:01:05")
