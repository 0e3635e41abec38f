"""Capacitated vehicle routing, exactly, by routes of sets of customers and a choice among them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, as_integer, as_number, as_vector
from decidewise.kit.errors import SolverError
from decidewise.kit.scaling import unit_largest
from decidewise.problems.contract import Problem, Sense
from decidewise.problems.huge_costs import minimize_capped
from decidewise.problems.vehicle_routing.routes import best_choices, cheapest_ways, sets_that_fit, smaller_sets
from decidewise.solvers import Polyhedron

#: Customers are bits of an integer of 64 bits.
MAX_CUSTOMERS = 60
#: The largest number of tied choices of routes to compare.
MAX_CHOICES = 20_000
#: Costs are tied if they differ by less than this times the number of nodes, in units of the largest cost.
TIE = 1e-12


class VehicleRouting(Problem):
    """Serve every customer once by routes that start and end at a depot, node 0, with limited loads.

    Costs and decisions have one entry for each pair of nodes, in the order (0, 1), (0, 2), …, (n-2, n-1), as in
    `TravellingSalesman`. A decision is 1 at the edges of its routes. A route serves two customers or more, as in PyEPO,
    so that no edge is used twice. Costs may be negative.

    The answer is exact: the cheapest route of every set of customers that fits into one vehicle by dynamic programming,
    then the best choice of sets, each customer in one, by linear programming and a search (see `routes.py`). 20
    customers in vehicles for five or six take a fraction of a second. The number of sets must be at most 500,000.

    Ties: among the best decisions the lexicographically largest is returned; what counts as a tie, and how exact the
    answer is where edges are forbidden or demanded by huge costs, is as in `TravellingSalesman`.

    `polyhedron` has only the constraints on the number of edges at each node.

    Parameters
    ----------
    demands : array-like of shape (n_nodes - 1,)
        What each customer needs, not negative.
    capacity : float
        The largest load of a vehicle.
    n_vehicles : int
        The largest number of routes.
    sense : {"min", "max"}

    Attributes
    ----------
    n_costs : int
        `n_nodes (n_nodes - 1) / 2`, one per pair of nodes, the depot among them.
    ends : ndarray of shape (2, n_costs)
        The two nodes of each edge.
    B_S : float
        A bound on the norm of decisions, `sqrt(n_nodes - 1 + n_vehicles)`.

    Raises
    ------
    SolverError
        By `solve`, if very many decisions are tied or nearly tied.

    Examples
    --------
    Two vehicles for four customers; the edges (1, 2) and (3, 4) are cheap:

    >>> from decidewise.problems import VehicleRouting
    >>> problem = VehicleRouting([1.0, 1.0, 1.0, 1.0], capacity=2.0, n_vehicles=2)
    >>> problem.solve([3.0, 3.0, 3.0, 3.0, 1.0, 2.0, 2.0, 2.0, 2.0, 1.0])
    array([1., 1., 1., 1., 1., 0., 0., 0., 0., 1.])
    """

    is_integer = True

    def __init__(self, demands: Any, capacity: float, n_vehicles: int, *, sense: Sense = "min") -> None:
        super().__init__(sense=sense)
        self.demands = as_vector(demands, name="demands")
        n = len(self.demands)
        if not 2 <= n <= MAX_CUSTOMERS:
            raise ValueError(f"demands must be those of 2 to {MAX_CUSTOMERS} customers; got {n}.")
        self.capacity = as_number(capacity, name="capacity", above=0)
        if not (self.demands.min() >= 0.0 and self.demands.max() <= self.capacity):
            customer = int(np.argmax((self.demands < 0.0) | (self.demands > self.capacity)))
            raise ValueError(
                f"demands must lie between 0 and the capacity, {self.capacity:g}; customer {customer} has "
                f"{self.demands[customer]:g}."
            )
        self.n_vehicles = as_integer(n_vehicles, name="n_vehicles")
        self.ends = np.array(np.triu_indices(n + 1, 1))
        self.n_costs = self.ends.shape[1]
        self.B_S = float(np.sqrt(n + min(self.n_vehicles, n // 2)))

        self._masks = sets_that_fit(self.demands, self.capacity)
        self._smaller = smaller_sets(self._masks, n)
        members = (self._masks[:, None] >> np.arange(n)) & 1
        self._routes = np.flatnonzero(members.sum(axis=1) >= 2)
        self._members = members[self._routes].astype(np.float64)
        # Any choice will do here, and one with full vehicles is easy to find.
        room = 1.0 - self._members @ self.demands / self.capacity
        choices = self._choices(room, 0.0, 1) if len(room) else ()
        if choices is not None and len(choices) == 0:
            raise ValueError(
                f"{self.n_vehicles} vehicles of capacity {self.capacity:g} cannot serve all customers on routes of two "
                "or more. Allow more vehicles, or a larger capacity."
            )

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the cheapest routes for each row."""
        # A vehicle that stays counts as an edge without cost, so that all decisions have the same number of edges.
        stays = np.zeros((len(costs), self.n_vehicles))
        n_chosen = len(self.demands) + self.n_vehicles
        return minimize_capped(self._minimize, np.hstack([costs, stays]), n_chosen)[:, : self.n_costs]

    def _minimize(self, costs: FloatArray) -> FloatArray:
        decisions = np.zeros_like(costs)
        for row, scaled in enumerate(unit_largest(costs)):
            check_time()
            decision = self._minimize_row(scaled[: self.n_costs], row)
            n_moving = int(decision[: len(self.demands)].sum()) // 2
            decisions[row] = np.concatenate([decision, np.arange(self.n_vehicles) >= n_moving])
        return decisions

    def _minimize_row(self, costs: FloatArray, row: int) -> FloatArray:
        n, tolerance = len(self.demands), TIE * (len(self.demands) + 1)
        matrix = np.full((n + 1, n + 1), np.inf)
        matrix[*self.ends] = matrix[*self.ends[::-1]] = costs
        ways = np.empty(self._smaller.shape)
        cheapest_ways(matrix, self._smaller, ways)
        totals = ways + matrix[0, 1:]
        choices = self._choices(totals[self._routes].min(axis=1), tolerance, MAX_CHOICES)
        if choices is None:
            raise SolverError(
                "no choice of routes was proved to be the cheapest, and the first in the order of ties. A row is hard "
                "if many routes have equal costs; add small random numbers to the costs, or use fewer customers.",
                row=row,
            )

        # A decision as a number with one binary digit per edge, the first edge first: larger is earlier in ties.
        digit = [[0] * (n + 1) for _ in range(n + 1)]
        for edge, (a, b) in enumerate(self.ends.T.tolist()):
            digit[a][b] = digit[b][a] = 1 << (self.n_costs - 1 - edge)

        @cache
        def way(place: int, last: int) -> int:
            """Return the largest number of a cheapest way from the depot through a set to one of its customers."""
            before = int(self._smaller[place, last])
            if before < 0:
                return digit[0][last + 1]
            through = ways[before] + matrix[1:, last + 1]
            tied = np.flatnonzero(through <= ways[place, last] + tolerance)
            return max(way(before, int(i)) + digit[int(i) + 1][last + 1] for i in tied)

        @cache
        def route(place: int) -> int:
            tied = np.flatnonzero(totals[place] <= totals[place].min() + tolerance)
            return max(way(place, int(last)) + digit[0][int(last) + 1] for last in tied)

        best = max(sum(route(int(place)) for place in self._routes[choice[choice >= 0]]) for choice in choices)
        return np.array([best >> (self.n_costs - 1 - edge) & 1 for edge in range(self.n_costs)], dtype=np.float64)

    def _choices(self, costs: FloatArray, tolerance: float, max_choices: int) -> Any:
        n_vehicles = min(self.n_vehicles, len(self.demands) // 2)
        return best_choices(costs, self._masks[self._routes], self._members, n_vehicles, tolerance, max_choices)

    @property
    def polyhedron(self) -> Polyhedron:
        """Two edges at each customer, and at the depot two for each vehicle at most: a relaxation."""
        edges = np.tile(np.arange(self.n_costs), 2)
        degrees = csr_array((np.ones(2 * self.n_costs), (self.ends.ravel(), edges)))
        depot, customers = (degrees[:1], [2.0 * self.n_vehicles]), (degrees[1:], np.full(len(self.demands), 2.0))
        return Polyhedron.within(np.zeros(self.n_costs), np.ones(self.n_costs), ub=depot, eq=customers)
