"""Time the same work with this code and with that of another commit, in turns.

Run: `python speed/against_commit.py [commit [words ...]]`, by default the last commit and all lines. The other code is
checked out beside this one for the time of the run. Both sides are processes of their own that run every line by turns;
the figures are the least processor time of each side. BLAS has one thread: a second one that waits spins, and its
spinning counts as processor time. Target: at most 1.1 times that of the other on every line.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from benchmark import ROOT, Bench, Measured, parser

ROUNDS = 9
#: Runs in a process of either side. It answers each line number on its input with the seconds of that line.
WORK = """
import contextlib, inspect, json, os, sys
from time import process_time
import numpy as np
from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor
from decidewise.data import make_knapsack, make_portfolio, make_shortest_path, make_travelling_salesman
from decidewise.losses import CavePlus, Pfy, SpoPlus
from decidewise.problems import Assignment, Knapsack, ShortestPath, TopK

rng = np.random.default_rng(0)
path, packs, shares, tours = (
    make(1_200, degree=4, seed=42) for make in (make_shortest_path, make_knapsack, make_portfolio, lambda n, **k:
    make_travelling_salesman(200, n_nodes=20, **k))
)
weights = rng.integers(300, 800, size=(2, 60)) / 100
heavy, values = Knapsack(weights, weights.sum(axis=1) / 3), rng.integers(1, 21, size=(200, 60)).astype(float)
grid = ShortestPath(50, 50)
edges = rng.uniform(size=(200, grid.n_costs))
X, Y = rng.standard_normal((100_000, 50)), rng.standard_normal((100_000, 100)) + 5
positive = np.exp(0.3 * X[:1_000, :10] @ rng.normal(size=(10, 190))) * rng.uniform(0.5, 1.5, size=(1_000, 190))
pairs = rng.uniform(size=(200, 400))
protocol = {"protocol": "paper"} if "protocol" in inspect.signature(DecisionRegressor).parameters else {}

def train(data, loss, rate):
    train, _ = data.split(200)
    start = {"init": "mse", "epochs": 100, "batch_size": 32, "learning_rate": rate, "random_state": 0}
    return lambda: DecisionRegressor(train.problem, loss, **protocol, **start).fit(train.X, train.costs)

lines = {
    "shortest path 5×5, 1,200 solves, 20 times": lambda: [path.problem.solve(path.costs) for _ in range(20)],
    "knapsack of 16, 1,200 solves, 5 times": lambda: [packs.problem.solve(packs.costs) for _ in range(5)],
    "knapsack of 60, 200 solves": lambda: heavy.solve(values),
    "portfolio, 1,200 solves, 5 times": lambda: [shares.problem.solve(shares.costs) for _ in range(5)],
    "tours of 20 nodes, 200 solves": lambda: tours.problem.solve(tours.costs),
    "grid of 50×50, 200 solves": lambda: grid.solve(edges),
    "assignment of 20, 200 solves": lambda: Assignment(20).solve(pairs),
    "top 10 of 400, 200 solves": lambda: TopK(400, 10).solve(pairs),
    "WISE, 100,000 × 50, 100 costs": lambda: WiseRegressor().fit(X, Y),
    "gamma, 1,000 × 10, 190 costs": lambda: GeneralizedLinear("gamma").fit(X[:1_000, :10], positive),
    "gamma, 1,000 × 50, 40 costs": lambda: GeneralizedLinear("gamma").fit(X[:1_000], positive[:, :40]),
    "SPO+, shortest path": train(path, SpoPlus(), 5e-3),
    "SPO+, knapsack": train(packs, SpoPlus(), 5e-3),
    "SPO+, portfolio": train(shares, SpoPlus(), 1e-3),
    "PFY, shortest path": train(path, Pfy(n_samples=3), 5e-3),
    "PFY, knapsack": train(packs, Pfy(n_samples=3), 5e-3),
    "PFY, portfolio": train(shares, Pfy(n_samples=3), 1e-3),
    "CaVE+, shortest path": train(path, CavePlus(), 5e-3),
    "CaVE+, knapsack": train(packs, CavePlus(relaxed=False), 5e-3),
}
answers = os.fdopen(os.dup(1), "w", buffering=1)
print(json.dumps(list(lines)), file=answers)
for line in sys.stdin:
    work = list(lines.values())[int(line)]
    with contextlib.redirect_stdout(sys.stderr):
        start = process_time()
        work()
        seconds = process_time() - start
    print(seconds, file=answers)
"""


class Side:
    """A process that runs the lines with the code of one folder."""

    def __init__(self, folder: Path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder / 'src')!r})\n{WORK}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )
        self.lines = self._answer()

    def seconds(self, line: int) -> float:
        """Run one line, and return its processor time."""
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("One of the two sides ended early: is the other commit too old for these lines?")
        return json.loads(answer)


def main(arguments):
    rounds = 1 if arguments.quick else ROUNDS
    title = f"The same work with the code of {arguments.commit}"
    with tempfile.TemporaryDirectory() as folder, Bench(__file__, title, arguments.quick, rounds=rounds) as bench:
        other = Path(folder) / "other"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", other, arguments.commit], cwd=ROOT, check=True)
        try:
            sides = Side(ROOT), Side(other)
            names = dict(enumerate(sides[0].lines))
            words = arguments.words or [""]
            lines = [line for line, name in names.items() if any(word in name for word in words)]
            seconds = np.empty((rounds + 1, len(lines), 2))  # the first round compiles
            for number in track(range(seconds[..., 0].size), "Measuring", console=Console(stderr=True)):
                turn, place = divmod(number, len(lines))
                for side in (0, 1) if turn % 2 else (1, 0):
                    seconds[turn, place, side] = sides[side].seconds(lines[place])
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", other], cwd=ROOT, check=True)
        for line, least in zip(lines, seconds[1:].min(axis=0), strict=True):
            ours, theirs = (Measured(value, "processor", rounds) for value in least)
            bench.claim(names[line], ours, theirs, peer=arguments.commit, at_most=1.1, same="least of all rounds")


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("commit", nargs="?", default="HEAD", help="by default the last commit")
    options.add_argument("words", nargs="*", help="only lines with one of these words")
    main(options.parse_args())
