"""The commands on tables, from a table to decisions, in one process."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from typer.testing import CliRunner

from decidewise import GeneralizedLinear, load_model, normalized_regret, read_model_summary, save_model
from decidewise.app.cli.app import app
from decidewise.models import default_candidates
from decidewise.models.selection.families import words_of
from decidewise.problems import ProblemFile, TopK
from decidewise.rows.file_blocks import read_files

N, ITEMS = 50, ("a", "b", "c")


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exc_info)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same data as a wide table in several formats, and as a long one, shuffled."""
    folder = tmp_path_factory.mktemp("commands")
    rng = np.random.default_rng(0)
    x, kind = rng.normal(size=N), rng.choice(["u", "v"], N)
    effects = 1 + 0.3 * x[:, np.newaxis] * [1, -1, 0.5] + 0.4 * (kind == "v")[:, np.newaxis] * [0, 1, 0]
    costs = np.exp(effects + rng.normal(0, 0.1, (N, 3)))
    day = np.datetime64("2026-01-01") + np.arange(N)
    wide = pa.table({"day": day, "x": np.where(np.arange(N) % 9 == 4, np.nan, x), "kind": kind} | {
        f"cost_{item}": costs[:, j] for j, item in enumerate(ITEMS)
    })  # fmt: skip
    wide = wide.set_column(1, "x", pa.array(wide["x"].to_numpy(), from_pandas=True))
    csv.write_csv(wide, folder / "wide.csv")
    csv.write_csv(wide, folder / "wide.tsv", csv.WriteOptions(delimiter="\t"))
    parquet.write_table(wide, folder / "wide.parquet")
    feather.write_feather(wide, folder / "wide.arrow")
    (folder / "parts").mkdir()
    for part in range(2):
        parquet.write_table(wide.slice(25 * part, 25), folder / "parts" / f"{part}.parquet")
    csv.write_csv(wide.select(["x", "kind", "day"]), folder / "new.csv")
    lines = pa.table({
        "day": np.repeat(day, 3), "item": np.tile(ITEMS, N), "x": np.repeat(x, 3) + np.tile([0.0, 1.0, 2.0], N),
        "cost": costs.ravel(),
    })  # fmt: skip
    csv.write_csv(lines.take(rng.permutation(3 * N)), folder / "long.csv")
    (folder / "problem.toml").write_text('kind = "top_k"\nn = 3\nk = 1\nsense = "min"\n')
    return folder


@pytest.fixture(scope="module")
def model(folder):
    problem = ("-p", folder / "problem.toml")
    run("fit", folder / "wide.csv", *problem, "--time", "day", "--model", "gamma", "--out", folder / "model.dw", "-q")
    return folder / "model.dw"


def test_compare_as_json_and_as_a_table(folder, tmp_path):
    out = tmp_path / "new" / "page.html"
    common = ("compare", folder / "wide.csv", "-p", folder / "problem.toml", "--time", "day", "--out", out)
    found = json.loads(run(*common, "--json").stdout)
    assert found["rows"] == {"all": 50, "chosen on": 38, "measured on": 12}
    assert found["baseline"] == "least squares"
    assert "x is missing" in found["features"]
    assert any("'x': 4 of 38 values missing" in note for note in found["notes"])
    assert {"training mean", "least squares", "wise"} <= {row["name"] for row in found["models"]}
    assert found["solver calls"] > 0
    assert found["leaks"] == []
    assert {"gaps", "heavy tails", "drift in the costs"} <= {finding["topic"] for finding in found["health"]}
    page = out.read_text(encoding="utf-8")
    assert found["headline"].partition(" ")[0] in page
    shown = run(*common, "--quiet")
    assert shown.stdout.count("┏") == 1
    assert "missing" not in shown.stdout
    assert shown.stderr == ""


