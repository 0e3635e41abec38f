"""Choose the best k of n items.

Ties: the item with the lower index is chosen.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from decidewise.checks import FloatArray, as_integer
from decidewise.polyhedra import Polyhedron
from decidewise.problems.base import Problem, Sense, as_n_costs
from decidewise.runtime.batches import in_parts


class TopK(Problem):
    """Choose exactly `k` of `n` items: by default those with the largest values.

    `is_integer` is false because every vertex of `polyhedron` chooses whole items.

    Parameters
    ----------
    n : int
        The number of items.
    k : int
        The number of items to choose, from 1 to `n`.
    sense : {"max", "min"}

    Attributes
    ----------
    n_costs : int
        `n`, one per item.
    B_S : float
        The norm of every decision, `sqrt(k)`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> TopK(4, 2).solve([[0.1, 0.9, 0.5, 0.2], [1.0, 3.0, 1.0, 1.0]])
    array([[0., 1., 1., 0.],
           [1., 1., 0., 0.]])
    """

    def __init__(self, n: int, k: int, *, sense: Sense = "max") -> None:
        super().__init__(sense=sense)
        self.n_costs = as_n_costs(as_integer(n, name="n"))
        self.k = as_integer(k, name="k")
        if self.k > self.n_costs:
            raise ValueError(f"cannot choose k={self.k} of n={self.n_costs} items; k must be at most n.")
        self.B_S = float(np.sqrt(self.k))

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return decisions that choose the `k` smallest costs of each row; ties go to the lower index."""
        return in_parts(self._choose, costs)

    def _choose(self, costs: FloatArray, decisions: FloatArray) -> None:
        last = np.partition(costs, self.k - 1, axis=1)[:, self.k - 1 : self.k]  # the largest cost chosen
        np.less_equal(costs, last, out=decisions)
        too_many = decisions.sum(axis=1) > self.k
        if too_many.any():
            costs, last = costs[too_many], last[too_many]
            tied = costs == last
            room = self.k - (costs < last).sum(axis=1, keepdims=True)
            decisions[too_many] -= tied & (tied.cumsum(axis=1) > room)

    @property
    def polyhedron(self) -> Polyhedron:
        """Vectors with entries between 0 and 1 that sum to `k`."""
        return Polyhedron(
            A_ub=csr_array((0, self.n_costs)),
            b_ub=np.empty(0),
            A_eq=csr_array(np.ones((1, self.n_costs))),
            b_eq=np.array([float(self.k)]),
            lower=np.zeros(self.n_costs),
            upper=np.ones(self.n_costs),
        )
