"""What a problem is: a feasible region `S` and the exact solution of `min (or max) c·w over w in S`, in batch.

A new problem is one file with one class: set `n_costs`, write `minimize`, and, where there is one, `polyhedron`.
`decidewise.testing.check_problem` checks it against everything promised here.

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
#: The most costs a problem may have: a single row of them takes almost a gigabyte.
MAX_COSTS = 10**8


def _checked(minimize: Callable[[Any, FloatArray], FloatArray]) -> Callable[[Any, FloatArray], FloatArray]:
    """Check the costs before a solver sees them, since bad ones could crash it, and the decisions that it returns."""
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
        if self.on_error == "raise" and not all_finite(decisions):
            row = int(np.flatnonzero(~np.isfinite(decisions).all(axis=1))[0])
            raise SolverError(f"{type(self).__name__} returned {decisions[row]}, which is not finite.", row=row)
        return decisions

    return checked


class Problem(ABC):
    """A linear objective over a fixed, bounded feasible region.

    Subclasses set `n_costs` and write `minimize`; everything else is here, including a check of all that `minimize` is
    given and returns, whoever calls it. A problem can be pickled and, unless it says `keeps_state`, is the same before
    and after a call. It is deterministic: ties go to one documented rule that depends only on the set of optimal
    decisions, so that `solve(a * c) == solve(c)` for every `a > 0` and a batch equals a loop.

    Parameters
    ----------
    sense : {"min", "max"}
        Whether `solve` minimises or maximises. It is flipped here, once: `minimize` always minimises.
    """

    #: The number of costs in a row, and of entries in a decision.
    n_costs: int
    #: Whether the decisions are integers, so that `polyhedron` is only a relaxation whose vertices may be fractional.
    is_integer: bool = False
    #: Whether solving changes the object, as it does a cache or a counter: a copy in another process would differ.
    keeps_state: bool = False
    #: Whether a row that cannot be solved is a `SolverError`, or a decision of NaN beside the decisions of all others.
    on_error: Literal["raise", "nan"] = "raise"
    #: Whether `minimize` checks that costs are finite, so that `solve` need not.
    _checks_costs: ClassVar[bool] = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for method in ("minimize", "minimize_relaxation"):
            if method in vars(cls):
                setattr(cls, method, _checked(vars(cls)[method]))

    def __init__(self, *, sense: Sense = "min") -> None:
        self.sense: Sense = as_choice(sense, name="sense", choices=("min", "max"))

    def __repr__(self) -> str:
        # A class of a user's own may have forgotten either, and is shown where it is refused for that.
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
            finite=self.sense == "max" or not self._checks_costs,  # of the costs that came, not of minus them
        )
        decisions = self.minimize(-batch if self.sense == "max" else batch)
        return decisions[0] if vector else decisions

    @abstractmethod
    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a minimiser of `costs[i]·w` for each row: finite, float64, C-contiguous, not to be written to.

        Of the same shape, and finite too: anything else that a subclass returns is an error that says so.
        """

    @_checked
    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return an optimal vertex of the linear relaxation for each row, of costs to be minimised: (n, d) -> (n, d).

        For a problem that is not in integers that is `minimize`; otherwise HiGHS solves over `polyhedron`, unless a
        subclass knows something faster.
        """
        if not self.is_integer:
            return self.minimize(costs)
        polyhedron = self.polyhedron
        if polyhedron is None:
            raise ValueError(
                f"{type(self).__name__} is in integers and has no polyhedron, so its linear relaxation is not known. "
                "Write its polyhedron or minimize_relaxation, or choose a loss that needs neither, such as SpoPlus."
            )
        from decidewise.polyhedra.highs import relaxed_vertices  # noqa: PLC0415  (the base imports no solver)

        return relaxed_vertices(polyhedron, costs)

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The region as linear rows and bounds, or None where it is not polyhedral."""
        return None

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return the polyhedron, with any further valid rows that bind at optimal decisions and help to prove them.

        A relaxation that needs too many rows to list them all, as that of the travelling salesman does, offers here
        those that matter for given costs (of a minimisation, whatever the sense) and their decisions, both (n, d).
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
    """Return the number of costs of a problem about to be made, unless hardly a row of them would fit into memory."""
    if n_costs > MAX_COSTS:
        raise ValueError(f"the problem would have {n_costs:,} costs, and at most {MAX_COSTS:,} are possible.")
    return n_costs
