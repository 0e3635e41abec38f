"""Flow of least cost through a network with supplies, demands and capacities; transportation is a special case.

It is a linear program, and solved as one: see `decidewise.solvers.highs`. Walks between known vertices take two
fifths to a seventh of the time of shortest augmenting paths, but four times as long if supplies differ by row.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.errors import InfeasibleError
from decidewise.problems.by_row import as_amounts, check_not_negative, spread
from decidewise.problems.contract import Problem, Sense
from decidewise.problems.linear_program.region import PolyhedralProblem
from decidewise.solvers import Polyhedron
from decidewise.solvers.highs import Solver


class MinCostFlow(PolyhedralProblem):
    """Send goods through a network from the nodes that supply them to those that need them.

    Each edge has a cost per unit. A decision has the flow on each edge, from 0 to its capacity; what leaves a node is
    what enters it plus its supply. With whole supplies and capacities, all flows are whole. Costs may be negative.

    Ties: as of `LinearProgram`, the vertex with the least `r·w`, where `r` are fixed random numbers between 1 and 2: so
    no flow goes around in a circle for nothing. Tolerances are those of `LinearProgram`, too.

    Parameters
    ----------
    tails, heads : array-like of int, of shape (n_costs,)
        Edge `k` goes from node `tails[k]` to node `heads[k]`.
    supply : array-like of shape (n_nodes,) or (n_rows, n_nodes)
        What each node supplies; negative for what it needs. The sum is zero. It is the same for all rows of costs, or
        has one row per sample.
    capacity : float or array-like of shape (n_costs,) or (n_rows, n_costs), optional
        The largest flow on each edge; by default the total supply, since no flow without cycles needs more.
    sense : {"min", "max"}

    Attributes
    ----------
    n_costs : int
        One per edge.
    n_rows : int or None
        The number of rows, if supply or capacity differ by row; then both have one row per sample.
    B_S : float
        A bound on the norm of decisions, that of the capacities.

    Examples
    --------
    >>> from decidewise.problems import MinCostFlow
    >>> flow = MinCostFlow([0, 0, 1], [1, 2, 2], supply=[3.0, 0.0, -3.0], capacity=2.0)
    >>> flow.solve([[1.0, 5.0, 1.0], [1.0, 1.0, 1.0]])
    array([[2., 1., 2.],
           [1., 2., 1.]])
    >>> by_day = MinCostFlow([0, 0, 1], [1, 2, 2], supply=[[3.0, 0.0, -3.0], [0.0, 1.0, -1.0]], capacity=2.0)
    >>> by_day.solve([[1.0, 5.0, 1.0], [1.0, 5.0, 1.0]])
    array([[2., 1., 2.],
           [0., 0., 1.]])
    """

    solution = Problem.solution

    def __init__(self, tails: Any, heads: Any, supply: Any, *, capacity: Any = None, sense: Sense = "min") -> None:
        supply = as_amounts(supply, name="supply")
        total = np.where(supply > 0.0, supply, 0.0).sum(axis=-1)
        unbalanced = np.flatnonzero(np.abs(supply.sum(axis=-1)) > 1e-9 * total)
        if len(unbalanced):
            where = f"that of row {unbalanced[0]}" if supply.ndim == 2 else "it"
            raise ValueError(
                "supply must sum to zero, with needs as negative numbers; "
                f"{where} sums to {np.ravel(supply.sum(axis=-1))[unbalanced[0]]:g}. Add a "
                "node that takes, or gives, the rest."
            )
        self.tails, self.heads = (
            _as_ends(nodes, name, supply.shape[-1]) for nodes, name in ((tails, "tails"), (heads, "heads"))
        )
        if len(self.tails) != len(self.heads):
            raise ValueError(
                f"tails has {len(self.tails)} nodes and heads {len(self.heads)}; pass one of each for every edge."
            )
        super().__init__(len(self.tails), sense=sense)
        if capacity is None:
            capacity = np.repeat(np.expand_dims(total, -1), self.n_costs, axis=-1)
        capacity = as_amounts(np.full(self.n_costs, capacity) if np.ndim(capacity) == 0 else capacity, name="capacity")
        if capacity.shape[-1] != self.n_costs:
            raise ValueError(
                f"capacity must be a number, or have one entry for each of the {self.n_costs} edges, by row one such "
                f"row per sample; got capacity.shape={capacity.shape}."
            )
        check_not_negative(capacity, name="capacity", owner="edge")
        _, (self.supply, self.capacity) = spread(supply=(supply, 1), capacity=(capacity, 1))
        balance = self._net_outflow(), self.supply
        self._set_region(Polyhedron.within(np.zeros(self.n_costs), self.capacity, eq=balance), self._known)
        self._solver = Solver(self._program(), by_row=self.n_rows is not None)
        self._check_not_empty()
        self.B_S = float(np.linalg.norm(self.capacity, axis=-1).max())

    @classmethod
    def transportation(cls, supply: Any, demand: Any, *, capacity: Any = None, sense: Sense = "min") -> Self:
        """Build the transportation problem: from each of `m` plants to each of `n` customers.

        Cost and flow `i * n + j` belong to plant `i` and customer `j`.

        Parameters
        ----------
        supply : array-like of shape (m,) or (n_rows, m)
            What each plant makes.
        demand : array-like of shape (n,) or (n_rows, n)
            What each customer needs; both have the same sum.
        capacity : float or array-like of shape (m * n,) or (n_rows, m * n), optional
        sense : {"min", "max"}

        Examples
        --------
        >>> from decidewise.problems import MinCostFlow
        >>> MinCostFlow.transportation([2.0, 3.0], [4.0, 1.0]).solve([1.0, 1.0, 2.0, 1.0])
        array([2., 0., 2., 1.])
        """
        supply, demand = as_amounts(supply, name="supply"), as_amounts(demand, name="demand")
        for name, amounts in (("supply", supply), ("demand", demand)):
            check_not_negative(amounts, name=name, owner="entry")
        m, n = supply.shape[-1], demand.shape[-1]
        plants, customers = np.divmod(np.arange(m * n), n)
        _, (supply, demand) = spread(supply=(supply, 1), demand=(demand, 1))
        net = np.concatenate([supply, -demand], axis=-1)
        return cls(plants, m + customers, net, capacity=capacity, sense=sense)

    def take(self, rows: Any) -> Self:
        """Return the problem of some rows, with their supplies and capacities."""
        part = super().take(rows)
        if part is not self:
            part.supply, part.capacity = self.supply[rows], self.capacity[rows]
        return part

    def _minimize_variables(self, objective: FloatArray) -> FloatArray:
        flows = self._solver.minimize(objective, self._bounds)
        # Every vertex is whole where all numbers are: what is left of a fraction is rounding.
        is_whole = _is_whole(self.supply) & _is_whole(self.capacity)
        return np.where(np.expand_dims(is_whole, -1), np.rint(flows), flows) if is_whole.any() else flows

    def _check_not_empty(self) -> None:
        """Raise unless there is a flow."""
        try:
            self.minimize(np.zeros((self.n_rows or 1, self.n_costs)))
        except InfeasibleError as error:
            where = "" if self.n_rows is None else f"row {error.row}: "
            raise ValueError(
                f"{where}the capacities do not let all supplies reach the nodes that need them; raise some."
            ) from error

    def _net_outflow(self) -> csr_array:
        """Return what leaves each node minus what enters it, as a matrix of shape (n_nodes, n_costs)."""
        edges, ends = np.tile(np.arange(self.n_costs), 2), np.concatenate([self.tails, self.heads])
        signs = np.repeat([1.0, -1.0], self.n_costs)
        return csr_array((signs, (ends, edges)), shape=(self.supply.shape[-1], self.n_costs))


def _is_whole(amounts: FloatArray) -> BoolArray:
    """Return whether all amounts of a row are whole."""
    return np.asarray((amounts == np.rint(amounts)).all(axis=-1))


def _as_ends(values: Any, name: str, n_nodes: int) -> IntArray:
    """Return the node of each edge, checked."""
    nodes = np.asarray(values)
    if nodes.ndim != 1 or len(nodes) == 0 or nodes.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a list of node numbers, one for each edge; got shape {nodes.shape} and {nodes.dtype}."
        )
    outside = np.flatnonzero((nodes < 0) | (nodes >= n_nodes))
    if len(outside):
        raise ValueError(
            f"{name} must be nodes from 0 to {n_nodes - 1}, those that have a supply; edge {outside[0]} has "
            f"{nodes[outside[0]]}."
        )
    return nodes.astype(np.int64)
