"""Solve a batch in several processes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from joblib import effective_n_jobs

from decidewise.kit.checks import FloatArray, as_integer
from decidewise.kit.errors import SolverError
from decidewise.kit.spread import n_elsewhere, spread_calls
from decidewise.problems.contract import Problem, check_rows
from decidewise.problems.views import View


class ParallelProblem(View):
    """Solve the rows of a large batch in several workers.

    This pays if a row takes a millisecond or more, as in integer and conic programs. Starting the workers takes about a
    second, once; sending a batch takes some milliseconds. Workers are processes, because most solvers hold Python's
    global lock; `joblib.parallel_config` selects another backend, such as threads, and in a context of
    `decidewise.operate.distributed.workers_at` they are those of a Dask cluster.

    Parameters
    ----------
    problem : Problem
        Its decisions must not depend on earlier calls; so wrap the parallel problem in a cache or a counter, not the
        other way round.
    n_jobs : int
        The number of workers, or -1 for one per core.
    rows_per_job : int
        The smallest number of rows for a worker. A batch with fewer than twice as many is solved without workers.

    Examples
    --------
    >>> import numpy as np
    >>> from decidewise.problems import ParallelProblem, TopK
    >>> problem = ParallelProblem(TopK(4, 2), n_jobs=2)
    >>> problem.solve([0.1, 0.9, 0.5, 0.2])
    array([0., 1., 1., 0.])
    """

    def __init__(self, problem: Problem, n_jobs: int = -1, *, rows_per_job: int = 8) -> None:
        super().__init__(problem)
        if problem.keeps_state:
            name = type(problem).__name__
            raise ValueError(f"{name} keeps state, which workers would lose. Write {name}(ParallelProblem(...)).")
        self.n_jobs = as_integer(n_jobs, name="n_jobs", minimum=-1)
        if n_jobs == 0:
            raise ValueError("n_jobs must be the number of workers, or -1 for one per core; got n_jobs=0.")
        self.rows_per_job = as_integer(rows_per_job, name="rows_per_job")

    def _call(self, method: str, costs: FloatArray) -> FloatArray:
        """Cut the batch into equal blocks, one per worker, and join the decisions in order."""
        check_rows(self, len(costs))
        n_blocks = min(n_elsewhere() or effective_n_jobs(self.n_jobs), len(costs) // self.rows_per_job)
        if n_blocks < 2:
            return super()._call(method, costs)
        bounds = [len(costs) * block // n_blocks for block in range(n_blocks + 1)]
        tasks = [(self.problem.take(slice(start, stop)), costs[start:stop], start) for start, stop in pairwise(bounds)]
        # Arrays that are mapped as read-only files would have kernels compiled again.
        return np.concatenate(list(spread_calls(_solve_block, method, tasks, n_jobs=n_blocks, by_copy=True)))


def _solve_block(method: str, problem: Problem, costs: FloatArray, start: int) -> FloatArray:
    try:
        decisions: FloatArray = getattr(problem, method)(costs)
        return decisions
    except SolverError as error:
        raise error.at(start + error.row) from error
