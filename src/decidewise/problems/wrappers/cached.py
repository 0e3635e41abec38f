"""A cache of decisions: solve some rows, and choose among known decisions for the others.

Mulamba, Mandi, Diligenti, Lombardi, Bucarey & Guns, "Contrastive Losses and Solution Caching for
Predict-and-Optimize", IJCAI 2021.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from decidewise.kit.checks import FloatArray, as_integer, as_number
from decidewise.kit.errors import SolverError
from decidewise.problems.contract import Problem
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
        if len(solved):
            try:
                decisions[solved] = minimize(costs[solved])
            except SolverError as error:
                raise error.at(int(solved[error.row])) from error
            self._remember(decisions[solved])
        if len(solved) < len(costs):
            decisions[~drawn] = self._pool[np.argmin(costs[~drawn] @ self._pool.T, axis=1)]
        return decisions

    def _remember(self, decisions: FloatArray) -> None:
        new = {key: row for row in decisions if (key := row.tobytes()) not in self._known}
        if new:
            self._known.update(new)
            self._pool = np.vstack([self._pool, *new.values()])
            self._pool.flags.writeable = False
