"""Damaged and hostile files: refused with one sentence, or read; never a crash, a hang, a write or an import.

`make fuzz` tries many more: the environment variable FUZZ_ROUNDS says how many thousands of each kind.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "2"))


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs the alarm of POSIX")
@pytest.mark.parametrize("kind", ["damaged", "hostile"])
def test_no_file_does_harm(kind, tmp_path):
    script = Path(__file__).with_name("fuzzer.py")
    command = [sys.executable, str(script), kind, str(1000 * ROUNDS), str(tmp_path)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    found = dict(line.split(": ") for line in result.stdout.splitlines())
    assert int(found["refused"]) + int(found["read"]) == 1000 * ROUNDS
    assert int(found["refused"]) > 0
    assert kind == "damaged" or int(found["read"]) > 0  # some changes make another valid model
    assert sorted(path.name for path in tmp_path.iterdir()) == ["changed.dw"]
