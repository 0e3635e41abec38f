import subprocess
import sys
import types

import pytest
from typer.testing import CliRunner

import decidewise
from decidewise.__main__ import main
from decidewise.app.cli import app
from decidewise.app.demo import run_demo


def test_version():
    result = CliRunner().invoke(app, ["--version"])
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


def test_demo_prints_one_table_and_writes_one_figure(tmp_path, capsys):
    results = run_demo(tmp_path / "new")
    shown = capsys.readouterr().out
    assert shown.count("┏") == 1
    assert "least squares" in shown
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["demo.png"]
    assert (tmp_path / "new" / "demo.png").read_bytes().startswith(b"\x89PNG")
    for result in results:
        assert result.floor < result.regret.low < result.regret.estimate < result.regret.high
    for degree in (4, 8):
        blind, wise = (r.regret.estimate for r in results if r.degree == degree)
        assert wise < blind


def test_ctrl_c_while_modules_are_imported(monkeypatch, capsys):
    class Importing(types.ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "decidewise.app.cli", Importing("decidewise.app.cli"))
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
