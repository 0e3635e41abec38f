"""Time an SPO tree against the solves that it consists of.

Run: `python speed/trees.py`. Target: a tree of depth 4 on 10,000 rows, 5 features and the 40 costs of the 5×5 grid in
under 30 s.
"""

from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from decidewise import SpoTreeRegressor
from decidewise.data import make_shortest_path
from decidewise.problems import CountedProblem

N = 10_000


def main():
    data = make_shortest_path(N, degree=6, seed=0)
    SpoTreeRegressor(data.problem, random_state=0).fit(data.X[:200], data.costs[:200])  # compiles
    problem = CountedProblem(data.problem)
    start = process_time()
    tree = SpoTreeRegressor(problem, random_state=0).fit(data.X, data.costs)
    seconds = process_time() - start
    costs = np.random.default_rng(0).uniform(size=(problem.n_solves, 40))
    start = process_time()
    data.problem.solve(costs)
    bare = process_time() - start
    table = Table(title=f"SPO tree of depth 4, n={N:,}, p=5, d=40, processor time")
    for heading in ("what", "measured", "target", "met"):
        table.add_column(heading)
    table.add_row(f"{problem.n_solves:,} solves in one batch", f"{bare:.2f} s", "", "")
    table.add_row(f"fit, {tree.nodes_.n_leaves} leaves", f"{seconds:.2f} s", "< 30 s", "yes" if seconds < 30 else "NO")
    Console().print(table)


if __name__ == "__main__":
    main()