def table_of(n, *, forecast=None, noise=0.1, below=0.0):
    """Return a table as CSV; forecasts are off by a share, and the costs of the last rows are lower by so much."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 2))
    costs = np.exp(0.7 * x @ rng.normal(size=(2, 3)) + rng.normal(0, noise, (n, 3)))
    costs[int(0.7 * n) :, 0] -= below
    columns = {"x": x[:, 0], "y": x[:, 1]} | {f"cost_{j}": costs[:, j] for j in range(3)}
    if forecast is not None:
        columns |= {f"f{j}": costs[:, j] * rng.uniform(1 - forecast, 1 + forecast, n) for j in range(3)}
    return pa.table({"day": np.datetime64("2026-01-01") + np.arange(n)} | columns)


@pytest.mark.parametrize(
    ("table", "more", "outcome"),
    [
        (table_of(60), [], None),
        (table_of(90, forecast=1.5), ["--forecast", "f*"], "better"),
        (table_of(60, forecast=0.01), ["--forecast", "f*"], "unproven"),
        (table_of(9, noise=2.0), [], None),
        (table_of(60, below=1.5), ["--test", 0.5], None),
        (table_of(90, forecast=1.5), ["--forecast", "f*", "--one-model"], "better"),
        (table_of(90, forecast=1.5), ["--forecast", "f*", "--train-solves", "20000"], "better"),
    ],
)
def test_headline_table_json_command_and_file_name_one_model(tmp_path, monkeypatch, table, more, outcome):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    csv.write_csv(table, "t.csv")
    Path("p.toml").write_text('kind = "top_k"\nn = 3\nk = 1\nsense = "min"\n')
    found = json.loads(run("compare", "t.csv", "-p", "p.toml", "--time", "day", *more, "--json").stdout)
    assert found["verdict"] == (outcome or found["verdict"])
    named, weights = found["chosen"], found["choice"]
    if named == "choice" and len(weights) > 1:
        words = "an average of the best models"
    else:
        families = default_candidates(np.eye(9), 1 + np.eye(9), forecast=list(range(9)), every=True).families
        name = next(iter(weights)) if named == "choice" else named
        words = words_of(families.get(name, "SPO+")).one
    said = re.sub("^Possible leak: .* wrong. ", "", found["headline"])  # a forecast that is nearly a cost
    assert re.sub("^(Keep|Use) ", "", said).lower().startswith(words.lower())
    assert said.startswith("Keep ") == (named == found["baseline"])
    assert (
        named == found["challenger"] if found["verdict"] == "better" else named != "choice" or "--forecast" not in more
    )
    shown = run("compare", "t.csv", "-p", "p.toml", "--time", "day", *more).stdout
    assert [line.split("│")[1].strip() for line in shown.splitlines() if "(advised)" in line] == [f"{named} (advised)"]
    assert f"Next: {found['command']}" in shown.splitlines()
    page = unescape(Path("compare.html").read_text(encoding="utf-8"))
    assert re.findall(r'<tr class="chosen"><th scope="row">(.*?) \(advised\)', page) == [named]
    assert f"<code>{found['command']}</code>" in page
    run(*shlex.split(found["command"])[1:])
    written = json.loads(run("inspect", "model.dw", "--json").stdout)["training"]["candidate"]
    assert written == named if named != "choice" else written.startswith("average of ") == ("--one-model" not in more)
    if "--test" not in more:  # fit holds out as many rows as compare does by default
        own = json.loads(
            run("fit", "t.csv", "-p", "p.toml", "--time", "day", *more, "--out", "own.dw", "--json").stdout
        )
        assert own["candidate"] == written
        assert found["headline"] in own["notes"]
        new = pa.table({name: ["2027-01-01"] if name == "day" else [1.0] for name in table.column_names})
        csv.write_csv(new, "new.csv")
        np.testing.assert_array_equal(
            load_model("own.dw").predict("new.csv"), load_model("model.dw").predict("new.csv")
        )


@pytest.mark.parametrize("name", ["wide.tsv", "wide.parquet", "wide.arrow", "parts", "parts/*.parquet"])
def test_every_format_gives_the_same_model(folder, model, tmp_path, name):
    out = tmp_path / "again.dw"
    run("fit", folder / name, "-p", folder / "problem.toml", "--time", "day", "--model", "gamma", "--out", out)
    new = str(folder / "new.csv")
    np.testing.assert_allclose(load_model(out).predict(new), load_model(model).predict(new), rtol=1e-12)


def test_predictions_and_decisions_of_new_rows(folder, model, tmp_path):
    run("predict", model, folder / "new.csv", "--out", tmp_path / "predictions.parquet")
    predictions = parquet.read_table(tmp_path / "predictions.parquet")
    assert predictions.column_names == ["day", "prediction_a", "prediction_b", "prediction_c"]
    prediction = np.column_stack([predictions[name].to_numpy() for name in predictions.column_names[1:]])
    run("decide", model, folder / "new.csv", "-p", folder / "problem.toml", "--out", tmp_path / "decisions.csv")
    decisions = read_files(tmp_path / "decisions.csv")
    assert decisions.column_names == ["day", *(f"decision_{item}" for item in ITEMS), "predicted_objective"]
    np.testing.assert_array_equal(decisions["day"].to_numpy(), predictions["day"].to_numpy())
    chosen = np.column_stack([decisions[f"decision_{item}"].to_numpy() for item in ITEMS])
    np.testing.assert_array_equal(chosen, TopK(3, 1, sense="min").solve(prediction))
    np.testing.assert_allclose(decisions["predicted_objective"].to_numpy(), prediction.min(axis=1))


def test_decisions_are_explained(folder, model):
    call = ("decide", model, folder / "new.csv", "-p", folder / "problem.toml", "--json")
    explained, plain = (json.loads(run(*call, *more).stdout) for more in (["--explain"], []))
    for row, same in zip(explained, plain, strict=True):
        assert {key: row[key] for key in same} == same
        costs = [row[f"prediction_{item}"] for item in ITEMS]
        for j, item in enumerate(ITEMS):
            least = min(costs[:j] + costs[j + 1 :])
            chosen = row[f"decision_{item}"] == 1
            ends = (None, least) if chosen else (least, None)
            assert (row[f"holds_from_{item}"], row[f"holds_to_{item}"]) == pytest.approx(ends)
            assert row[f"above_{item}"] == 0
            assert row[f"below_{item}"] == 1


def test_with_costs_decisions_have_their_regret(folder, model, tmp_path):
    run("decide", model, folder / "wide.parquet", "-p", folder / "problem.toml", "--out", tmp_path / "decisions.arrow")
    decisions = feather.read_table(tmp_path / "decisions.arrow")
    wide = parquet.read_table(folder / "wide.parquet")
    costs = np.column_stack([wide[f"cost_{item}"].to_numpy() for item in ITEMS])
    regret = decisions["regret"].to_numpy()
    np.testing.assert_allclose(regret, decisions["objective"].to_numpy() - costs.min(axis=1), atol=1e-12)
    loaded = load_model(model)
    percent = normalized_regret(TopK(3, 1, sense="min"), loaded.predict(str(folder / "wide.csv")), costs)
    np.testing.assert_allclose(100 * regret.sum() / costs.min(axis=1).sum(), percent)
    found = json.loads(run("evaluate", model, folder / "wide.csv", "-p", folder / "problem.toml", "--json").stdout)
    np.testing.assert_allclose(found["models"][0]["regret percent"]["estimate"], percent)


def test_a_long_table_in_and_out(folder, tmp_path):
    options = ("--rows", "day", "--items", "item", "--costs", "cost")
    problem = ("-p", folder / "problem.toml")
    run("fit", folder / "long.csv", *problem, *options, "--model", "least squares", "--out", tmp_path / "long.dw")
    run("decide", tmp_path / "long.dw", folder / "long.csv", *problem, "--out", tmp_path / "decisions.csv")
    lines = read_files(tmp_path / "decisions.csv")
    assert lines.num_rows == 3 * N
    assert lines.column_names[:4] == ["day", "item", "prediction", "decision"]
    assert sum(lines["decision"].to_pylist()) == N
    by_hand = TopK(3, 1, sense="min").solve(load_model(tmp_path / "long.dw").predict(str(folder / "long.csv")))
    np.testing.assert_array_equal(np.reshape(lines["decision"].to_numpy(), (N, 3)), by_hand)


def test_predictions_on_the_screen_are_a_table_alone(folder, model):
    result = run("predict", model, folder / "new.csv")
    assert result.stdout.splitlines()[0] == '"day","prediction_a","prediction_b","prediction_c"'
    assert len(result.stdout.splitlines()) == N + 1


def test_rows_as_json_and_what_was_written(folder, model, tmp_path):
    call = ("decide", model, folder / "new.csv", "-p", folder / "problem.toml", "--json")
    result = run(*call)
    rows = json.loads(result.stdout)
    assert result.stderr == ""
    assert len(rows) == N
    table = load_model(model).decide(str(folder / "new.csv"), folder / "problem.toml").columns()
    assert list(rows[0]) == list(table)
    assert rows[0]["day"] == str(table["day"][0])
    assert [row["decision_a"] for row in rows] == table["decision_a"].tolist()
    found = json.loads(run(*call, "--out", tmp_path / "d.parquet").stdout)
    assert found == {"file": str(tmp_path / "d.parquet"), "rows": N, "notes": []}
    assert json.loads(run("predict", model, folder / "new.csv", "--json", "--stream").stdout)[0]["prediction_b"] > 0


def test_new_names_are_said_and_decided(folder, model, tmp_path):
    (tmp_path / "new.csv").write_text("x,kind,day\n0.5,never,2026-03-01\n")
    result = run("decide", model, tmp_path / "new.csv", "-p", folder / "problem.toml")
    assert "'kind': 'never' not seen in training" in result.stderr


def test_numbers_far_out_of_range_are_said_by_commands_and_the_server(folder, model, tmp_path):
    from decidewise.app.server.bodies import Body  # noqa: PLC0415
    from decidewise.app.server.service import Service  # noqa: PLC0415

    (tmp_path / "new.csv").write_text("x,kind,day\n5000,u,2026-03-01\n")
    said = "'x': 1 value far out of the range of training ("
    for call in (["predict"], ["predict", "--stream"], ["decide", "-p", folder / "problem.toml", "--json"]):
        result = run(call[0], model, tmp_path / "new.csv", *call[1:])
        assert result.stderr.startswith(said)
    assert "warning" not in result.stdout
    columns = {"x": np.array([5000.0]), "kind": np.array(["u"]), "day": np.array(["2026-03-01"])}
    [warning] = Service(load_model(model), read_model_summary(model)).predict(Body(1, None, columns)).warnings
    assert warning.startswith(said)


def test_the_server_answers_as_the_command_does(folder, model):
    """A model file of `fit` behind HTTP: rows by name, as JSON brings them."""
    from decidewise.app.server.bodies import Body  # noqa: PLC0415
    from decidewise.app.server.service import Service  # noqa: PLC0415

    service = Service(load_model(model), read_model_summary(model), ProblemFile.read(folder / "problem.toml"))
    new = read_files(folder / "new.csv").to_pylist()
    columns = {name: np.array([row[name] for row in new], dtype=object) for name in new[0]}
    columns["day"] = np.array([str(day) for day in columns["day"]], dtype=object)
    answer = service.decide(Body(N, None, columns))
    expected = load_model(model).decide(str(folder / "new.csv"), folder / "problem.toml")
    np.testing.assert_array_equal(answer.values, expected.decisions)
    np.testing.assert_allclose(answer.objective, expected.objective)


def test_inspect_prints_no_command_of_a_terminal(tmp_path):
    path = tmp_path / "odd.dw"
    save_model(GeneralizedLinear().fit([[1.0], [2.0]], [[1.0], [2.0]]), path, summary={"note": "\x1b[2J gone\x07"})
    assert "note: ?[2J gone?" in run("inspect", path).stdout


def test_inspect(model):
    shown = run("inspect", model).stdout
    for words in ("model: gamma", "features: ", "rows: 50", "last: 2026-02-19", "types to trust: none", "decidewise "):
        assert words in shown
    assert json.loads(run("inspect", model, "--json").stdout)["cost_names"] == list(ITEMS)


def test_diagnose(folder, tmp_path):
    problem = ("-p", folder / "problem.toml")
    found = json.loads(run("diagnose", folder / "wide.csv", *problem, "--max-solves", 3000, "--json").stdout)
    assert found["n_rows"] <= N
    assert found["advice"]
    assert found["command"].startswith(f"decidewise fit {folder / 'wide.csv'} --problem ")
    shown = run("diagnose", folder / "wide.csv", *problem, "--max-solves", 3000).stdout
    assert shown.endswith(f"{found['advice']}\nNext: {found['command']}\n")
    run(*shlex.split(found["command"])[1:-1], tmp_path / "model.dw")
    assert (
        json.loads(run("inspect", tmp_path / "model.dw", "--json").stdout)["training"]["candidate"] == found["chosen"]
    )


def test_a_table_comes_by_standard_input(folder, tmp_path):
    table, problem = (folder / "wide.csv").read_bytes(), ["-p", str(folder / "problem.toml")]
    for source, name in ((str(folder / "wide.csv"), "file.dw"), ("-", "piped.dw")):
        call = ["fit", source, *problem, "--model", "gamma", "--out", str(tmp_path / name)]
        assert CliRunner().invoke(app, call, input=table).exit_code == 0
    new = (folder / "new.csv").read_bytes()
    decided = CliRunner().invoke(app, ["decide", str(tmp_path / "piped.dw"), "-", *problem], input=new).stdout
    assert decided == run("decide", tmp_path / "file.dw", folder / "new.csv", *problem).stdout
    said = CliRunner().invoke(app, ["compare", "-", *problem, "--out", str(tmp_path / "page.html")], input=table)
    assert "Next: decidewise fit - --problem " in said.stdout


def test_what_there_is_no_time_for_is_left_out_and_said(folder, tmp_path):
    call = (folder / "wide.csv", "-p", folder / "problem.toml", "--max-seconds", 0.001)
    for command in ("compare", "fit"):
        assert "Not tried, for lack of time or calls: " in run(command, *call, "--out", tmp_path / command).stdout
    said = run("compare", *call, "--out", tmp_path / "page").stdout
    assert ("--max-seconds 0.001" in said) == ("--model choice" in said)  # a named model is not searched for
    shown = run("diagnose", *call).stdout
    assert "Not tried: 'least squares'" in shown
    assert "SPO+ could not be trained: max_seconds was reached." in shown


def test_solver_calls_for_training_are_a_number_or_auto(folder, tmp_path):
    call = (folder / "wide.csv", "-p", folder / "problem.toml", "--train-solves")
    for command in (["compare"], ["diagnose"], ["fit", "--out", tmp_path / "m.dw"]):
        said = run(command[0], *call, "many", *command[1:], code=2).stderr
        assert said == "Error: --train-solves must be a number of solver calls, or auto; got 'many'.\n"


def test_init_writes_an_example_that_is_read(tmp_path):
    run("init", tmp_path / "example")
    names = sorted(path.name for path in (tmp_path / "example").iterdir())
    assert names == ["README.md", "history.csv", "new.csv", "problem.toml"]
    assert "exists already" in run("init", tmp_path / "example", code=2).stderr
    run("init", tmp_path / "example", "--force")
    readme = (tmp_path / "example" / "README.md").read_text()
    assert "decidewise compare history.csv --problem problem.toml" in readme


def test_help_has_examples_and_every_command_debug():
    commands = ("compare", "fit", "predict", "decide", "evaluate", "diagnose", "inspect", "init", "problems", "serve")
    for command in commands:
        shown = run(command, "--help").stdout
        assert f"\n decidewise {command} " in shown
        assert "\\b" not in shown
        assert "--debug" in shown


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
def test_completion_in_bash(tmp_path):
    """Installed by the command, then asked as bash asks after Tab."""
    environment = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}

    def bash(script):
        done = subprocess.run(
            ["bash", "--norc", "-c", f"{script}; true"], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert "bash completion installed" in bash("decidewise --install-completion")
    assert "decidewise.sh" in (tmp_path / ".bashrc").read_text()
    assert bash("decidewise --show-completion").split() == (
        (tmp_path / ".bash_completions" / "decidewise.sh").read_text().split()
    )
    ask = 'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _decidewise_completion decidewise; echo "${COMPREPLY[@]}"'
    completed = {
        words: bash(f"source ~/.bash_completions/decidewise.sh; COMP_WORDS=(decidewise {words}); {ask}").split()
        for words in ("comp", "compare --pro", "compare --fo")
    }
    assert completed == {"comp": ["compare"], "compare --pro": ["--problem"], "compare --fo": ["--forecast"]}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_for_other_shells(shell):
    """What the script for the shell sends and gets; the shells themselves need not be here."""
    environment = {"_DECIDEWISE_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "decidewise compare --pro"}
    environment["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    command = [sys.executable, "-m", "decidewise"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert "--problem" in done.stdout
    assert done.stderr == ""


def test_nothing_of_the_input_is_changed(folder, model):
    before = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    run("predict", model, folder / "new.csv")
    assert before == {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
