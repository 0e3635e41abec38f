"""`decidewise problems`: the list, one kind, and the check of a file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decidewise.app.cli.app import app
from decidewise.problems.readers.kinds import Kind
from decidewise.problems.readers.problem_file import kinds

MODEL = "max obj: price_a + 2 price_b - rent s.t. price_a + price_b - 4 rent <= 0 bounds price_a <= 3 rent <= 1 end"
MODULE = "from decidewise.problems import TopK\n\ndef build():\n    return TopK(5, 2)\n"


def run(*arguments):
    result = CliRunner().invoke(app, ["problems", *map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, (result.stderr, result.exc_info)
    return result.stdout


def test_the_list_has_every_kind_with_what_it_needs():
    shown = run()
    listed = {row["kind"]: row for row in json.loads(run("--json"))}
    assert listed.keys() == kinds().keys()
    for name, row in listed.items():
        assert name in shown
        assert row["needs"] or name in ("linear_program", "conic_program")
    knapsack, flow, path = listed["knapsack"], listed["min_cost_flow.transportation"], listed["shortest_path"]
    assert (knapsack["needs"], knapsack["sense"], knapsack["polyhedron"]) == (
        ["weights", "capacities"],
        "max",
        "relaxation",
    )
    assert flow["needs"] == ["supply", "demand"]
    assert "rows (columns - 1) + columns (rows - 1)" in path["costs"]
    assert listed["assignment"]["costs"] == "n²"
    assert "lowest-numbered edge" in path["ties"]
    assert listed["portfolio"]["polyhedron"] == "no"


def test_the_list_builds_no_problem_since_some_compile(monkeypatch):
    monkeypatch.setattr(Kind, "polyhedron", property(lambda kind: pytest.fail(kind.name)))
    assert "top_k\n    Choose exactly `k` of `n` items" in run()


@pytest.mark.parametrize("name", kinds())
def test_the_example_of_every_kind_can_be_checked(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_problem.py").write_text(MODULE)
    example = run(name, "--example")
    path = tmp_path / "problem.toml"
    if name == "file":
        (tmp_path / "model.lp").write_text(MODEL)
        example = example.replace(".mps", ".lp")
    path.write_text(example)
    found = json.loads(run("--check", path, "--json"))
    shown = run("--check", path)
    assert (found["kind"], len(found["its decision"])) == (name, found["n_costs"])
    assert f"n_costs: {found['n_costs']}\nsense: {found['sense']}\n" in shown
    described = json.loads(run(name, "--json"))
    assert example.replace(".lp", ".mps") == described["example"]
    text = run(name)
    assert kinds()[name].summary in text
    for argument in described["arguments"]:
        assert argument["name"] in text


def test_without_docstrings(tmp_path):
    """What is said about kinds is data, so that `python -OO` says the same."""
    code = (
        "import sys\nfrom decidewise.app.cli.app import app\n"
        "def run(*words):\n    'Run a command.'\n    app(words, standalone_mode=False)\n"
        "run('problems')\nrun('problems', 'knapsack')\nrun('problems', 'knapsack', '--json')\n"
        "run('problems', '--check', sys.argv[1])\nsys.exit('docstrings are there' if run.__doc__ else 0)"
    )
    path = tmp_path / "problem.toml"
    path.write_text(run("knapsack", "--example"))
    done = subprocess.run([sys.executable, "-OO", "-c", code, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"problem.toml, for example:\n\n{path.read_text()}" in done.stdout
    described = json.loads(done.stdout[done.stdout.index("\n{") : done.stdout.index("\n}") + 2])
    assert described == json.loads(run("knapsack", "--json"))


def test_the_page_of_problems_has_every_class():
    page = (Path(__file__).parents[2] / "docs" / "problems.md").read_text(encoding="utf-8")
    for kind in kinds().values():
        assert f"`{kind.owner.__name__}" in page or kind.name == "python", kind


def test_columns_by_row_come_from_a_table(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text('kind = "top_k"\nn = 2\nk = 1\nsense = "min"\nknown = { columns = "toll_*" }\n')
    (tmp_path / "rows.csv").write_text("toll_a,toll_b\n0,9\n9,0\n3,3\n")
    found = json.loads(run("--check", path, "--table", tmp_path / "rows.csv", "--json"))
    assert (found["rows solved"], found["columns by row"], found["its decision"]) == (3, ["toll_*"], [1.0, 0.0])
