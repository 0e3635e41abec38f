"""A corpus of bad command lines: each ends with one line on stderr and a code, never a traceback, never half a file."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decidewise.app.cli.app import app
from decidewise_bench.report import write

PLAN = """trials = 2
[[problems]]
name = "p"
data = "decidewise.data:make_shortest_path"
options = { grid = [3, 3] }
degrees = [1]
samples = [20]
test_samples = 50
learning_rate = 1e-2
methods = [{ name = "MSE", loss = "mse", mode = "exact" }, { name = "WISE", loss = "wise", mode = "exact" }]
"""
MODULES = {
    "broken": "def f(:\n",
    "raising": "raise RuntimeError('boom')\n",
    "exiting": "import sys; sys.exit(7)\n",
    "importing": "from decidewise import nothing_here\n",
    "nul": "\0",
    "sources": """
import sys
import numpy as np
from decidewise.data import make_shortest_path as make
from decidewise.problems import Problem

def boom(n, *, degree, seed): raise RuntimeError("two\\nlines [/of] no data")
def wrong(n, *, degree, seed): return 5
def few(n, *, degree, seed): return make(5, degree=degree, seed=seed)
def exits(n, *, degree, seed): sys.exit(9)
def presses(n, *, degree, seed): raise KeyboardInterrupt
class Broken(Problem):
    n_costs = 2

    def minimize(self, costs):
        return 1 / 0

def large(n, *, degree, seed): return np.ones(10**15)
def nan(n, *, degree, seed):
    data = make(n, degree=degree, seed=seed)
    data.costs[0, 0] = float("nan")
    return data
