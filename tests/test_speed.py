"""What the scripts of `speed/` measure becomes lines, and the lines a page; `make speed` runs the scripts."""

import ast
import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REPORT = {
    "script": "fits",
    "title": "Exact fits",
    "warm_up": "one call of each side",
    "seconds": 90.0,
    "failed": None,
    "quick": False,
    "date": "2026-01-02T03:04+00:00",
    "commit": "abc1234",
    "machine": {"processor": "A fast one", "cores": 2, "memory_gb": 23.5, "system": "Linux x86_64"},
    "versions": {"python": "3.11.7", "numpy": "2.4.6"},
    "lines": [],
}
WITH_PEER = {"peer": "X'X | X'Y", "clock": "wall", "rounds": "3"}


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "speed"))
    return importlib.import_module("benchmark")


@pytest.fixture
def page(bench):
    return importlib.import_module("page")


@pytest.fixture
def runner(page):
    return importlib.import_module("all")


def report_with(bench, *lines, **fields):
    kept = bench.Bench("speed/fits.py", "Exact fits", lines=list(lines)).report()["lines"]
    return json.loads(json.dumps(REPORT | {"lines": kept} | fields))


def test_a_ratio_is_how_much_faster_ours_is_but_of_a_limit_how_much_longer_it_takes(bench):
    faster = bench.Line("a", 0.5, theirs=2.0, at_least=3, peer="them")
    limit = bench.Line("a", 0.5, theirs=0.4, at_most=1.2, peer="them")
    assert (faster.ratio, faster.met) == (4.0, True)
    assert (limit.ratio, limit.met) == (1.25, False)
    assert bench.Line("a", 0.5, theirs=0.4, limit=True, peer="them").ratio == 1.25


def test_a_line_whose_work_was_not_equal_never_meets_its_target(bench):
    assert bench.Line("a", 0.5, theirs=2.0, at_least=3, peer="them", is_same=False).met is False
    assert bench.Line("a", 0.5, theirs=2.0, peer="them", is_same=False).met is False
    assert bench.Line("a", 0.5, theirs=2.0, peer="them").met is None


def test_a_line_without_a_peer_bounds_its_own_figure(bench):
    assert bench.Line("memory", 12.0, "MB", at_most=100).met is True
    assert bench.Line("memory", 120.0, "MB", at_most=100).cells()[5:7] == ("≤ 100 MB", "NO")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(2.2e-7, "s", "220 ns"), (0.9999, "s", "1 s"), (61.0, "s", "61 s"), (1234.56, "", "1,235"), (0.0, "s", "0 s")],
)
def test_figures_have_three_digits_and_a_unit_that_suits(bench, value, unit, text):
    assert bench.shown(value, unit) == text


def test_sides_run_in_turn_in_alternating_order_after_a_first_call_that_does_not_count(bench):
    calls = []
    works = [lambda name=name: calls.append(name) or name for name in "ab"]
    measured = bench.Bench("x.py", "X").time(*works, rounds=3, clock="wall")
    assert "".join(calls) == "ab" + "ab" + "ba" + "ab"
    assert [side.result for side in measured] == ["a", "b"]
    assert [side.rounds for side in measured] == [3, 3]


def test_a_script_that_fails_keeps_its_lines_and_says_why(bench, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "ROOT", tmp_path)

    def measure():
        with bench.Bench("speed/fits.py", "Exact fits") as claims:
            claims.claim("first", bench.Measured(0.5, "wall", 3), bench.Measured(2.0, "wall", 1), peer="them")
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        measure()
    found = json.loads((tmp_path / "out" / "speed" / "fits.json").read_text(encoding="utf-8"))
    assert found["failed"] == "ZeroDivisionError: division by zero"
    assert [(line["name"], line["ratio"], line["rounds"]) for line in found["lines"]] == [("first", 4.0, "3 and 1")]
    assert set(found["machine"]) == set(REPORT["machine"])
    assert {"python", "numpy", "gurobipy"} <= set(found["versions"])
    assert "first" in capsys.readouterr().out


def test_the_page_has_machine_versions_commands_and_what_was_missed(bench, page):
    lines = (
        bench.Line("WISE", 0.012, theirs=0.010, at_most=1.25, **WITH_PEER),
        bench.Line("too slow", 0.02, theirs=0.01, at_most=1.25, group="Large", **WITH_PEER),
    )
    other = report_with(bench, script="solves", title="Solves", failed="it ended with code 1", commit="older")
    text = page.render([report_with(bench, *lines), other])
    assert "2 cores of A fast one with 24 GB" in text
    assert "numpy 2.4.6" in text
    assert "in 3 minutes altogether" in text
    assert "`python speed/fits.py`" in text
    assert "| [Exact fits](#exact-fits) | 2 | 1 of 2 | too slow | 1.5 |" in text
    assert "| WISE | 12 ms | 10 ms | X'X \\| X'Y | 1.2 | ≤ 1.25 | yes | wall, 3 |" in text
    assert "\n\nLarge:\n\n| what |" in text
    assert "FAILED: it ended with code 1" in text
    assert "at commit older" in text


def test_only_the_part_between_the_marks_is_replaced(page):
    before = f"# Title\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n"
    once = page.insert(before, "new")
    assert once == f"# Title\n\n{page.BEGIN}\n\nnew\n\n{page.END}\n\nafter\n"
    assert page.insert(once, "new") == once
    with pytest.raises(ValueError, match="lacks the marks"):
        page.insert("# Title\n", "new")


def test_the_page_of_the_project_has_the_marks(page):
    assert page.insert(page.PAGE.read_text(encoding="utf-8"), "figures").count("figures") >= 1


def scripts():
    """Return the scripts that measure: those with a main part, apart from the one that runs them."""
    files = sorted((ROOT / "speed").glob("*.py"))
    return [file for file in files if "__main__" in file.read_text(encoding="utf-8") and file.stem != "all"]


def test_every_script_is_run_and_says_how(runner):
    by_hand = {"against_commit"}  # which compares with a commit that one names
    assert sorted({*runner.SCRIPTS, *by_hand}) == [file.stem for file in scripts()]
    for file in scripts():
        text = file.read_text(encoding="utf-8")
        assert f"python speed/{file.stem}.py" in (ast.get_docstring(ast.parse(text)) or ""), file.stem
        assert "Bench(__file__" in text, file.stem


def test_a_script_that_leaves_no_report_is_a_line_all_the_same(runner, bench, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "__file__", str(tmp_path / "all.py"))
    (tmp_path / "fits.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    assert runner.run("fits", quick=False)["failed"] == "it ended with code 3"
    assert not runner.is_done(runner.report_of("fits", quick=False))
    bench.write(report_with(bench, commit=bench.commit()))
    assert runner.is_done(runner.report_of("fits", quick=False))
