"""Rank items by their scores: label ranking, over the permutahedron.

Ties: of items with equal scores, the one with the lower index gets the lower position.
"""

from __future__ import annotations

import itertools

import numpy as np

from decidewise.kit.batches import in_parts
from decidewise.kit.checks import FloatArray, as_integer
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.solvers import Polyhedron

#: The permutahedron of this many items has 1,022 rows besides its equation; they double with each further item.
MOST_LISTED = 10


class Ranking(Problem):
    """Give `n` items the positions 1 to `n`, one each: by default the larger the score, the lower the position.

    The costs are the scores `s`, and a decision has the position of each item: the one that minimises `s·w` over all
    permutations of 1 to `n`. By the rearrangement inequality it sorts the items, the largest score first. With
    `sense="max"` the smallest score comes first. `is_integer` is false because every vertex of `polyhedron` is a
    permutation.

    Parameters
    ----------
    n : int
        The number of items.
    sense : {"min", "max"}

    Attributes
    ----------
    n_costs : int
        `n`, one per item.
    B_S : float
        The norm of every decision, `sqrt(n (n + 1) (2n + 1) / 6)`.

    References
    ----------
    Blondel, Teboul, Berthet and Djolonga, "Fast differentiable sorting and ranking", ICML 2020.

    Examples
    --------
    >>> from decidewise.problems import Ranking
    >>> Ranking(4).solve([[0.1, 0.9, 0.5, 0.2], [1.0, 3.0, 1.0, 1.0]])
    array([[4., 1., 2., 3.],
           [2., 1., 3., 4.]])
    """

    faces = "flat"

    def __init__(self, n: int, *, sense: Sense = "min") -> None:
        super().__init__(sense=sense)
        self.n = self.n_costs = as_n_costs(as_integer(n, name="n"))
        self.B_S = float(np.linalg.norm(np.arange(1.0, self.n_costs + 1)))

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the positions of each row, 1 for the largest score; ties go to the lower index."""
        positions = np.arange(1.0, self.n_costs + 1)

        def rank(rows: FloatArray, decisions: FloatArray) -> None:
            order = np.argsort(-rows, axis=1, kind="stable")
            np.put_along_axis(decisions, order, positions[np.newaxis], axis=1)

        return in_parts(rank, costs)

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The permutahedron: all positions sum to `n (n + 1) / 2`, and any `k` of them to at least `k (k + 1) / 2`.

        None for more than ten items, since it has a row for each subset of them.
        """
        n = self.n_costs
        if n > MOST_LISTED:
            return None
        subsets = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
        sizes = subsets.sum(axis=1)
        proper = (sizes > 1) & (sizes < n)  # single items have bounds instead
        return Polyhedron.within(
            np.ones(n),
            np.full(n, float(n)),
            ub=(-subsets[proper], -sizes[proper] * (sizes[proper] + 1) / 2),
            eq=(np.ones((1, n)), [n * (n + 1) / 2]),
        )

    @property
    def missing(self) -> dict[str, str]:
        """Why there is no polyhedron, where there is none."""
        too_many = self.n_costs > MOST_LISTED
        return {"polyhedron": f"with more than {MOST_LISTED} items it has too many rows"} if too_many else {}
