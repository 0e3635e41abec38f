"""Wrappers that solve the same problem another way: with a cache of decisions, a counter, or several processes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from time import perf_counter

import numpy as np
from joblib import effective_n_jobs

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, as_integer, as_number
from decidewise.kit.errors import SolveLimitReached, at_rows
from decidewise.kit.gaps import NotedGaps, note_gaps, noted_gaps
from decidewise.kit.machine import n_elsewhere, spread_calls
from decidewise.problems.contract import Problem, check_rows
from decidewise.problems.views import InUnit, InVariables, Lifted, View


class CachedProblem(View):
    """Solve each row with probability `solve_ratio`; otherwise return the best decision of a growing pool.

    A decision from the pool is feasible but may not be optimal. While the pool is empty, every row is solved.

    Unlike other problems this one keeps state: every call draws from `rng`, and every decision found by solving is
    added to the pool. The same calls from the same seed return the same decisions. Train with it, but evaluate with the
    problem inside: a cache can make regrets negative, which gives an `OptimalityWarning`.

    Parameters
    ----------
    problem : Problem
        Its region must be the same for every row: a decision of the pool may not be feasible for another row.
    solve_ratio : float
        The probability, from 0 to 1, that a row is solved. With 1 the decisions are those of the problem inside.
    rng : numpy.random.Generator or int
        The source of the random choice of rows, or its seed.

    References
    ----------
    Mulamba, Mandi, Diligenti, Lombardi, Bucarey & Guns, "Contrastive Losses and Solution Caching for
    Predict-and-Optimize", IJCAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from decidewise.problems import CachedProblem, TopK
    >>> problem = CachedProblem(TopK(3, 1), solve_ratio=0.0, rng=0)
    >>> problem.solve([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    array([[1., 0., 0.],
           [0., 1., 0.]])
    >>> problem.solve([1.0, 2.0, 3.0])  # the third item would be better, but it is not in the pool
    array([0., 1., 0.])
    """

    keeps_state = True

    def __init__(self, problem: Problem, solve_ratio: float, rng: np.random.Generator | int) -> None:
        super().__init__(problem)
        if problem.n_rows is not None:
            raise ValueError(
                f"{type(problem).__name__} differs by row, so a decision of one row may not be feasible, or cost the "
                "same, in another. Use it without a cache."
            )
        self.solve_ratio = as_number(solve_ratio, name="solve_ratio", at_least=0, at_most=1)
        if not isinstance(rng, np.random.Generator):
            seed = as_integer(rng, name="rng, where it is not a numpy.random.Generator,", minimum=0)
            rng = np.random.default_rng(seed)
        self._rng = rng
        self._known: set[bytes] = set()
        self._pool = np.empty((0, problem.lifted.n_costs))

    @property
    def pool(self) -> FloatArray:
        """The distinct decisions known so far, in the order they were found: (m, n_costs), read-only.

        Decisions of a problem with known costs have one more entry, the known part `b·w`.
        """
        return self._pool

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Solve the rows drawn, then choose from the pool for the others; ties go to the decision found first."""
        if not self.has_known:
            return self._choose(self.problem.minimize, costs)
        return self.minimize_lifted(np.column_stack([costs, np.ones(len(costs))]))[:, :-1]

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Do the same for lifted costs, which have the same pool."""
        return self._choose(lambda rows: self._call("minimize_lifted", rows), costs)

    @property
    def lifted(self) -> Problem:
        """The lifted view, with the same pool."""
        return Lifted(self) if self.has_known else self

    def _seen_in_variables(self, inside: InVariables) -> Problem:
        return inside  # of which the pool knows nothing

    def in_unit(self, unit: float) -> Problem:
        """Return the problem in another unit, with the same pool."""
        return InUnit(self, unit)

    def _choose(self, minimize: Callable[[FloatArray], FloatArray], costs: FloatArray) -> FloatArray:
        drawn = self._rng.random(len(costs)) < self.solve_ratio
        solved = np.flatnonzero(drawn | (len(self._pool) == 0))
        decisions = np.empty_like(costs)
        gaps, stopped = np.full(len(costs), np.inf), np.zeros(len(costs), dtype=bool)  # a pool proves nothing
        if len(solved):
            with at_rows(solved), noted_gaps() as noted:
                decisions[solved] = minimize(costs[solved])
            self._remember(decisions[solved])
            gaps[solved], stopped[solved] = noted.by_row(len(solved))
        if len(solved) < len(costs):
            decisions[~drawn] = self._pool[np.argmin(costs[~drawn] @ self._pool.T, axis=1)]
        note_gaps(gaps, stopped)
        return decisions

    def _remember(self, decisions: FloatArray) -> None:
        new = {key: row for row in decisions if (key := row.tobytes()) not in self._known}
        if new:
            self._known.update(new)
            self._pool = np.vstack([self._pool, *new.values()])
            self._pool.flags.writeable = False


class CountedProblem(View):
    """Count the rows solved by a problem, and the seconds that takes.

    With a cache, `CachedProblem(CountedProblem(problem), ...)` counts the rows solved, and
    `CountedProblem(CachedProblem(problem, ...))` counts all rows.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    n_solves : int
        The number of rows solved so far, including relaxations and batches that failed.
    seconds : float
        The time spent on solving them.
    limit : float
        The largest `n_solves`, infinite unless set. A batch that would exceed it is not solved: it raises
        `SolveLimitReached`. So does one after the deadline of a time limit, with `TimeLimitReached`.

    Examples
    --------
    >>> import numpy as np
    >>> from decidewise.problems import CountedProblem, TopK
    >>> problem = CountedProblem(TopK(4, 2))
    >>> decisions = problem.solve(np.eye(4))
    >>> problem.n_solves, problem.seconds > 0
    (4, True)
    """

    keeps_state = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.n_solves = 0
        self.seconds = 0.0
        self.limit = np.inf

    def check_limit(self, n_solves: int) -> None:
        """Raise `SolveLimitReached` unless this many rows can still be solved."""
        if self.n_solves + n_solves > self.limit:
            raise SolveLimitReached(f"{n_solves} rows more than {self.n_solves} exceed the limit of {self.limit:g}")

    def _call(self, method: str, costs: FloatArray) -> FloatArray:
        return self.counted(getattr(self.problem, method), costs)

    def counted(self, minimize: Callable[[FloatArray], FloatArray], costs: FloatArray) -> FloatArray:
        """Count the rows of a batch and solve them."""
        check_time()  # a user's problem need not look at the clock
        self.check_limit(len(costs))
        self.n_solves += len(costs)
        start = perf_counter()
        try:
            return minimize(costs)
        finally:
            self.seconds += perf_counter() - start

    def _around(self, problem: Problem) -> Problem:
        return _CountedPart(self, problem)


class _CountedPart(View):
    """Some rows of a counted problem, or its lifted view: what it solves counts there."""

    def __init__(self, owner: CountedProblem, problem: Problem) -> None:
        super().__init__(problem)
        self.owner, self.sense, self.keeps_state = owner, owner.sense, True

    def _call(self, method: str, costs: FloatArray) -> FloatArray:
        return self.owner.counted(getattr(self.problem, method), costs)


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
        decisions = []
        for block, noted in spread_calls(_solve_block, method, tasks, n_jobs=n_blocks, by_copy=True):
            decisions.append(block)
            noted.pass_on(len(block))
        return np.concatenate(decisions)


def _solve_block(method: str, problem: Problem, costs: FloatArray, start: int) -> tuple[FloatArray, NotedGaps]:
    with at_rows(range(start, start + len(costs))), noted_gaps() as noted:
        return getattr(problem, method)(costs), noted
