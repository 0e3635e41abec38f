"""Time one step of each loss that solves against its solves, and the labels of LODL.

Run: `python speed/losses.py`. Targets: the value and the gradient of 2,000 rows of the 5×5 grid take at most twice the
processor time of the solves they consist of; labels of LODL with 10^6 solves in under 3 s. A solve of this grid takes
0.3 µs, so that products, and the noise of losses that draw some, weigh as much; losses that miss the target show "NO".
"""

from time import process_time

import numpy as np

from bench import Bench, Measured, parser
from decidewise.data import make_shortest_path
from decidewise.losses import as_loss
from decidewise.problems import Ball, CountedProblem

ONE_BATCH = ("spo+", "spo-relax", "dbb", "nid", "pg", "pg-dca", "pg-adaptive", "dpo", "pfy", "imle", "sfge", "implicit")
N, ROUNDS = 2_000, 5


def seconds(function):
    start = process_time()
    function()
    return process_time() - start


class Replayed(CountedProblem):
    """A problem that remembers the batches it has solved, to solve them again."""

    def __init__(self, problem):
        super().__init__(problem)
        self.batches = []

    def _call(self, method, costs):
        self.batches.append((method, costs))
        return super()._call(method, costs)

    def replay(self):
        """Solve all batches again, uncounted."""
        for method, costs in self.batches:
            getattr(self.problem, method)(costs)


def step(name, data):
    """Return the processor seconds of one evaluation and of its solves alone, the least of several rounds."""
    ball = name == "implicit"
    problem = Replayed(Ball(data.costs.shape[1]) if ball else data.problem)
    loss, rng = as_loss(name), np.random.default_rng(0)
    target = loss.prepare(problem, data.costs, X=data.X)
    prediction = data.mean_costs
    problem.batches.clear()
    loss.value_and_grad(prediction, target, rng)
    solves, whole = [], []
    for _ in range(ROUNDS):  # in turn, so that a busy moment of the machine hits both
        solves.append(seconds(problem.replay))
        kept = list(problem.batches)
        whole.append(seconds(lambda: loss.value_and_grad(prediction, target, rng)))
        problem.batches[:] = kept
    return min(whole), min(solves)


def main(arguments):
    data = make_shortest_path(N, degree=4, seed=0)
    with Bench(__file__, "One step of a loss", arguments.quick, rounds=ROUNDS) as bench:
        bench.group = f"One step on {N:,} rows of the 5×5 grid (implicit: on the ball)"
        for name in ONE_BATCH:
            sides = (Measured(seconds, "processor", ROUNDS) for seconds in step(name, data))
            bench.claim(name, *sides, peer="its solves", at_most=2, same="a part of the step")
        few = data[:N]
        labels = seconds(lambda: as_loss("lodl", n_samples=500).prepare(few.problem, few.costs))
        bench.claim("lodl, labels of 10^6 solves", Measured(labels, "processor"), at_most=3)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
