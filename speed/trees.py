"""Time an SPO tree against the solves that it consists of.

Run: `python speed/trees.py`. Target: a tree of depth 4 on 10,000 rows, 5 features and the 40 costs of the 5×5 grid in
under 30 s of processor time.
"""

import numpy as np

from benchmark import Bench, parser
from decidewise import SpoTreeRegressor
from decidewise.data import make_shortest_path
from decidewise.problems import CountedProblem

N = 10_000


def main(arguments):
    n = N // 10 if arguments.quick else N
    data = make_shortest_path(n, degree=6, seed=0)
    warm_up = "a tree on 200 rows"
    with Bench(__file__, "SPO trees", arguments.quick, rounds=1, warm_up=warm_up) as bench:
        SpoTreeRegressor(data.problem, random_state=0).fit(data.X[:200], data.costs[:200])  # compiles
        problem = CountedProblem(data.problem)
        (fit,) = bench.time(lambda: SpoTreeRegressor(problem, random_state=0).fit(data.X, data.costs), warm=False)
        costs = np.random.default_rng(0).uniform(size=(problem.n_solves, 40))
        (bare,) = bench.time(lambda: data.problem.solve(costs), warm=False)
        name = f"tree of depth 4, {fit.result.nodes_.n_leaves} leaves, n={n:,}, p=5, d=40"
        bench.claim(name, fit, at_most=30)
        solves = f"its {problem.n_solves:,} solves in one batch"
        bench.claim("the same", fit, bare, peer=solves, limit=True, same="a part of the fit")


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
