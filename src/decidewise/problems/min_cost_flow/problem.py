"""Flow of least cost through a network with supplies, demands and capacities; transportation is a special case.

Ties: edge 0 carries the least flow that it carries in any optimal flow; then edge 1, and so on.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from decidewise.checks import FloatArray, as_vector
from decidewise.polyhedra import Polyhedron
from decidewise.problems.base import Problem, Sense, as_n_costs
from decidewise.problems.min_cost_flow.send import send
from decidewise.runtime.batches import in_parts

IntArray = npt.NDArray[np.int64]


class MinCostFlow(Problem):
    """Send goods through a network from the nodes that supply them to those that need them.

    Each edge has a cost per unit. A decision has the flow on each edge, from 0 to its capacity; what leaves a node is
    what enters it plus its supply. With whole supplies and capacities, all flows are whole. Costs may be negative.

    Parameters
    ----------
    tails, heads : array-like of int, of shape (n_costs,)
        Edge `k` goes from node `tails[k]` to node `heads[k]`.
    supply : array-like of shape (n_nodes,)
        What each node supplies; negative for what it needs. The sum is zero.
    capacity : float or array-like of shape (n_costs,), optional
        The largest flow on each edge; by default the total supply, since no flow without cycles needs more.
    sense : {"min", "max"}

    Attributes
    ----------
    n_costs : int
        One per edge.
    B_S : float
        A bound on the norm of decisions, that of the capacities.

    Examples
    --------
    >>> from decidewise.problems import MinCostFlow
    >>> flow = MinCostFlow([0, 0, 1], [1, 2, 2], supply=[3.0, 0.0, -3.0], capacity=2.0)
    >>> flow.solve([[1.0, 5.0, 1.0], [1.0, 1.0, 1.0]])
    array([[2., 1., 2.],
           [1., 2., 1.]])
    """

    def __init__(self, tails: Any, heads: Any, supply: Any, *, capacity: Any = None, sense: Sense = "min") -> None:
        super().__init__(sense=sense)
        self.supply = as_vector(supply, name="supply")
        total = float(self.supply[self.supply > 0.0].sum())
        if abs(self.supply.sum()) > 1e-9 * total:
            raise ValueError(
                f"supply must sum to zero, with needs as negative numbers; it sums to {self.supply.sum():g}. Add a "
                "node that takes, or gives, the rest."
            )
        self.tails, self.heads = (
            _as_ends(nodes, name, len(self.supply)) for nodes, name in ((tails, "tails"), (heads, "heads"))
        )
        if len(self.tails) != len(self.heads):
            raise ValueError(
                f"tails has {len(self.tails)} nodes and heads {len(self.heads)}; pass one of each for every edge."
            )
        self.n_costs = as_n_costs(len(self.tails))
        capacity = total if capacity is None else capacity
        self.capacity = as_vector(
            np.full(self.n_costs, capacity) if np.ndim(capacity) == 0 else capacity,
            name="capacity",
            length=self.n_costs,
        )
        if self.capacity.min() < 0.0:
            edge = int(self.capacity.argmin())
            raise ValueError(f"capacity must not be negative; edge {edge} has {self.capacity[edge]:g}.")
        if send(np.zeros((1, self.n_costs)), np.zeros((1, self.n_costs)), *self._network()) >= 0:
            raise ValueError("the capacities do not let all supplies reach the nodes that need them; raise some.")
        self.B_S = float(np.linalg.norm(self.capacity))

    @classmethod
    def transportation(cls, supply: Any, demand: Any, *, capacity: Any = None, sense: Sense = "min") -> Self:
        """Build the transportation problem: from each of `m` plants to each of `n` customers.

        Cost and flow `i * n + j` belong to plant `i` and customer `j`.

        Parameters
        ----------
        supply : array-like of shape (m,)
            What each plant makes.
        demand : array-like of shape (n,)
            What each customer needs; both have the same sum.
        capacity : float or array-like of shape (m * n,), optional
        sense : {"min", "max"}

        Examples
        --------
        >>> from decidewise.problems import MinCostFlow
        >>> MinCostFlow.transportation([2.0, 3.0], [4.0, 1.0]).solve([1.0, 1.0, 2.0, 1.0])
        array([2., 0., 2., 1.])
        """
        supply, demand = as_vector(supply, name="supply"), as_vector(demand, name="demand")
        for name, amounts in (("supply", supply), ("demand", demand)):
            if amounts.min() < 0.0:
                raise ValueError(f"{name} must not be negative; entry {amounts.argmin()} has {amounts.min():g}.")
        plants, customers = np.divmod(np.arange(len(supply) * len(demand)), len(demand))
        net = np.concatenate([supply, -demand])
        return cls(plants, len(supply) + customers, net, capacity=capacity, sense=sense)

    def _network(self) -> tuple[Any, ...]:
        """Return what the kernel needs: the ends of edges, the edges at each node, supplies and capacities."""
        ends = np.concatenate([self.tails, self.heads])
        order = np.argsort(ends, kind="stable")
        starts = np.searchsorted(ends[order], np.arange(len(self.supply) + 1))
        return self.tails, self.heads, order % self.n_costs, starts, self.supply, self.capacity

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a flow of least cost for each row; ties go to less flow on edges of low numbers."""
        network = self._network()
        return in_parts(lambda rows, decisions: send(rows, decisions, *network), costs)

    @property
    def polyhedron(self) -> Polyhedron:
        """Of each node, what leaves minus what enters is its supply."""
        edges, ends = np.tile(np.arange(self.n_costs), 2), np.concatenate([self.tails, self.heads])
        signs = np.repeat([1.0, -1.0], self.n_costs)
        return Polyhedron(
            A_ub=csr_array((0, self.n_costs)),
            b_ub=np.empty(0),
            A_eq=csr_array((signs, (ends, edges)), shape=(len(self.supply), self.n_costs)),
            b_eq=self.supply,
            lower=np.zeros(self.n_costs),
            upper=self.capacity,
        )


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
