"""The tests of files, signals, processes and memory start and pass without what only POSIX, or only Linux, has."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
#: Where the tests are that ask the system for something, and the names of those to run; the others are collected.
ROOMS = (
    "kit",
    "model_file",
    "rows",
    "../bench/tests/experiments",
    "problems/readers/test_problem_file.py",
)
CHOSEN = "test_interrupts or test_files or test_doubts or signal_inside or pipe_is or and_pipes or fuzz or midway"


def test_without_posix():
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "pytest", "-p", "without_posix", "-p", "no:xdist", "-q", "-rs", "-k", CHOSEN]
    command += [str(HERE / room) for room in ROOMS]
    environment = os.environ | {"PYTHONPATH": path}
    found = subprocess.run(command, env=environment, cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
    assert re.search(r"\d+ passed, \d+ skipped", found.stdout)
    for reason in ("the alarm of POSIX", "the pipes of POSIX", "the process table of Linux"):
        assert f"needs {reason}" in found.stdout
