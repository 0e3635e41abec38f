"""The contract of a problem: a feasible region `S`, and exact solutions of `min (or max) c·w over w in S`, in batch.

A new problem is one file with one class: set `n_costs`, write `minimize` and, if the region has one, `polyhedron`.
`decidewise.testing.check_problem` checks that a problem keeps this contract.

>>> import numpy as np
>>> class Interval(Problem):
...     '''Choose one number between -1 and 1.'''
...
...     n_costs = 1
...
...     def minimize(self, costs):
...         return np.where(costs > 0, -1.0, 1.0)  # a tie goes to the upper end
>>> Interval().solve([[2.0], [-0.5]])
array([[-1.],
       [ 1.]])
>>> Interval(sense="max").solve([2.0])
array([1.])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from decidewise.checks import FloatArray, all_finite, as_array, as_choice, as_matrix, shown
from decidewise.errors import SolverError
from decidewise.polyhedra import Polyhedron

Sense = Literal["min", "max"]
#: The largest number of costs of a problem: a single row of so many takes almost a gigabyte.
MAX_COSTS = 10**8


def _checked(minimize: Callable[[Any, FloatArray], FloatArray]) -> Callable[[Any, FloatArray], FloatArray]:
    """Return `minimize` with a check of its costs, because bad ones could crash a solver, and of its decisions."""
    returned = f"what {minimize.__name__} returns"

    @wraps(minimize)
    def checked(self: Any, costs: FloatArray) -> FloatArray:
        costs = as_matrix(costs, n_columns=self.n_costs, owner=type(self).__name__)
        decisions = as_array(minimize(self, costs), name=returned)
        if decisions.shape != costs.shape:
            raise ValueError(
                f"{type(self).__name__}.{minimize.__name__} must return one decision for each row of costs, of shape "
                f"{costs.shape}; it returned shape {decisions.shape}."
            )
        if not all_finite(decisions):
            row = int(np.flatnonzero(~np.isfinite(decisions).all(axis=1))[0])
            raise SolverError(f"{type(self).__name__} returned {decisions[row]}, which is not finite.", row=row)
        return decisions

    return checked


class Problem(ABC):
    """A linear objective over a fixed, bounded feasible region.

    Subclasses set `n_costs` and write `minimize`; this class does the rest, and checks the costs and the decisions of
    every call of `minimize`. A problem can be pickled and, unless it sets `keeps_state`, no call changes it. It is
    deterministic: a documented rule breaks ties and depends only on the set of optimal decisions, so that
    `solve(a * c) == solve(c)` for every `a > 0` and a batch equals a loop.

    Parameters
    ----------
    sense : {"min", "max"}
        Whether `solve` minimises or maximises; `minimize` always minimises.
    """

    #: The number of costs in a row, and of entries in a decision.
    n_costs: int
    #: Whether decisions are integers; then `polyhedron` is a relaxation, whose vertices may be fractional.
    is_integer: bool = False
    #: Whether solving changes the object, as with a cache or a counter, so that a copy in another process would differ.
    keeps_state: bool = False
    #: Whether `minimize` checks that costs are finite; if not, `solve` does.
    _checks_costs: ClassVar[bool] = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for method in ("minimize", "minimize_relaxation"):
            if method in vars(cls):
                setattr(cls, method, _checked(vars(cls)[method]))

    def __init__(self, *, sense: Sense = "min") -> None:
        self.sense: Sense = as_choice(sense, name="sense", choices=("min", "max"))

    def __repr__(self) -> str:
        # A user's class may lack either attribute; the error message that says so shows the object.
        n_costs, sense = getattr(self, "n_costs", None), getattr(self, "sense", None)
        return f"{type(self).__name__}({n_costs=}, {sense=})"

    def solve(self, costs: Any) -> FloatArray:
        """Return an optimal decision for every row of costs.

        Parameters
        ----------
        costs : array-like of shape (n, n_costs) or (n_costs,)

        Returns
        -------
        decisions : ndarray of the same shape
        """
        costs = as_array(costs, name="costs")
        vector = costs.ndim == 1
        batch = as_matrix(
            costs[np.newaxis] if vector else costs,
            n_columns=self.n_costs,
            owner=type(self).__name__,
            finite=self.sense == "max" or not self._checks_costs,  # errors show the caller's costs, not minus them
        )
        decisions = self.minimize(-batch if self.sense == "max" else batch)
        return decisions[0] if vector else decisions

    @abstractmethod
    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a minimiser of `costs[i]·w` for each row `i`: (n, n_costs) -> (n, n_costs).

        The costs are finite, float64 and C-contiguous, and must not be written to. Decisions that are not finite, or
        not of the shape of the costs, raise an error.
        """

    @_checked
    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return an optimal vertex of the linear relaxation for each row of costs to be minimised: (n, d) -> (n, d).

        By default `minimize` if the problem is not integer, and otherwise HiGHS over `polyhedron`; a subclass may have
        a faster method.
        """
        if not self.is_integer:
            return self.minimize(costs)
        polyhedron = self.polyhedron
        if polyhedron is None:
            raise ValueError(
                f"{type(self).__name__} is an integer problem without a polyhedron, so its relaxation is unknown. "
                "Write its polyhedron or minimize_relaxation, or choose a loss that needs neither, such as SpoPlus."
            )
        from decidewise.polyhedra.highs import relaxed_vertices  # noqa: PLC0415  (the base imports no solver)

        return relaxed_vertices(polyhedron, costs)

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The region as linear constraints and bounds, or None if it is not polyhedral."""
        return None

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return the polyhedron, with further valid constraints that bind at optimal decisions and help to prove them.

        Some relaxations, such as that of the travelling salesman, have too many constraints to list. This method adds
        those that matter for the given costs (to be minimised, whatever the sense) and their decisions, both (n, d).
        """
        return self.polyhedron


def as_problem(problem: Any) -> Problem:
    """Return `problem`, which must be a `Problem` that knows its number of costs and its sense.

    >>> as_problem("shortest path")
    Traceback (most recent call last):
    TypeError: problem must be a decidewise problem, such as ShortestPath(5, 5), or an object of your own class: derive
    it from decidewise.problems.Problem, set n_costs and write minimize; got 'shortest path' of type str.
    """
    if not isinstance(problem, Problem):
        raise TypeError(
            "problem must be a decidewise problem, such as ShortestPath(5, 5), or an object of your own class: derive "
            f"it from decidewise.problems.Problem, set n_costs and write minimize; got {shown(problem)}."
        )
    if not isinstance(getattr(problem, "n_costs", None), Integral):
        raise TypeError(f"{type(problem).__name__} must set n_costs to the number of its costs; got {problem!r}.")
    if getattr(problem, "sense", None) not in ("min", "max"):
        raise TypeError(
            f"{type(problem).__name__} must have the sense 'min' or 'max': call super().__init__(sense=sense) in its "
            f"__init__; got {problem!r}."
        )
    return problem


def as_n_costs(n_costs: int) -> int:
    """Return the number of costs of a new problem; raise if a row of so many would hardly fit into memory."""
    if n_costs > MAX_COSTS:
        raise ValueError(f"a problem can have at most {MAX_COSTS:,} costs; this one would have {n_costs:,} costs.")
    return n_costs