""",
}
PUBLISHED = {
    "header": "a,b\n1,2\n",
    "number": "degree,samples,method,regret_mean\n1,20,MSE,abc\n",
    "degree": "degree,samples,method,regret_mean\nx,20,MSE,1\n",
    "ragged": "degree,samples,method,regret_mean\n1\n",
    "nameless": "degree,samples,regret_mean,method\n1,20,3\n",
    "binary": "\x00\x01\xff",
}
PYTHON = 'kind = "python"\nobject = "sources_m:{}"\narguments = {{ n = 1, degree = 1, seed = 1 }}'
#: Files that describe a problem, and the complaint.
PROBLEMS = {
    "kind": ('kind = "knapsak"', "problem_kind.toml: there is no kind 'knapsak'"),
    "key": ('kind = "top_k"\nn = 3\nkk = 1', "problem_key.toml: kind 'top_k' has no key 'kk'"),
    "value": ('kind = "top_k"\nn = 3\nk = 1.5', "problem_value.toml: k must be"),
    "huge": ('kind = "assignment"\nn = 1000000', "problem_huge.toml: a problem can have at most"),
    "unbounded": ('kind = "linear_program"\nA_ub = [[-1]]\nb_ub = [1]\nsense = "max"', "cannot be solved for random"),
    "empty": ('kind = "linear_program"\nA_ub = [[1]]\nb_ub = [-1]', "problem_empty.toml: the region is empty"),
    "model": ('kind = "file"\npath = "missing.mps"', "problem_model.toml: there is no file"),
    "garbage": ('kind = "file"\npath = "garbage.mps"', "problem_garbage.toml: HiGHS cannot read garbage.mps"),
    "array": ('kind = "knapsack"\nweights = { file = "junk.npy" }\ncapacities = 1', "weights: junk.npy cannot be read"),
    "columns": ('kind = "top_k"\nn = 1\nk = 1\nknown = { columns = "toll" }', "takes the columns 'toll' from a table"),
    "importing": ('kind = "python"\nobject = "importing_m:f"', "cannot import 'importing_m'"),
    "exiting": ('kind = "python"\nobject = "exiting_m:f"', "cannot import 'exiting_m': SystemExit: 7"),
    "raising": (
        'kind = "python"\nobject = "sources_m:boom"\narguments = { n = 1, degree = 1, seed = 1 }',
        "boom' failed",
    ),
    "nothing": ('kind = "python"\nobject = "sources_m:bom"', "has no 'bom'; the nearest of"),
    "exits": (
        'kind = "python"\nobject = "sources_m:exits"\narguments = { n = 1, degree = 1, seed = 1 }',
        "SystemExit: 9",
    ),
    "broken": ('kind = "python"\nobject = "sources_m:Broken"', "solve failed: ZeroDivisionError"),
}
#: A change of the plan and the complaint, of `run` and `status` alike.
PLANS = [
    ("trials = 2", "trials = 0", "bad.toml: trials: expected integer >= 1; got 0."),
    ("trials = 2", "trials = -3", "trials: expected integer >= 1"),
    ("trials = 2", 'trials = "two"', "trials: expected integer; got 'two'"),
    ("trials = 2", "trials = 2.5", "trials: expected integer; got "),
    ("trials = 2", "trials = true", "trials: expected integer; got "),
    ("trials = 2", "trials = [2]", "trials: expected integer; got "),
    ("trials = 2", "trials = nan", "trials: expected integer; got "),
    ("trials = 2", "trials = 1979-05-27", "trials: expected integer; got datetime.date(1979, 5, 27)"),
    ("trials = 2", "", "trials is missing"),
    ("trials = 2", "trials = 2\ntrials = 3", "is not valid TOML"),
    ("trials = 2", "trials = 2\ncolour = 1", "unknown key 'colour'"),
    ("trials = 2", "trials = 2\nfolder = '/'", "unknown key 'folder'"),
    ("trials = 2", "trials = 2\nepochs = 0", "epochs: expected integer >= 1"),
    ("trials = 2", "trials = 2\nbatch_size = 1e3", "batch_size: expected integer; got 1000.0"),
    ("trials = 2", "trials = 2\nimports = ['os']", "unknown key 'imports'"),
    ("trials = 2", "trials = 3000000000", "6,000,000,000 cells"),
    ("trials = 2", f"trials = {10**40}", "trials: expected integer <= "),
    ("[[problems]]", "[problems]", "problems: expected list; got {"),
    ('"p"', '""', "name must be text"),
    ('"p"', '"a\\u0000b"', "name must be text"),
    ('"p"', '"a\\nb"', "name must be text"),
    ('"p"', "7", "problems[0].name: expected string; got 7"),
    ("decidewise.data:make_shortest_path", "os.system('x')", "expected an importable name"),
    ("decidewise.data:make_shortest_path", "decidewise.data", "expected an importable name"),
    ("decidewise.data:make_shortest_path", ":f", "expected an importable name"),
    ("options = { grid = [3, 3] }", "options = 3", "problems[0].options: expected table; got 3"),
    ("degrees = [1]", "degrees = []", "problems[0].degrees: expected list of length >= 1; got []"),
    ("degrees = [1]", "degrees = 1", "problems[0].degrees: expected list; got 1"),
    ("degrees = [1]", "degrees = [1, 1]", "problems[0]: degree 1 is listed twice"),
    ("degrees = [1]", "degrees = [1.5]", "problems[0].degrees[0]: expected integer; got 1.5"),
    ("degrees = [1]", f"degrees = [{10**30}]", "problems[0].degrees[0]: expected integer <= "),
    ("samples = [20]", "samples = [0]", "problems[0].samples[0]: expected integer >= 1"),
    ("test_samples = 50", "test_samples = 0", "test_samples: expected integer >= 1"),
    ("test_samples = 50", "test_samples = 50\nseed = -1", "seed: expected integer >= 0; got -1"),
    ("test_samples = 50", f"test_samples = 50\nseed = {2**63}", "seed: expected integer <= "),
    ("learning_rate = 1e-2", "learning_rate = 0", "learning_rate must be"),
    ("learning_rate = 1e-2", "learning_rate = inf", "learning_rate must be"),
    ("learning_rate = 1e-2", "learning_rate = [1, 2]", "learning_rate has 2 entries"),
    ("learning_rate = 1e-2", 'learning_rate = "x"', "learning_rate: expected number or table or list; got 'x'"),
    (
        "learning_rate = 1e-2",
        "learning_rate = { swept = [1] }",
        "learning_rate: unknown key 'swept'; known keys are sweep",
    ),
    ('"WISE", loss = "wise"', '"MSE", loss = "mse"', "method MSE (exact) is listed twice"),
    ('"WISE", loss = "wise"', '"WISE"', "either a loss or a model"),
    ('"WISE", loss = "wise"', '"WISE", model = "no colon"', "expected an importable name"),
    ('"WISE", loss = "wise"', '"WISE", loss = "spo+"', 'mode = "exact" is for mse and wise'),
    ('mode = "exact" }]', 'mode = "sgd" }]', 'the mode of a loss is "adam" or "exact"'),
    ('mode = "exact" }]', "parameters = 3 }]", "problems[0].methods[1].parameters: expected table; got 3"),
    ("methods = [{", "methods = [3, {", "problems[0].methods[0]: expected table; got 3"),
]
#: As above, but found by `run` alone, which looks at what the names stand for.
NAMES = [
    ('"WISE", loss = "wise", mode = "exact"', f'"W", loss = "{name}_m:Loss"', f"cannot import '{name}_m'")
    for name in ("broken", "raising", "exiting", "importing", "nul", "missing")
]
NAMES += [
    ("decidewise.data:make_shortest_path", "decidewise.data:nothing", "has no function or class 'nothing'"),
    ("decidewise.data:make_shortest_path", "nowhere.at_all:f", "cannot import 'nowhere.at_all'"),
    ('"WISE", loss = "wise", mode = "exact"', '"WISE", loss = "nothing"', "unknown loss 'nothing'"),
    ('"WISE", loss = "wise", mode = "exact"', '"W", loss = "pfy", parameters = { s = 1 }', "does not take the"),
    ('"WISE", loss = "wise", mode = "exact"', '"W", model = "math:nothing"', "has no function or class 'nothing'"),
]
#: Arguments, the code, and the complaint; relative paths are in the folder of the fixture.
COMMANDS = [
    ("", 2, ""),
    ("frobnicate", 2, ""),
    ("demo --foo", 2, ""),
    ("bench", 2, ""),
    ("bench frobnicate", 2, ""),
    ("bench run", 2, "name at least one plan"),
    ("bench status", 2, "name at least one plan"),
    ("bench run ok.toml --trials 0", 2, ""),
    ("bench run ok.toml --trials abc", 2, ""),
    ("bench run ok.toml --trials 99999999999", 2, "199,999,999,998 cells"),
    ("bench run ok.toml --jobs 1.5", 2, ""),
    ("bench run ok.toml --jobs 0", 2, "jobs must be from 1 to 1000"),
    ("bench run ok.toml --jobs 1000000", 2, "jobs must be from 1 to 1000"),
    ("bench run ok.toml --jobs -1000000", 2, "jobs must be from 1 to 1000"),
    ("bench run ok.toml ok.toml", 2, "two plans are called 'ok'"),
    ("bench run missing.toml", 2, "cannot read the plan missing.toml: No such file"),
    ("bench run .", 2, "cannot read the plan .: Is a directory"),
    ("bench run html.toml", 2, "html.toml is not valid TOML"),
    ("bench run binary.toml", 2, "binary.toml is not valid TOML"),
    ("bench run deep.toml", 2, "deep.toml is not valid TOML"),
    ("bench run empty.toml", 2, "empty.toml: problems is missing"),
    ("paper run nonesuch", 2, "cannot read the plan"),
    ("paper status nonesuch", 2, "cannot read the plan"),
    ("bench run ok.toml --cluster nonsense --store good.sqlite --fresh", 2, "no Dask scheduler at 'nonsense'"),
    ("bench run ok.toml --cluster http://127.0.0.1:1 --store good.sqlite", 2, "no Dask scheduler at"),
    ("bench run ok.toml --jobs 0 --store good.sqlite --fresh", 2, "jobs must be from 1 to 1000"),
    ("demo --out ok.toml", 2, "ok.toml: File exists"),
    ("demo --out ok.toml/x", 2, "ok.toml/x: Not a directory"),
    ("demo --out /proc/nothing", 2, "/proc/nothing: No such file"),
    *((f"bench {command} ok.toml --store none.sqlite", 2, "there are no rows yet") for command in ("status", "report")),
    ("bench export ok.toml --store none.sqlite --to out.csv", 2, "there are no rows yet"),
    *(
        (f"bench {command} ok.toml --store {store}.sqlite {more}", 2, f"{sentence}")
        for store, sentence in {
            "junk": "cannot use the store junk.sqlite: file is not a database",
            "damaged": "cannot use the store damaged.sqlite",
            "short": "cannot use the store short.sqlite",
            "earlier": "earlier.sqlite holds rows of an earlier decidewise",
            "foreign": "foreign.sqlite is a database, but not a store",
            "later": "later.sqlite is a database, but not a store",
        }.items()
        for command, more in {"run": "", "status": "", "report": "--out out", "export": "--to out.csv"}.items()
    ),
    ("bench run ok.toml --store .", 2, "cannot use the store .: unable to open database file"),
    ("bench run ok.toml --store ok.toml/s.sqlite", 2, "ok.toml: File exists"),
    ("bench run ok.toml --store /proc/s.sqlite", 2, "cannot use the store /proc/s.sqlite"),
    ("bench report ok.toml --store empty.sqlite --out out", 2, "empty.sqlite has no rows of these plans"),
    ("bench report ok.toml --store good.sqlite --out ok.toml", 2, "ok.toml: File exists"),
    ("bench report ok.toml --store good.sqlite --out ok.toml/x", 2, "ok.toml/x: Not a directory"),
    ("bench report ok.toml --store good.sqlite --out out --code 0.0.0+none", 2, "good.sqlite has no rows of these"),
    ("bench report ok.toml --store good.sqlite --out out --published nowhere", 2, "no published numbers in nowhere"),
    *(
        (f"bench report ok.toml --store good.sqlite --out out --published {kind}", 2, f"{kind}/ok_p.csv")
        for kind in PUBLISHED
    ),
    ("bench export ok.toml --store good.sqlite", 2, ""),
    ("bench export ok.toml --store good.sqlite --to out.xlsx", 2, "the name of the file must end in"),
    ("bench export ok.toml --store good.sqlite --to folder.csv", 2, "folder.csv: Is a directory"),
    ("bench export ok.toml --store good.sqlite --to ok.toml/out.csv", 2, "ok.toml is a file, not a folder"),
    ("bench export ok.toml --store good.sqlite --to ok.toml", 2, "ok.toml is an input of this command"),
    ("bench export ok.toml --store good.sqlite --to ./good.sqlite", 2, "good.sqlite is an input of this command"),
    ("bench report ok.toml --store good.sqlite --out . --published ./tables", 2, "tables is an input of this command"),
    ("bench export ok.toml --store good.sqlite --to /proc/out.csv", 2, "/proc/out.csv: "),
    ("problems knapsak", 2, "there is no kind 'knapsak'; the nearest of"),
    ("problems --example", 2, "--example needs a kind"),
    ("problems knapsack --foo", 2, ""),
    ("problems knapsack top_k", 2, ""),
    ("problems knapsack --check ok.toml", 2, "leave out KIND"),
    ("problems --table rows.csv", 2, "--table goes with --check"),
    ("problems --check missing.toml", 2, "cannot read the problem missing.toml: No such file"),
    ("problems --check .", 2, "cannot read the problem .: Is a directory"),
    ("problems --check html.toml", 2, "html.toml is not valid TOML"),
    ("problems --check binary.toml", 2, "binary.toml is not valid TOML"),
    ("problems --check deep.toml", 2, "deep.toml is not valid TOML"),
    ("problems --check empty.toml", 2, "empty.toml: kind is missing"),
    ("problems --check ok.toml", 2, "ok.toml: kind is missing"),
    *((f"problems --check problem_{name}.toml", 2, complaint) for name, (_, complaint) in PROBLEMS.items()),
    ("problems --check problem_columns.toml --table missing.csv", 2, "missing.csv"),
    ("problems --check problem_columns.toml --table ok.toml", 2, "its name must end in .csv, .tsv, .parquet or .arrow"),
    (
        "problems --check problem_columns.toml --table problem_rows.csv",
        2,
        "no column 'toll'; the nearest",
    ),
    ("bench status [/nope].toml --store good.sqlite", 2, "cannot read the plan [/nope].toml"),
]
#: Data that fail, the code, and the reason.
SOURCES = {
    "boom": (1, "RuntimeError: two lines [/of] no data"),
    "wrong": (1, "TypeError: sources_m:wrong must return a decidewise.data.Dataset; got int."),
    "few": (1, "ValueError: sources_m:few returned 5 rows, and 70 were asked for"),
    "nan": (1, "ValueError"),
    "exits": (1, "SystemExit: 9"),
    "large": (1, "Error"),
    "presses": (130, "stopped. The rows so far are kept, and the same command continues."),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    (folder / "ok.toml").write_text(PLAN)
    (folder / "html.toml").write_text("<html>")
    (folder / "binary.toml").write_bytes(bytes(range(256)))
    (folder / "deep.toml").write_text("a = " + "[" * 5000)
    (folder / "empty.toml").write_text("")
    (folder / "folder.csv").mkdir()
    for name, (text, _) in PROBLEMS.items():
        (folder / f"problem_{name}.toml").write_text(text)
    (folder / "problem_rows.csv").write_text("tol\n1\n")
    (folder / "garbage.mps").write_text("garbage 1 2 3")
    (folder / "junk.npy").write_bytes(b"junk")
    for name, source in MODULES.items():
        (folder / f"{name}_m.py").write_text(source)
    for name, text in PUBLISHED.items():
        (folder / name).mkdir()
        (folder / name / "ok_p.csv").write_bytes(text.encode("latin1"))
    command = ["bench", "run", str(folder / "ok.toml"), "--jobs", "1", "--store", str(folder / "good.sqlite")]
    assert CliRunner().invoke(app, command).exit_code == 0
    with closing(sqlite3.connect(folder / "good.sqlite")) as db:
        db.execute("PRAGMA journal_mode = DELETE")  # all of it in one file
    good = (folder / "good.sqlite").read_bytes()
    (folder / "junk.sqlite").write_bytes(b"junk" * 3000)
    (folder / "damaged.sqlite").write_bytes(good[:4096] + bytes(range(256)) * ((len(good) - 4096) // 256))
    (folder / "short.sqlite").write_bytes(good[:5000])
    (folder / "empty.sqlite").write_bytes(b"")
    for name, script in {
        "foreign": "CREATE TABLE rows (a, b)",
        "earlier": "PRAGMA user_version = 1",
        "later": "PRAGMA user_version = 7",
    }.items():
        with closing(sqlite3.connect(folder / f"{name}.sqlite")) as db:
            db.execute(script)
    return folder


@pytest.fixture
def call(folder, monkeypatch):
    """Call a command in the folder; return its code and the complaint, which is one line or a usage message."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(write, "charts_of", lambda board: [])

    def invoke(*arguments):
        result = CliRunner().invoke(app, list(arguments))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        if result.stderr.startswith("Error: "):
            assert result.stderr.count("\n") == 1
        else:
            assert "Usage: " in result.output, result.output
        return result.exit_code, result.stderr.removeprefix("Error: ")

    return invoke


