"""Time what a newcomer waits for: imports, the command's help, and the compilation of each kernel.

Run: `python speed/first_calls.py` (about four minutes). Every figure is the processor time of a new process with an
empty compile cache. Targets: at most 5 s for any one kernel, `import decidewise` under 0.15 s, and
the import of an estimator at most 1.2 times that of scikit-learn's linear models.
"""

import json
import os
import subprocess
import sys
import tempfile
from statistics import median

from rich.progress import track

from benchmark import Bench, Measured, parser

STARTS, COMPILATIONS = 5, 2
HELP = """\
from typer.testing import CliRunner
from decidewise.app.cli.app import app
assert CliRunner().invoke(app, ["--help"]).exit_code == 0"""
FIRST = """\
from decidewise import WiseRegressor
from decidewise.data import make_shortest_path
data = make_shortest_path(100, degree=4, seed=0)
{}"""
IMPORTS = {
    "import decidewise": "import decidewise",
    "scikit-learn's linear models": "from sklearn.linear_model import Ridge",
    "WiseRegressor": "from decidewise import WiseRegressor",
    "decidewise --help": HELP,
    "the first fit": FIRST.format("WiseRegressor().fit(data.X, data.costs)"),
    "the first solve": FIRST.format("data.problem.solve(data.costs)"),
}
IMPORT = """
import time
start = time.process_time()
{statement}
print(time.process_time() - start)
"""
#: Compiles what `decidewise warmup` compiles, and prints the time of each kernel that Python calls.
KERNELS = """
import json, time
from numba.core import event

class Clock(event.Listener):
    def __init__(self):
        self.starts, self.seconds = [], {}
    def on_start(self, what):
        self.starts.append(time.process_time())
    def on_end(self, what):
        start = self.starts.pop()
        if not self.starts:  # a kernel of its own, not one that another kernel calls
            function = what.data["dispatcher"].py_func
            name = function.__module__.removeprefix("decidewise.") + "." + function.__name__
            # Some kernels are compiled for several kinds of arguments: the slowest counts.
            self.seconds[name] = max(time.process_time() - start, self.seconds.get(name, 0.0))

clock = Clock()
event.register("numba:compile", clock)
from decidewise.app.warmup import warm_up
warm_up()
print(json.dumps(clock.seconds))
"""


def run(code):
    """Run the code in a new process with an empty compile cache, and return what it prints last."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "NUMBA_CACHE_DIR": empty}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(arguments):
    warm_up = "none: a new process with an empty compile cache"
    with Bench(__file__, "Start: imports and first calls", arguments.quick, warm_up=warm_up) as bench:
        compare(bench, *((1, 1) if arguments.quick else (STARTS, COMPILATIONS)))


def compare(bench, n_starts, n_compilations):
    runs = {name: IMPORT.format(statement=statement) for name, statement in IMPORTS.items()}
    seconds = {name: [] for name in runs}
    for turn in range(n_starts):
        for name in list(runs) if turn % 2 else reversed(runs):
            seconds[name].append(run(runs[name]))
    kernels = [run(KERNELS) for _ in track(range(n_compilations), "Compiling everything", transient=True)]

    def measured(times):
        return Measured(median(times), "processor", len(times))

    bench.claim("import decidewise", measured(seconds["import decidewise"]), at_most=0.15)
    peer = "scikit-learn's linear models"
    sides = measured(seconds["WiseRegressor"]), measured(seconds[peer])
    bench.claim("import of WiseRegressor", *sides, peer=peer, at_most=1.2)
    bench.claim("decidewise --help", measured(seconds["decidewise --help"]))
    for name in ("the first fit", "the first solve"):
        bench.claim(f"{name}, with the import", measured(seconds[name]))
    compiled = {name: measured([run[name] for run in kernels]) for name in kernels[0]}
    for name, time in sorted(compiled.items(), key=lambda pair: -pair[1].value):
        if time.value >= 1.0:
            bench.claim(f"to compile {name}", time, at_most=5)
    fast = [time for time in compiled.values() if time.value < 1.0]
    slowest = max(fast, key=lambda time: time.value)
    bench.claim(f"to compile the slowest of {len(fast)} other kernels", slowest, at_most=5)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
