import sys

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from decidewise.app.cli.app import app
from decidewise_bench.experiments.rows import SCHEMA
from decidewise_bench.experiments.version import with_libraries
from decidewise_bench.paper import CONTESTS, EXPLAINED, PUBLISHED, TABLES
from decidewise_bench.report import benchmark_report

UNLUCKY_MODULE = """
from pathlib import Path
from decidewise import WiseRegressor

def unlucky(problem, *, random_state):
    if not Path(__file__).with_name("luck").exists():
        raise ArithmeticError("no luck today")
    return WiseRegressor()
"""


@pytest.fixture
def command(tiny):
    """Call `decidewise bench NAME` on the tiny plan and its store."""

    def call(name, *options, plan=tiny.plan):
        return CliRunner().invoke(app, ["bench", name, str(plan), "--store", str(tiny.store_path), *map(str, options)])

    return call


def test_run_then_status(command, tiny):
    result = command("run", "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "12 of 12 cells" in result.stdout
    assert command("status").stdout.split("tiny")[1].split()[:6] == [
        "│",
        tiny.cells()[0].version,
        "│",
        "as",
        "installed",
        "│",
    ]


def test_status_counts_what_is_missing_and_what_other_code_left(command, tiny):
    command("run", "--trials", 1, "--jobs", 1)
    assert [word for word in command("status").stdout.split("tiny")[1].split() if word.isdigit()] == ["6", "0", "6"]
    older = command("status", "--code", "0.0.0+old").stdout
    assert "0.0.0+old" in older
    assert tiny.cells()[0].version in older


def test_rows_made_with_other_libraries_are_listed_and_read_but_never_mixed(command, tiny, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("decidewise_bench.experiments.runner.library_versions", lambda: with_libraries("NumPy 1.0"))
        assert command("run", "--trials", 1, "--jobs", 1).exit_code == 0
    now, then = [line.split("│")[2:-1] for line in command("status").stdout.splitlines() if "+" in line]
    assert [entry.strip() for entry in now[1:]] == ["as installed", "0", "0", "12"]
    assert [entry.strip() for entry in then[1:]] == ["NumPy 1.0", "6", "", ""]
    assert command("report", "--out", tmp_path).exit_code == 2
    found = command("export", "--to", tmp_path / "rows.csv", "--libraries", "NumPy 1.0")
    assert "6 rows" in found.stdout, found.output


def test_a_failure_is_a_row_a_sentence_and_an_exit_code(command, tiny):
    (tiny.plan.parent / "unlucky_method.py").write_text(UNLUCKY_MODULE)
    method = '{ name = "Unlucky", model = "unlucky_method:unlucky" }'
    tiny.plan.write_text(tiny.plan.read_text().replace('{ name = "SPO+", loss = "spo+" }', method))
    result = command("run", "--jobs", 1)
    assert result.exit_code == 1
    sentence = "Unlucky failed (tiny, paths, degree 1, 40 samples, trial 0): ArithmeticError: no luck today"
    assert f"Error: 4 of 12 cells failed; the first: {sentence}" in result.stderr
    assert result.stdout.count("ArithmeticError") == 4
    rows = tiny.store().rows(tiny.cells())
    assert [row.status for row in rows] == ["ok", "failed", "ok"] * 4
    seconds = [row.train_seconds for row in rows]
    again = command("run", "--jobs", 1)  # a failure is a result: it is not computed again, and still told
    assert again.exit_code == 1
    assert "12 of 12 cells are done already" in again.stdout

    (tiny.plan.parent / "luck").touch()
    assert command("run", "--jobs", 1, "--retry").exit_code == 0
    rows = tiny.store().rows(tiny.cells())
    assert [row.train_seconds for row in rows if row.method != "Unlucky"] == [s for s in seconds if s is not None]
    assert {row.status for row in rows} == {"ok"}


def test_fresh_computes_all_anew(command, tiny):
    command("run", "--jobs", 1)
    before = tiny.store().rows(tiny.cells())
    command("run", "--jobs", 1, "--fresh")
    after = tiny.store().rows(tiny.cells())
    assert [row.regret for row in after] == [row.regret for row in before]
    assert all(new.train_seconds != old.train_seconds for new, old in zip(after, before, strict=True))


def test_commands_that_read_import_nothing_that_a_plan_names(command, tiny, tmp_path):
    text = tiny.plan.read_text()
    source = "from decidewise.losses import Mse as Harmless\n"
    (tmp_path / "harmless.py").write_text(source)
    tiny.plan.write_text(text.replace('loss = "spo+"', 'loss = "harmless:Harmless"'))
    assert command("run", "--jobs", 1).exit_code == 0
    (tmp_path / "harmless.py").write_text(f"# 1\n{source}")  # comments make no other code
    del sys.modules["harmless"]
    sys.path.remove(str(tmp_path))
    for name, options in {
        "status": (),
        "export": ("--to", tmp_path / "rows.csv"),
        "report": ("--out", tmp_path),
    }.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("decidewise_bench.report.write.charts_of", lambda board: [])
            result = command(name, *options)
        assert (result.exit_code, "missing" in result.output.replace("missing ┃", "")) == (0, False), result.output
        assert "harmless" not in sys.modules


def test_export(command, tiny, tmp_path):
    command("run", "--jobs", 1)
    result = command("export", "--to", tmp_path / "rows.parquet")
    assert result.exit_code == 0
    assert "12 rows" in result.stdout
    table = parquet.read_table(tmp_path / "rows.parquet")
    assert table.schema == SCHEMA
    assert table["regret"].to_pylist() == [row.regret for row in tiny.store().rows(tiny.cells())]
    refused = command("export", "--to", tmp_path / "rows.txt")
    assert (refused.exit_code, "must end in .parquet or .csv" in refused.stderr) == (2, True)


def test_report_gets_the_rows_of_these_plans(command, tiny, tmp_path, monkeypatch):
    calls = []

    def build(table, published):
        calls.append((table, published))
        return benchmark_report(table, None)

    monkeypatch.setattr("decidewise_bench.report.write.benchmark_report", build)
    command("run", "--jobs", 1, "--trials", 1)
    result = command("report", "--out", tmp_path / "page", "--published", tmp_path)
    assert result.exit_code == 0, result.output
    assert "6 of 12 rows are missing" in result.stdout
    assert str(tmp_path / "page" / "report.html") in result.stdout.replace("\n", "")
    ((table, published),) = calls
    assert (table.num_rows, published) == (6, tmp_path)
    assert (tmp_path / "page" / "report.html").is_file()
    nothing = command("report", "--code", "0.0.0+old")
    assert (nothing.exit_code, "no rows of these plans" in nothing.stderr) == (2, True)


@pytest.mark.parametrize("name", ["status", "report"])
def test_reading_before_running(command, name):
    result = command(name)
    assert result.exit_code == 2
    assert "no rows yet" in result.stderr
    assert "`decidewise bench run`" in result.stderr


def test_mistakes_are_sentences(command, tiny, tmp_path):
    missing = command("run", plan=tmp_path / "none.toml")
    assert (missing.exit_code, "cannot read the plan" in missing.stderr) == (2, True)
    tiny.store_path.write_text("not a database, " * 100)
    spoilt = command("run")
    assert (spoilt.exit_code, "file is not a database" in spoilt.stderr) == (2, True)
    nameless = CliRunner().invoke(app, ["bench", "run"])
    assert (nameless.exit_code, "name at least one plan" in nameless.stderr) == (2, True)


@pytest.mark.parametrize(("options", "same"), [((), "same command"), (("--fresh",), "same command without --fresh")])
def test_interrupted(command, monkeypatch, options, same):
    def interrupted(cells):
        raise KeyboardInterrupt

    monkeypatch.setattr("decidewise_bench.experiments.runner.compute", interrupted)
    result = command("run", "--jobs", 1, *options)
    assert result.exit_code == 130
    assert result.stderr == f"Error: stopped. The rows so far are kept, and the {same} continues.\n"


def test_a_mistake_of_ours_keeps_its_traceback(command, monkeypatch):
    def buggy(cells):
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr("decidewise_bench.experiments.runner.compute", buggy)
    result = command("run", "--jobs", 1)
    assert isinstance(result.exception, ValueError)


def test_plans_beyond_the_tables_are_read_once_they_have_rows(tiny, tmp_path, monkeypatch):
    folder = tmp_path / "paper"
    folder.mkdir()
    for name in (*TABLES, EXPLAINED, *CONTESTS):
        (folder / f"{name}.toml").write_text(tiny.plan.read_text())
    monkeypatch.setattr("decidewise_bench.paper.PLANS", folder)
    store = ["--store", str(tiny.store_path), "--trials", "1"]

    def paper(*arguments):
        result = CliRunner().invoke(app, ["paper", *arguments, *store])
        assert result.exit_code == 0, result.output
        return result.stdout

    def plans():
        paper("export", "--to", str(tmp_path / "rows.parquet"))
        return set(parquet.read_table(tmp_path / "rows.parquet")["plan"].to_pylist())

    paper("run", "--jobs", "1")
    assert plans() == set(TABLES)
    out = ["--out", str(tmp_path / "page"), "--published", str(PUBLISHED)]
    assert "missing" not in paper("report", *out)
    assert "better" not in paper("status")
    paper("run", "better", "--jobs", "1")
    assert plans() == {*TABLES, "better"}
    assert "missing" not in paper("report", *out)
    assert "better" in paper("status")
