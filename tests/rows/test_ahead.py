import subprocess
import sys

LEFT_OPEN = """
import sys, time
from decidewise.rows.ahead import read_ahead

def items():
    yield 1
    time.sleep(0.5)
    print("read", flush=True)
    yield 2

items = read_ahead(items())
next(items)
sys.exit(3)
"""


def test_the_interpreter_waits_for_a_reader_that_nobody_closed():
    """A thread that is inside Arrow when the interpreter ends aborts the process."""
    found = subprocess.run([sys.executable, "-c", LEFT_OPEN], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (3, "read\n"), found.stderr
