"""A bar appears only where someone looks and has waited, and the items pass through in any case."""

import re

import numpy as np
from rich.console import Console

from decidewise import progress
from decidewise.data import files
from decidewise.data.write_table import write_table


def test_no_bar_for_a_short_wait_or_without_a_terminal(capsys):
    assert list(progress.tracked([3, 1, 2], "Working")) == [3, 1, 2]
    assert list(progress.tracked([3, 1, 2], "Working", patience=0.0)) == [3, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_a_bar_of_rows_shows_their_speed(monkeypatch, capsys):
    with progress.RowBar("Reading", 100, patience=0.0) as bar:
        bar.advance(50)
    assert capsys.readouterr() == ("", "")  # without a terminal
    monkeypatch.setattr(progress, "Console", lambda **options: Console(**options, force_terminal=True, width=120))
    with progress.RowBar("Reading", 2_000, patience=0.0, done=1_000) as bar:
        bar.advance(500)
    shown = capsys.readouterr().err
    assert "Reading" in shown
    assert "1,500 rows" in shown
    assert "rows/s" in shown


def test_a_bar_on_standard_error_after_the_wait(monkeypatch, capsys):
    monkeypatch.setattr(progress, "Console", lambda **options: Console(**options, force_terminal=True))

    assert list(progress.tracked(range(3), "Working", patience=0.0)) == [0, 1, 2]
    shown = capsys.readouterr()
    assert "Working" in shown.err
    assert shown.out == ""

    list(progress.tracked(range(3), "Working"))
    assert "Working" not in capsys.readouterr().err


def test_no_bar_where_it_is_silenced(monkeypatch, capsys):
    monkeypatch.setattr(progress, "Console", lambda **options: Console(**options, force_terminal=True))
    with progress.silenced():
        assert list(progress.tracked(range(3), "Working", patience=0.0)) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
    with progress.silenced(False):
        list(progress.tracked(range(3), "Working", patience=0.0))
    assert "Working" in capsys.readouterr().err


def test_a_bar_of_bytes_counts_what_is_read_of_a_table(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(progress, "Console", lambda **options: Console(**options, force_terminal=True, width=120))
    with progress.ByteBar("Reading", 2_000_000, patience=0.0) as bar:
        bar.advance(500_000)
    shown = capsys.readouterr().err
    assert "0.5/2.0 MB" in shown
    assert "rows/s" not in shown
    assert "-:--:--" in shown or "0:00:0" in shown  # the time left
    with progress.ByteBar("Reading", 2_000_000, patience=0.0) as bar:
        bar.begin -= 10.0
        bar.advance(500_000, 100_000)
    assert re.search(r"(10,000|\d,\d\d\d) rows/s", capsys.readouterr().err)

    bars = []
    monkeypatch.setattr(files, "ByteBar", lambda *arguments: bars.append(progress.ByteBar(*arguments)) or bars[-1])
    table = {"x": np.arange(5_000) * 0.1}
    for kind in (".csv", ".csv.gz", ".parquet", ".arrow"):
        path = tmp_path / f"t{kind}"
        write_table([table], path)
        files.read_files(path)
        assert bars[-1].done == bars[-1].total == path.stat().st_size
