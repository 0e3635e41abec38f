"""Feasible regions, one a file, each with its fastest exact solver: `problem.solve(costs) -> decisions`, in batch.

>>> import numpy as np
>>> from decidewise.problems import ShortestPath
>>> problem = ShortestPath(5, 5)
>>> costs = np.random.default_rng(0).uniform(size=(1_000, problem.n_costs))
>>> decisions = problem.solve(costs)
>>> decisions.shape, decisions[0].sum()
((1000, 40), np.float64(8.0))

`Problem` says what a problem is and how to write a new one.
"""

from decidewise.kit.lazy import import_lazily

import_lazily(__name__)
