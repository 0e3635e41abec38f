"""What a problem is: a feasible region `S` and the exact solution of `min (or max) c·w over w in S`, in batch.

A new problem is one file with one class: set `n_costs`, write `minimize`, and, where there is one, `polyhedron`.

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
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from decidewise.checks import FloatArray, as_matrix

Sense = Literal["min", "max"]


@dataclass(frozen=True)
class Polyhedron:
    """The set `{w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}`, with sparse rows.

    For a problem in integers it is the linear relaxation.
    """

    A_ub: csr_array
    b_ub: FloatArray
    A_eq: csr_array
    b_eq: FloatArray
    lower: FloatArray
    upper: FloatArray


class Problem(ABC):
    """A linear objective over a fixed, bounded feasible region.

    Subclasses set `n_costs` and write `minimize`; everything else is here. A problem keeps no state between calls and
    can be pickled. It is deterministic: ties go to one documented rule that depends only on the set of optimal
    decisions, so that `solve(a * c) == solve(c)` for every `a > 0` and a batch equals a loop.

    Parameters
    ----------
    sense : {"min", "max"}
        Whether `solve` minimises or maximises. It is flipped here, once: `minimize` always minimises.
    """

    n_costs: int
    #: Whether the decisions are integers, so that `polyhedron` is only a relaxation whose vertices may be fractional.
    is_integer: bool = False
    #: The largest Euclidean norm of a decision (the paper's `B_S`), where it is known.
    B_S: float | None = None

    def __init__(self, *, sense: Sense = "min") -> None:
        if sense not in ("min", "max"):
            raise ValueError(f'sense must be "min" or "max"; got {sense!r}.')
        self.sense: Sense = sense

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_costs={self.n_costs}, sense={self.sense!r})"

    def solve(self, costs: Any) -> FloatArray:
        """Return an optimal decision for every row of costs.

        Parameters
        ----------
        costs : array-like of shape (n, n_costs) or (n_costs,)

        Returns
        -------
        decisions : ndarray of the same shape
        """
        vector = np.ndim(costs) == 1
        batch = as_matrix(
            np.reshape(costs, (1, -1)) if vector else costs, n_columns=self.n_costs, owner=type(self).__name__
        )
        decisions = self.minimize(-batch if self.sense == "max" else batch)
        return decisions[0] if vector else decisions

    @abstractmethod
    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a minimiser of `costs[i]·w` for each row: finite, float64, C-contiguous, not to be written to."""

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