def listing(folder):
    """All files with their content, but for what SQLite keeps beside a database, and empty stores."""
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.name: path.read_bytes() for path in files if not path.name.endswith(("-wal", "-shm"))}


@pytest.mark.parametrize(("arguments", "code", "complaint"), COMMANDS)
def test_commands(call, folder, as_everywhere, arguments, code, complaint):
    if "/proc/" in arguments and sys.platform != "linux":
        pytest.skip("/proc is of Linux")
    before = listing(folder)
    found = call(*arguments.split())
    assert found[0] == code, found
    said, complaint = as_everywhere(found[1], complaint)
    assert complaint in said
    after = listing(folder)
    new = {"bench.sqlite", "empty.sqlite"}  # a store is made before it is known that there is nothing to put into it
    assert {name: content for name, content in after.items() if name not in new} == {
        name: content for name, content in before.items() if name not in new
    }


@pytest.mark.parametrize(("old", "new", "complaint"), PLANS + NAMES)
def test_plans(call, tmp_path, folder, old, new, complaint):
    assert PLAN.count(old) >= 1
    (tmp_path / "bad.toml").write_text(PLAN.replace(old, new, 1))
    for module in MODULES:
        (tmp_path / f"{module}_m.py").symlink_to(folder / f"{module}_m.py")
    code, said = call("bench", "run", str(tmp_path / "bad.toml"), "--store", str(tmp_path / "s.sqlite"), "--jobs", "1")
    assert code == 2
    assert complaint in said
    read_only = call("bench", "status", str(tmp_path / "bad.toml"), "--store", "none.sqlite")
    assert read_only[0] == 2
    assert ("there are no rows yet" if (old, new, complaint) in NAMES else complaint) in read_only[1]


