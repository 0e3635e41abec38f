"""Time what a newcomer waits for: imports, the command's help, and the compilation of each kernel.

Run: `python speed/first_calls.py` (about five minutes). Every figure is the processor time of a new process with an
empty compile cache, the best of three. Targets: at most 5 s for any one kernel, `import decidewise` under 0.15 s, and
the import of an estimator at most 1.2 times that of scikit-learn's linear models.
"""

import json
import os
import subprocess
import sys
import tempfile

from rich.console import Console
from rich.progress import track
from rich.table import Table

REPEATS = 3
IMPORTS = {
    "import decidewise": "import decidewise",
    "scikit-learn's linear models": "from sklearn.linear_model import Ridge",
    "WiseRegressor": "from decidewise import WiseRegressor",
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
            self.seconds[name] = time.process_time() - start

clock = Clock()
event.register("numba:compile", clock)
from decidewise.warmup import warm_up
warm_up()
print(json.dumps(clock.seconds))
"""


def run(code):
    """Run the code in a new process with an empty compile cache, and return what it prints last."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "NUMBA_CACHE_DIR": empty}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    runs = {name: IMPORT.format(statement=statement) for name, statement in IMPORTS.items()}
    seconds = {name: [] for name in runs}
    kernels = []
    for _ in track(range(REPEATS), "Compiling everything", transient=True):
        for name, code in runs.items():
            seconds[name].append(run(code))
        kernels.append(run(KERNELS))
    best = {name: min(times) for name, times in seconds.items()}

    table = Table(title=f"Processor time with an empty compile cache, best of {REPEATS}")
    for heading in ("what", "measured", "target", "met"):
        table.add_column(heading)
    table.add_row("import decidewise", f"{best['import decidewise']:.2f} s", *_verdict(best["import decidewise"], 0.15))
    ratio = best["WiseRegressor"] / best["scikit-learn's linear models"]
    table.add_row("import of WiseRegressor, over scikit-learn's linear models", f"{ratio:.2f}", *_verdict(ratio, 1.2))
    compiled = {name: min(run[name] for run in kernels) for name in kernels[0]}
    for name, time in sorted(compiled.items(), key=lambda pair: -pair[1]):
        if time >= 1.0:
            table.add_row(name, f"{time:.1f} s", *_verdict(time, 5.0))
    fast = [time for time in compiled.values() if time < 1.0]
    table.add_row(f"{len(fast)} other kernels, the slowest", f"{max(fast):.1f} s", *_verdict(max(fast), 5.0))
    Console().print(table)


def _verdict(measured, limit):
    return f"≤ {limit:g}", "yes" if measured <= limit else "NO"


if __name__ == "__main__":
    main()
