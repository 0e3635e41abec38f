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

from decidewise.polyhedra import Polyhedron
from decidewise.problems.assignment import Assignment
from decidewise.problems.ball import Ball
from decidewise.problems.base import Problem
from decidewise.problems.ellipsoid import Ellipsoid
from decidewise.problems.knapsack import Knapsack
from decidewise.problems.portfolio import Portfolio
from decidewise.problems.readers import from_pyepo
from decidewise.problems.shortest_path import ShortestPath
from decidewise.problems.topk import TopK
from decidewise.problems.travelling_salesman import TravellingSalesman
from decidewise.problems.wrappers import CachedProblem, CountedProblem, ParallelProblem

__all__ = [
    "Assignment",
    "Ball",
    "CachedProblem",
    "CountedProblem",
    "Ellipsoid",
    "Knapsack",
    "ParallelProblem",
    "Polyhedron",
    "Portfolio",
    "Problem",
    "ShortestPath",
    "TopK",
    "TravellingSalesman",
    "from_pyepo",
]