@pytest.mark.parametrize("source", SOURCES)
def test_data(call, tmp_path, folder, source):
    plan = PLAN.replace("options = { grid = [3, 3] }\n", "")
    (tmp_path / "bad.toml").write_text(plan.replace("decidewise.data:make_shortest_path", f"sources_m:{source}"))
    (tmp_path / "sources_m.py").symlink_to(folder / "sources_m.py")
    code, said = call("bench", "run", str(tmp_path / "bad.toml"), "--store", str(tmp_path / "s.sqlite"), "--jobs", "1")
    assert code == SOURCES[source][0]
    assert SOURCES[source][1] in said


def test_a_terminal_without_the_letters(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "größe [bold].toml").write_text(PLAN)
    command = ["bench", "status", "größe [bold].toml", "--store", "good.sqlite"]
    result = CliRunner(charset="ascii").invoke(app, command)
    assert result.exit_code == 0, result.exc_info
    assert "gr??e [bold]" in result.stdout


def test_a_folder_that_is_gone(folder, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    result = CliRunner().invoke(app, ["bench", "run", str(folder / "ok.toml"), "--jobs", "1"])
    assert (result.exit_code, result.stderr) == (2, "Error: out: No such file or directory.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_is_full(folder):
    code = "from decidewise.app.cli.app import app; app()"
    command = [sys.executable, "-c", code, "bench", "status", "ok.toml", "--store", "good.sqlite"]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=folder, check=False)
    assert (result.returncode, result.stderr) == (2, "Error: No space left on device.\n")
