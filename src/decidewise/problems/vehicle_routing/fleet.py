"""The vehicles that serve customers, and the constraints that keep them from subtours and from too large loads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.vehicle_routing.routes import ROOM
from decidewise.solvers.program import Program

#: By how much a point must break a constraint for it to be added.
BROKEN = 1e-4


@dataclass(frozen=True)
class Fleet:
    """The vehicles that serve customers 1 to n from a depot, node 0.

    Parameters
    ----------
    demands : ndarray of shape (n,)
    capacity : float
    n_vehicles : int
        How many may leave.
    alone : bool
        Whether a route may serve one customer; its edge then counts twice.
    """

    demands: FloatArray
    capacity: float
    n_vehicles: int
    alone: bool = False

    @cached_property
    def ends(self) -> IntArray:
        """The two nodes of each edge: (2, m)."""
        return np.array(np.triu_indices(len(self.demands) + 1, 1))

    def needed(self, sets: BoolArray) -> FloatArray:
        """Return how many vehicles the demand of each set of customers (r, n) needs at least."""
        return np.maximum(1.0, np.ceil(sets @ self.demands / (self.capacity * ROOM) - 1e-9))

    @property
    def program(self) -> Program:
        """Two edges at each customer, and two for each vehicle at the depot; the last column is their number."""
        n, m = len(self.demands), self.ends.shape[1]
        edges = csr_array((np.ones(2 * m), (self.ends.ravel(), np.tile(np.arange(m), 2))))
        vehicles = csr_array(-2.0 * np.eye(n + 1)[:, :1])
        sides = np.append(0.0, np.full(n, 2.0))
        least, at_depot = self.needed(np.ones((1, n), np.bool_)), self.ends[0] == 0
        return Program(
            A=csc_array(hstack([edges, vehicles], format="csc")),
            row_lower=sides,
            row_upper=sides,
            lower=np.append(np.zeros(m), least),
            upper=np.append(1.0 + at_depot * self.alone, self.n_vehicles),
        )

    def least(self, costs: FloatArray) -> float:
        """Return a bound on what routes cost: half of the cheapest edges that each node can have.

        >>> Fleet(np.zeros(3), 1.0, 1).least(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))  # of a tour through four nodes
        11.0
        """
        square = self.matrix(costs)
        np.fill_diagonal(square, np.inf)
        edges = np.sort(square, axis=1)[:, :-1]
        if self.alone:
            edges = edges.repeat(2, axis=1)
        at_depot = edges[0].cumsum()[1 : 2 * self.n_vehicles : 2]
        return float(at_depot.min() + edges[1:, :2].sum()) / 2

    def cuts(self, sets: BoolArray) -> tuple[csr_array, FloatArray]:
        """Return the constraints `A w <= b` of sets of customers (r, n) on edges and the number of vehicles.

        Where a set has most customers, the edges among all other nodes are counted instead, since they are fewer.
        """
        n, sizes = len(self.demands), sets.sum(axis=1)
        is_large = 2 * sizes > n
        inside = np.column_stack([is_large, sets ^ is_large[:, np.newaxis]])
        edges = [np.empty(0, np.int64)]
        for nodes in map(np.flatnonzero, inside):
            a, b = nodes[np.array(np.triu_indices(len(nodes), 1))]
            edges.append(a * n - a * (a + 1) // 2 + b - 1)  # the place of the edge from a to b
        starts, places = np.cumsum([len(own) for own in edges]), np.concatenate(edges)
        rows = csr_array((np.ones(len(places)), places, starts), shape=(len(sets), self.ends.shape[1]))
        vehicles = csr_array(-1.0 * is_large[:, np.newaxis])
        return csr_array(hstack([rows, vehicles])), np.where(is_large, n - sizes, sizes) - self.needed(sets)

    def broken(self, used: FloatArray) -> BoolArray:
        """Return sets of customers (r, n) whose constraints a point (m,) breaks; all are kept if none of whole numbers.

        >>> fleet = Fleet(np.ones(4), 3.0, 2)
        >>> fleet.broken(np.array([1.0, 0, 0, 1, 1, 0, 0, 1, 0, 1]))  # 0-1-2-3-4-0, one route for all
        array([[ True,  True,  True,  True]])
        """
        x = self.matrix(used)[1:, 1:].copy()
        sets = np.zeros(x.shape, np.bool_)
        found = _grow(x, self.demands, self.capacity * ROOM, sets)
        distinct: BoolArray = np.unique(sets[found], axis=0)
        return distinct

    def matrix(self, edges: FloatArray) -> FloatArray:
        """Return values of edges (m,) as a symmetric matrix with one row per node."""
        square = np.zeros((len(self.demands) + 1, len(self.demands) + 1))
        square[*self.ends] = square[*self.ends[::-1]] = edges
        return square


@kernel
def _grow(x: FloatArray, demands: FloatArray, capacity: float, sets: BoolArray) -> BoolArray:
    """Add to each customer those with most edges to the set, one by one; set the sets that break their constraint most.

    Return which customers start one. In whole numbers a component without the depot, or a whole route, comes first.
    """
    n = len(demands)
    found, order = np.zeros(n, np.bool_), np.empty(n, np.int64)
    for start in range(n):
        edges = x[start].copy()
        edges[start] = -np.inf
        order[0] = start
        inside, load, worst, size = 0.0, demands[start], BROKEN, 0
        for k in range(1, n):
            j = edges.argmax()
            inside += edges[j]
            load += demands[j]
            order[k] = j
            edges += x[j]
            edges[j] = -np.inf
            broken = inside - (k + 1) + max(1.0, np.ceil(load / capacity - 1e-9))
            if broken > worst:
                worst, size = broken, k + 1
        for k in range(size):
            sets[start, order[k]] = True
        found[start] = size > 0
    return found
