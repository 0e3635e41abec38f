"""Match the nodes of two sides in pairs, each at most once: bipartite matching.

The matching is an assignment of a square matrix, found by the kernel of `Assignment`. Where a node may stay alone, each
has a partner of its own for that, at no cost.

Ties: left node 0 gets the lowest right node that it has in any optimal matching, and stays alone if it has none; then
left node 1, and so on. A pair that gains nothing is not matched, unless `complete` demands it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from decidewise.kit.batches import in_parts
from decidewise.kit.checks import FloatArray, IntArray, as_flag, as_integer
from decidewise.problems.assignment import assign
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.problems.rounding import safe_unit
from decidewise.solvers import Polyhedron

#: The most matrix entries to solve together: with few edges, matrices are much larger than rows of costs.
MOST_ENTRIES = 2**20


class Matching(Problem):
    """Match `left` with `right` nodes in pairs, no node twice: by default the pairs of the largest total value.

    Each possible pair, an edge, has a cost; by default all pairs are possible, and edge `i * right + j` belongs to left
    node `i` and right node `j`. A decision has a 1 for each edge that is matched. `is_integer` is false because every
    vertex of `polyhedron` is a matching.

    Parameters
    ----------
    left, right : int
        The numbers of nodes on the two sides.
    edges : array-like of int, of shape (n_costs, 2), optional
        The left and the right node of each possible pair, no pair twice.
    complete : bool
        Whether all nodes of the smaller side must be matched (all nodes, if both are equal). If not,
        any number of pairs is allowed, none included.
    sense : {"max", "min"}

    Attributes
    ----------
    n_costs : int
        One per possible pair: `left · right` without `edges`.
    edges : ndarray of shape (n_costs, 2)
    B_S : float
        The largest norm of a decision, `sqrt(min(left, right))` where all pairs are possible.

    Examples
    --------
    >>> from decidewise.problems import Matching
    >>> Matching(2, 3).solve([5.0, 4.0, 0.0, 4.0, -1.0, -1.0])  # pairs (0, 1) and (1, 0)
    array([0., 1., 0., 1., 0., 0.])
    >>> Matching(2, 3, edges=[[0, 0], [1, 0], [1, 2]]).solve([[5.0, 4.0, 2.0], [5.0, 9.0, 2.0], [5.0, 9.0, -2.0]])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [0., 1., 0.]])
    """

    def __init__(
        self, left: int, right: int, *, edges: Any = None, complete: bool = False, sense: Sense = "max"
    ) -> None:
        super().__init__(sense=sense)
        self.left, self.right = as_integer(left, name="left"), as_integer(right, name="right")
        self.complete = as_flag(complete, name="complete")
        if edges is None:
            as_n_costs(self.left * self.right)
            self.edges = np.argwhere(np.ones((self.left, self.right), np.bool_))
        else:
            self.edges = _as_edges(edges, self.left, self.right)
        self.n_costs = len(self.edges)
        possible = csr_array((np.ones(self.n_costs), self.edges.T), shape=(self.left, self.right))
        most = int((maximum_bipartite_matching(possible) >= 0).sum())
        if self.complete and most < min(self.left, self.right):
            raise ValueError(
                f"no matching is complete: with these edges at most {most} pairs can be matched at once, and the "
                f"smaller side has {min(self.left, self.right)} nodes. Add edges, or pass complete=False."
            )
        self.B_S = float(np.sqrt(most))

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a cheapest matching for each row; ties go to the lowest partner of the first node."""
        # Rows or columns of zeros fill up the square of a complete matching. Otherwise a left node can stay alone in a
        # column of its own, and a right node in a row.
        n = max(self.left, self.right) if self.complete else self.left + self.right
        n_together = max(1, MOST_ENTRIES // n**2)

        def solve(rows: FloatArray, decisions: FloatArray) -> None:
            for start in range(0, len(rows), n_together):
                part = slice(start, start + n_together)
                decisions[part] = self._match(rows[part], n)

        return in_parts(solve, costs)

    def _match(self, costs: FloatArray, n: int) -> FloatArray:
        """Return the matchings as assignments of `n` by `n` matrices."""
        largest = np.abs(costs).max(axis=1)
        units = np.array([safe_unit(size) for size in largest])
        costs, largest = costs * units[:, None], np.where(largest > 0.0, largest * units, 1.0)[:, None]
        left, right = self.edges.T
        if self.complete:
            barred = 4.0 * n * largest  # more than all other pairs together
        else:
            barred = largest  # staying alone costs nothing, so any positive cost will do
            costs = np.where(costs < 0.0, costs, barred)
        square = np.zeros((len(costs), n, n))
        square[:, : self.left, : self.right] = barred[:, :, None]
        square[:, left, right] = costs
        assigned = np.zeros_like(square)
        assign(square, assigned)
        return assigned[:, left, right]

    @property
    def polyhedron(self) -> Polyhedron:
        """Each node has at most one pair; with `complete`, each node of the smaller side has one."""
        sizes = np.repeat([self.left, self.right], [self.left, self.right])  # of the side of each node
        nodes = np.concatenate([self.edges[:, 0], self.left + self.edges[:, 1]])
        pairs = csr_array(
            (np.ones(len(nodes)), (nodes, np.tile(np.arange(self.n_costs), 2))), (len(sizes), self.n_costs)
        )
        must = self.complete & (sizes == sizes.min())
        may_be, must_be = (pairs[~must], np.ones((~must).sum())), (pairs[must], np.ones(must.sum()))
        return Polyhedron.within(np.zeros(self.n_costs), np.ones(self.n_costs), ub=may_be, eq=must_be)


def _as_edges(values: Any, left: int, right: int) -> IntArray:
    """Return the pairs of nodes, checked."""
    try:
        edges = np.asarray(values)
    except ValueError as reason:
        raise ValueError(f"edges must be a list of pairs, a left and a right node each; {reason}") from reason
    if edges.ndim != 2 or edges.shape[1] != 2 or len(edges) == 0:
        raise ValueError(f"edges must be a list of pairs, a left and a right node each; got edges.shape={edges.shape}.")
    if edges.dtype.kind not in "iu":
        raise ValueError(f"edges must be integers, the numbers of nodes; got edges.dtype={edges.dtype}.")
    for side, (name, n) in enumerate((("left", left), ("right", right))):
        outside = np.flatnonzero((edges[:, side] < 0) | (edges[:, side] >= n))
        if len(outside):
            raise ValueError(
                f"edge {outside[0]} has the {name} node {edges[outside[0], side]}; {name} nodes are 0 to {n - 1}."
            )
    edges = edges.astype(np.int64)
    _, first, counts = np.unique(edges, axis=0, return_index=True, return_counts=True)
    if counts.max() > 1:
        twice = int(first[counts.argmax()])
        raise ValueError(f"edge {twice}, the pair {tuple(edges[twice].tolist())}, is there twice; pass it once.")
    return edges
