import os
import subprocess
import sys
import types

import pytest
from typer.testing import CliRunner

import decidewise
from decidewise.__main__ import main
from decidewise.app.cli.app import app


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(option):
    result = CliRunner().invoke(app, [option])
    assert result.exit_code == 0
    assert result.stdout.strip() == f"decidewise {decidewise.__version__}"


@pytest.mark.parametrize("arguments", [["paper"], ["paper", "run", "quick", "--trials", "1"], ["bench", "--help"]])
def test_without_the_bench_its_commands_say_what_to_install(arguments):
    script = """
import importlib.metadata, sys
importlib.metadata.entry_points = lambda **_: []
from decidewise.__main__ import main
main()
"""
    result = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"Error: `decidewise {arguments[0]}` is part of decidewise-bench: `pip install ./bench` in a checkout of "
        "decidewise.\n"
    )


def test_demo_is_a_comparison_of_the_example(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    assert result.stdout.count("┏") == 1
    assert "Next: decidewise fit " in result.stdout
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["compare.html", "example"]


def test_the_help_groups_commands_and_names_no_types_of_python():
    panels = ["Decide on tables", "Models and files", "Learn and check", "Evidence"]
    shown = CliRunner().invoke(app, ["-h"]).stdout
    assert [panel for panel in panels if panel in shown] == panels
    for arguments in (["-h"], *([name, "-h"] for name in ("compare", "fit", "decide", "problems", "serve", "paper"))):
        shown = CliRunner().invoke(app, arguments).stdout
        assert "--help" in shown
        assert not [word for word in ("<bool>", "<str>", "<int", "<float", "<path>") if word in shown], arguments


@pytest.mark.skipif(sys.platform == "win32", reason="another kind of pipe")
@pytest.mark.parametrize("arguments", [["problems"], ["-h"]])
def test_a_reader_that_goes_away_is_no_error(arguments):
    command = [sys.executable, "-m", "decidewise", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        complaint = process.stderr.read()
    assert (process.returncode, complaint) == (0, "")


def test_ctrl_c_while_modules_are_imported(monkeypatch, capsys):
    class Importing(types.ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "decidewise.app.cli.app", Importing("decidewise.app.cli.app"))
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "Error: stopped.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill would end the process")
def test_ctrl_c_when_a_command_is_done_and_waits_for_its_workers():
    script = """
import os, signal, sys, threading, time
from decidewise.__main__ import main

def work():
    while threading.main_thread().is_alive():  # until the interpreter shuts down
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)

threading.Thread(target=work).start()
sys.argv[1:] = ["--version"]
main()
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("decidewise ")


@pytest.mark.skipif(os.name == "nt", reason="closes a stream as a POSIX shell does")
def test_a_closed_output_is_no_error():
    command = f'"{sys.executable}" -m decidewise problems'
    ended = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
