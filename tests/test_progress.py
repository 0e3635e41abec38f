"""A bar appears only where someone looks and has waited, and the items pass through in any case."""

from rich.console import Console

from decidewise import progress


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
