"""The symmetric travelling salesman: the cheapest tour through all nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.sparse import csr_array, vstack

from decidewise.kit.checks import FloatArray, IntArray, as_integer
from decidewise.kit.scaling import unit_largest
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.problems.hard_rows import search_or_hand_over, steps_before
from decidewise.problems.huge_costs import minimize_capped
from decidewise.problems.travelling_salesman.bound import binding_sets
from decidewise.problems.travelling_salesman.search import cheapest_tours
from decidewise.problems.vehicle_routing.cuts import routes_with_bound
from decidewise.problems.vehicle_routing.fleet import Fleet
from decidewise.solvers import Polyhedron

#: The number of edges that the search visits in about a fifth of a second; a row of 50 nodes takes a hundredth of it.
EDGES = 10**8
#: The search seldom ends with more nodes, and its first tours take long.
MOST_SEARCHED = 150


class TravellingSalesman(Problem):
    """Visit every node once, along undirected edges, and return to the first.

    Costs and decisions have one entry for each pair of nodes, in the order (0, 1), (0, 2), …, (n-2, n-1); a decision is
    1 at the `n` edges of its tour. The answer is exact, by branch and bound on the Held-Karp bound: it takes about
    0.3 ms for 20 nodes and 5 ms for 50. Costs may be negative. A row of more than 150 nodes, or one that takes longer
    than about a second, as with many equal costs, goes to HiGHS with constraints against subtours (see
    `vehicle_routing/cuts.py`), and a tie to the tour that it finds first. This takes some seconds for 200 nodes; more
    nodes seldom have a proof within a minute, but a tour within a few percent of its bound.

    Ties: among the best tours, the lexicographically largest decision is returned: a tour with edge (0, 1) if one of
    the best has it, then with (0, 2) if one of these has it, and so on. A tour is tied with the best one found if their
    costs differ by less than 1e-12 times the number of nodes times the largest cost.

    Edges may be forbidden or demanded by costs of any size, for example 1e15, without an effect on the choice among the
    others: costs separated from the ordinary ones by a gap do not count as the largest cost (see `huge_costs.py`).
    If every tour must use huge costs, and these differ, precision is limited: differences below 1e-8 of the largest
    cost that the best tour uses may be missed.

    `polyhedron` has only the constraints of two edges at each node; `polyhedron_at` adds constraints against subtours.
    (Losses on the linear relaxation, LAVA and CaVE by default, use `polyhedron`.)

    Parameters
    ----------
    n_nodes : int
        At least 3.
    sense : {"min", "max"}
    time_limit, gap, on_limit, on_error
        As of `Problem`, for hard rows. Without a `time_limit` such a row may take a minute.

    Attributes
    ----------
    n_costs : int
        `n_nodes (n_nodes - 1) / 2`, one per pair of nodes.
    ends : ndarray of shape (2, n_costs)
        The two nodes of each edge.
    B_S : float
        The norm of every decision, `sqrt(n_nodes)`.

    Raises
    ------
    SolverError
        By `solve`, if a row reaches the time limit; with `on_limit="best"` it has the best tour found so far.

    Examples
    --------
    First the four corners of a square, where nodes 1 and 2 are opposite; then a row in which all tours are tied:

    >>> from decidewise.problems import TravellingSalesman
    >>> problem = TravellingSalesman(4)
    >>> problem.ends
    array([[0, 0, 0, 1, 1, 2],
           [1, 2, 3, 2, 3, 3]])
    >>> problem.solve([[1.0, 1.0, 1.4, 1.4, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    array([[1., 1., 0., 0., 1., 1.],
           [1., 1., 0., 0., 1., 1.]])
    """

    is_integer = True

    def __init__(
        self,
        n_nodes: int,
        *,
        sense: Sense = "min",
        time_limit: float | None = None,
        gap: float = 0.0,
        on_limit: Literal["raise", "best"] = "raise",
        on_error: Literal["raise", "nan"] = "raise",
    ) -> None:
        super().__init__(sense=sense, time_limit=time_limit, gap=gap, on_limit=on_limit, on_error=on_error)
        self.n_nodes = as_integer(n_nodes, name="n_nodes", minimum=3)
        self.n_costs = as_n_costs(self.n_nodes * (self.n_nodes - 1) // 2)
        self.ends = np.array(np.triu_indices(self.n_nodes, 1))
        self.B_S = float(np.sqrt(self.n_nodes))

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the cheapest tour for each row."""
        return minimize_capped(self._minimize, costs, self.n_nodes)

    def _minimize(self, costs: FloatArray) -> FloatArray:
        def search(rows: FloatArray, trees: IntArray) -> tuple[FloatArray, int]:
            return cheapest_tours(unit_largest(rows), self.n_nodes, trees)

        def hand_over(rows: IntArray) -> FloatArray:
            return routes_with_bound(self, Fleet(np.zeros(self.n_nodes - 1), 1.0, 1), costs[rows])

        if self.n_nodes > MOST_SEARCHED:
            return hand_over(np.arange(len(costs)))
        steps = max(1_000, EDGES // self.n_nodes**2)
        most = steps_before(self, 5 * steps)
        return search_or_hand_over(search, costs, steps=steps, max_steps=most, hand_over=hand_over)

    @property
    def polyhedron(self) -> Polyhedron:
        """Two edges at each node: a relaxation that allows subtours and fractions of edges."""
        edges = np.arange(self.n_costs)
        degrees = csr_array((np.ones(2 * self.n_costs), (self.ends.ravel(), np.tile(edges, 2))))
        both = degrees, np.full(self.n_nodes, 2.0)
        return Polyhedron.within(np.zeros(self.n_costs), np.ones(self.n_costs), eq=both)

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron:
        """Return `polyhedron` with constraints against subtours that bind at the tours, about `n_nodes / 2` per tour.

        A constraint says that a set of nodes has fewer edges inside than nodes. The sets are chosen from the costs.
        They prove nearly every tour optimal that the constraints of all sets would prove optimal.
        """
        sets = np.unique(binding_sets(unit_largest(costs), decisions, self.n_nodes), axis=0)
        inside = csr_array((sets[:, self.ends[0]] & sets[:, self.ends[1]]).astype(np.float64))
        plain = self.polyhedron
        return replace(plain, A_ub=csr_array(vstack([plain.A_ub, inside])), b_ub=sets.sum(axis=1) - 1.0)
