"""Capacitated vehicle routing: routes of sets of customers and a choice among them, or cuts where too many sets fit."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, IntArray, as_flag, as_integer, as_number, as_vector
from decidewise.kit.gaps import some_rows
from decidewise.kit.scaling import unit_largest
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.problems.huge_costs import minimize_capped
from decidewise.problems.vehicle_routing.cuts import routes_with_bound
from decidewise.problems.vehicle_routing.fleet import Fleet
from decidewise.problems.vehicle_routing.routes import ROOM, best_choices, cheapest_ways, sets_that_fit, smaller_sets
from decidewise.solvers import Polyhedron

#: The largest number of tied choices of routes to compare.
MAX_CHOICES = 20_000
#: Costs are tied if they differ by less than this times the number of nodes, in units of the largest cost.
TIE = 1e-12


class VehicleRouting(Problem):
    """Serve every customer once by routes that start and end at a depot, node 0, with limited loads.

    Costs and decisions have one entry for each pair of nodes, in the order (0, 1), (0, 2), …, (n-2, n-1), as in
    `TravellingSalesman`. A decision is 1 at the edges of its routes. A route serves two customers or more, as in PyEPO,
    so that no edge is used twice, unless `round_trips` are allowed. Costs may be negative.

    The answer is exact: the cheapest route of every set of customers that fits into one vehicle by dynamic programming,
    then the best choice of sets, each customer in one, by linear programming and a search (see `routes.py`). 20
    customers in vehicles for five or six take a fraction of a second, 30 in vehicles for five a few seconds. If more
    than 500,000 sets fit, or a choice is hard, HiGHS solves the row, with constraints against subtours and full
    vehicles (see `cuts.py`). For 40 customers it has good routes in seconds, but seldom proves within a minute that
    they are the best: set a `time_limit` and `on_limit="best"`.

    Ties: among the best decisions the lexicographically largest is returned; what counts as a tie, and how exact the
    answer is where edges are forbidden or demanded by huge costs, is as in `TravellingSalesman`. HiGHS returns the
    routes that it finds first. A load may exceed the capacity by a fraction of 1e-9, since decimal numbers do not add
    up exactly.

    `polyhedron` has only the constraints on the number of edges at each node.

    Parameters
    ----------
    demands : array-like of shape (n_nodes - 1,)
        What each customer needs, not negative.
    capacity : float
        The largest load of a vehicle.
    n_vehicles : int
        The largest number of routes.
    round_trips : bool
        Whether a route may serve one customer; a decision is 2 at its edge.
    sense : {"min", "max"}
    time_limit, gap, on_limit, on_error
        As of `Problem`, for the rows that HiGHS solves. Without a `time_limit` such a row may take a minute.

    Attributes
    ----------
    n_costs : int
        `n_nodes (n_nodes - 1) / 2`, one per pair of nodes, the depot among them.
    ends : ndarray of shape (2, n_costs)
        The two nodes of each edge.
    B_S : float
        A bound on the norm of decisions, `sqrt(n_nodes - 1 + n_vehicles)` without round trips.

    Raises
    ------
    SolverError
        By `solve`, if a row reaches the time limit; with `on_limit="best"` it has the best routes found so far.

    Examples
    --------
    Two vehicles for four customers; the edges (1, 2) and (3, 4) are cheap:

    >>> from decidewise.problems import VehicleRouting
    >>> problem = VehicleRouting([1.0, 1.0, 1.0, 1.0], capacity=2.0, n_vehicles=2)
    >>> problem.solve([3.0, 3.0, 3.0, 3.0, 1.0, 2.0, 2.0, 2.0, 2.0, 1.0])
    array([1., 1., 1., 1., 1., 0., 0., 0., 0., 1.])
    """

    is_integer = True

    def __init__(
        self,
        demands: Any,
        capacity: float,
        n_vehicles: int,
        *,
        round_trips: bool = False,
        sense: Sense = "min",
        time_limit: float | None = None,
        gap: float = 0.0,
        on_limit: Literal["raise", "best"] = "raise",
        on_error: Literal["raise", "nan"] = "raise",
    ) -> None:
        super().__init__(sense=sense, time_limit=time_limit, gap=gap, on_limit=on_limit, on_error=on_error)
        self.demands = as_vector(demands, name="demands")
        n = len(self.demands)
        if n < 2:
            raise ValueError(f"demands must be those of 2 customers or more; got {n}.")
        self.capacity = as_number(capacity, name="capacity", above=0)
        if not (self.demands.min() >= 0.0 and self.demands.max() <= self.capacity):
            customer = int(np.argmax((self.demands < 0.0) | (self.demands > self.capacity)))
            raise ValueError(
                f"demands must lie between 0 and the capacity, {self.capacity:g}; customer {customer} has "
                f"{self.demands[customer]:g}."
            )
        self.n_vehicles = as_integer(n_vehicles, name="n_vehicles")
        self.round_trips = as_flag(round_trips, name="round_trips")
        self.ends = np.array(np.triu_indices(n + 1, 1))
        self.n_costs = as_n_costs(self.ends.shape[1])
        n_routes = min(self.n_vehicles, n if self.round_trips else n // 2)
        self.B_S = float(np.sqrt(n + n_routes * (3 if self.round_trips else 1)))
        self._fleet = Fleet(self.demands, self.capacity, n_routes, self.round_trips)

        masks = sets_that_fit(self.demands, self.capacity)
        self._is_listed = masks is not None
        if masks is None:
            cannot = self.demands.sum() > self.n_vehicles * self.capacity * ROOM
        else:
            cannot = not self._list_routes(masks)
        if cannot:
            raise ValueError(
                f"{self.n_vehicles} vehicles of capacity {self.capacity:g} cannot serve all customers"
                f"{' on routes of two or more' * (not self.round_trips)}. Allow more vehicles, or a larger capacity."
            )

    def _list_routes(self, masks: IntArray) -> bool:
        """List the routes; return whether some of them serve all customers."""
        n = len(self.demands)
        self._masks = masks
        self._smaller = smaller_sets(masks, n)
        members = (masks[:, None] >> np.arange(n)) & 1
        self._routes = np.flatnonzero(members.sum(axis=1) >= 2 - self.round_trips)
        self._members = members[self._routes].astype(np.float64)
        # Any choice will do here, and one with full vehicles is easy to find.
        room = 1.0 - self._members @ self.demands / self.capacity
        choices = self._choices(room, 0.0, 1) if len(room) else ()
        return choices is None or len(choices) > 0

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the cheapest routes for each row."""
        # Nothing is used twice: the way back from a round trip is an edge of its own, and a vehicle that stays counts
        # as an edge without cost, so that all decisions have the same number of edges.
        n, m = len(self.demands), self.n_costs
        back = costs[:, : n * self.round_trips]
        stays = np.zeros((len(costs), self.n_vehicles))
        decisions = minimize_capped(self._minimize, np.hstack([costs, back, stays]), n + self.n_vehicles)
        decisions[:, : back.shape[1]] += decisions[:, m : m + back.shape[1]]
        return decisions[:, :m]

    def _minimize(self, costs: FloatArray) -> FloatArray:
        n, m = len(self.demands), self.n_costs
        routes, left = np.empty((len(costs), m)), list[int]()
        for row, scaled in enumerate(unit_largest(costs[:, :m])):
            check_time()
            found = self._minimize_row(scaled) if self._is_listed else None
            if found is None:
                left.append(row)
            else:
                routes[row] = found
        if left:
            with some_rows(left, len(costs)):
                routes[left] = routes_with_bound(self, self._fleet, costs[left, :m])
        n_moving = routes[:, :n].sum(axis=1, keepdims=True) / 2
        back = routes[:, : n * self.round_trips] > 1
        return np.hstack([np.minimum(routes, 1.0), back, np.arange(self.n_vehicles) >= n_moving])

    def _minimize_row(self, costs: FloatArray) -> FloatArray | None:
        """Return the first of the cheapest routes, or None if that takes too long."""
        n, tolerance = len(self.demands), TIE * (len(self.demands) + 1)
        matrix = np.full((n + 1, n + 1), np.inf)
        matrix[*self.ends] = matrix[*self.ends[::-1]] = costs
        ways = np.empty(self._smaller.shape)
        cheapest_ways(matrix, self._smaller, ways)
        totals = ways + matrix[0, 1:]
        choices = self._choices(totals[self._routes].min(axis=1), tolerance, MAX_CHOICES)
        if choices is None:
            return None

        # A decision as a number with two binary digits per edge, the first edge first: larger is earlier in ties.
        digit = [[0] * (n + 1) for _ in range(n + 1)]
        for edge, (a, b) in enumerate(self.ends.T.tolist()):
            digit[a][b] = digit[b][a] = 1 << 2 * (self.n_costs - 1 - edge)

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
        return np.array([best >> 2 * (self.n_costs - 1 - edge) & 3 for edge in range(self.n_costs)], dtype=np.float64)

    def _choices(self, costs: FloatArray, tolerance: float, max_choices: int) -> Any:
        masks = self._masks[self._routes]
        return best_choices(costs, masks, self._members, self._fleet.n_vehicles, tolerance, max_choices)

    @property
    def polyhedron(self) -> Polyhedron:
        """Two edges at each customer, and at the depot two for each vehicle at most: a relaxation."""
        edges = np.tile(np.arange(self.n_costs), 2)
        degrees = csr_array((np.ones(2 * self.n_costs), (self.ends.ravel(), edges)))
        depot, customers = (degrees[:1], [2.0 * self.n_vehicles]), (degrees[1:], np.full(len(self.demands), 2.0))
        upper = 1.0 + (self.ends[0] == 0) * self.round_trips
        return Polyhedron.within(np.zeros(self.n_costs), upper, ub=depot, eq=customers)
