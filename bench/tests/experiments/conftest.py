import os
import subprocess
import sys
from pathlib import Path

import pytest

from decidewise_bench.experiments import Store, cells_of_all, read_plan

TINY = """
trials = 2
epochs = 3
batch_size = 16

[[problems]]
name = "paths"
data = "decidewise.data:make_shortest_path"
options = { grid = [3, 3] }
degrees = [1, 4]
samples = [40]
test_samples = 50
learning_rate = 1e-2
methods = [
  { name = "MSE", loss = "mse" },
  { name = "SPO+", loss = "spo+" },
  { name = "WISE", loss = "wise", mode = "exact" },
]
"""

#: A method that takes its time and notes every fit in a file, so that a test can be quicker and can count.
SLOW_MODULE = """
import os, time
from sklearn.linear_model import LinearRegression

class Slow(LinearRegression):
    def fit(self, X, y):
        time.sleep(0.1)
        with open(os.environ["FITS"], "a") as notes:
            notes.write("fit\\n")
        return super().fit(X, y)

def slow(problem, *, random_state):
    return Slow()
"""
SLOW_METHOD = '{ name = "Slow", model = "slow_method:slow", mode = "slow" },'


class Bench:
    """A folder with a plan, and the cells and the store that belong to it."""

    def __init__(self, folder: Path, text: str) -> None:
        self.plan, self.store_path, self.fits = folder / "tiny.toml", folder / "rows.sqlite", folder / "fits.txt"
        self.plan.write_text(text)

    def cells(self, **options):
        return cells_of_all([read_plan(self.plan)], **options)

    def store(self):
        return Store(self.store_path)

    def start(self, *options):
        """Run the plan from the command line, in a process of its own."""
        code = "from decidewise.app.cli.app import app; app()"
        return subprocess.Popen(
            [sys.executable, "-c", code, "bench", "run", str(self.plan), "--store", str(self.store_path), *options],
            env=os.environ | {"FITS": str(self.fits)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # a group of its own, as in a terminal
        )

    def n_fits(self):
        return len(self.fits.read_text().splitlines()) if self.fits.exists() else 0


@pytest.fixture
def tiny(tmp_path):
    return Bench(tmp_path, TINY)


@pytest.fixture
def slow(tmp_path):
    (tmp_path / "slow_method.py").write_text(SLOW_MODULE)
    text = TINY.replace("trials = 2", "trials = 8").replace('  { name = "SPO+"', f'  {SLOW_METHOD}\n  {{ name = "SPO+"')
    return Bench(tmp_path, text)


@pytest.fixture(autouse=True)
def clean_imports(tmp_path):
    """Forget the modules and paths of a test's own plan."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
