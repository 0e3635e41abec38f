"""The shortest path in a directed acyclic graph: a grid, or any list of edges.

The recursion `value(node) = min over its edges (cost + value(head))` runs backwards from the target; one pass forwards
then reads off the path. Both take time linear in the number of edges. Negative costs are allowed, and so is
`sense="max"`, the longest path.

Ties: at every node the path takes the lowest-numbered edge with which an optimal path to the target begins.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from decidewise.checks import FloatArray, as_integer
from decidewise.polyhedra import Polyhedron
from decidewise.problems.base import Problem, Sense, as_n_costs
from decidewise.problems.rounding.ties import EPS, TIE, is_tie, safe_unit
from decidewise.runtime.batches import in_parts
from decidewise.runtime.kernels import kernel

IntArray = npt.NDArray[np.int64]


class ShortestPath(Problem):
    """Walk a grid from its north-west to its south-east node, one step east or south at a time.

    Each edge has a cost. Edges are ordered by rows of the grid: for each row first the edges east,
    `(i, j) -> (i, j + 1)`, then the edges south, `(i, j) -> (i + 1, j)`. A decision has a 1 for every edge on the path
    and a 0 elsewhere. `from_edges` builds the same problem on any directed acyclic graph.

    `is_integer` is false because the flow constraints of `polyhedron` are totally unimodular: all its vertices are
    paths.

    Parameters
    ----------
    rows, columns : int
        The number of nodes in each direction. A grid of 5 by 5 nodes has 40 edges.
    sense : {"min", "max"}

    Attributes
    ----------
    tails, heads : ndarray of shape (n_costs,)
        The nodes that each edge leaves and enters.
    source, target : int
    B_S : float
        The square root of the largest number of edges on a path.

    Examples
    --------
    >>> from decidewise.problems import ShortestPath
    >>> grid = ShortestPath(2, 2)
    >>> grid.tails, grid.heads
    (array([0, 0, 1, 2]), array([1, 2, 3, 3]))
    >>> grid.solve([[1.0, 2.0, 3.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    array([[0., 1., 0., 1.],
           [1., 0., 1., 0.]])
    """

    def __init__(self, rows: int, columns: int, *, sense: Sense = "min") -> None:
        super().__init__(sense=sense)
        rows = as_integer(rows, name="rows")
        columns = as_integer(columns, name="columns")
        if rows * columns == 1:
            raise ValueError("a grid of 1 by 1 nodes has no edges; rows or columns must be at least 2.")
        as_n_costs(rows * (columns - 1) + columns * (rows - 1))
        self._set_graph(*_grid_edges(rows, columns), source=0, target=rows * columns - 1)

    @classmethod
    def from_edges(cls, tails: Any, heads: Any, source: int, target: int, *, sense: Sense = "min") -> Self:
        """Build the problem on a directed acyclic graph, which may have several edges between two nodes.

        Edge `k` goes from node `tails[k]` to node `heads[k]`; cost `k` is the cost of edge `k`. Edges that are on no
        path from the source to the target are allowed and never taken.

        Parameters
        ----------
        tails, heads : array-like of int, of shape (n_costs,)
            Node numbers: any integers from 0, with or without gaps.
        source, target : int
            The nodes where the path starts and ends.
        sense : {"min", "max"}

        Examples
        --------
        >>> from decidewise.problems import ShortestPath
        >>> detour = ShortestPath.from_edges(tails=[0, 0, 7], heads=[7, 9, 9], source=0, target=9)
        >>> detour.solve([[1.0, 3.0, 1.0], [1.0, 3.0, 2.5]])
        array([[1., 0., 1.],
               [0., 1., 0.]])
        """
        problem = cls.__new__(cls)
        Problem.__init__(problem, sense=sense)
        tails, heads = _as_nodes(tails, "tails"), _as_nodes(heads, "heads")
        if len(tails) != len(heads):
            raise ValueError(f"tails has {len(tails)} nodes and heads {len(heads)}; pass one of each for every edge.")
        source = as_integer(source, name="source", minimum=0)
        target = as_integer(target, name="target", minimum=0)
        if source == target:
            raise ValueError(f"source and target are both node {source}; the path between them is empty.")
        problem._set_graph(tails, heads, source, target)
        return problem

    def _set_graph(self, tails: IntArray, heads: IntArray, source: int, target: int) -> None:
        self.tails, self.heads, self.source, self.target = tails, heads, source, target
        self.n_costs = len(tails)

        order = _topological_order(tails, heads)
        if missing := {source, target} - set(order.tolist()):
            raise ValueError(f"node {missing.pop()} is the source or the target, but is not an end of any edge.")
        nodes, position = np.sort(order), np.argsort(order)
        tails, heads, (first, last) = (
            position[np.searchsorted(nodes, ids)] for ids in (tails, heads, [source, target])
        )

        edges = np.argsort(tails, kind="stable")  # by tail in topological order, then by number
        from_source = _most_edges(tails[edges], heads[edges], first, len(nodes))
        to_target = _most_edges(heads[edges[::-1]], tails[edges[::-1]], last, len(nodes))
        if from_source[last] < 0:
            raise ValueError(f"no path leads from source {source} to target {target}; add edges or choose other ends.")
        self._longest = int(from_source[last])
        self.B_S = float(np.sqrt(self._longest))

        # Keep only edges on a path from source to target: a huge cost elsewhere must not enlarge the tie tolerance.
        useful = (from_source >= 0) & (to_target >= 0)
        edges = edges[useful[tails[edges]] & useful[heads[edges]]]
        position = np.cumsum(useful) - 1
        self._edges = edges
        self._heads = position[heads[edges]]
        self._starts = np.searchsorted(position[tails[edges]], np.arange(useful.sum()))

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a shortest path for each row; ties go to the lowest-numbered edge at the first fork."""
        # A value is a sum of up to L costs; its rounding is at most eps L² / 2 of the largest cost. A tie may differ by
        # TIE times 2 L such costs.
        rounding = (4 * EPS * self._longest + 2 * TIE) * self._longest

        graph = self._edges, self._heads, self._starts
        return in_parts(lambda rows, decisions: _shortest_paths(rows, decisions, *graph, rounding), costs)

    @property
    def polyhedron(self) -> Polyhedron:
        """Unit flow from source to target: out minus in is 1 at the source, -1 at the target, 0 elsewhere."""
        nodes, ends = np.unique(np.concatenate([self.tails, self.heads]), return_inverse=True)
        edges = np.arange(self.n_costs)
        signs = np.repeat([1.0, -1.0], self.n_costs)
        return Polyhedron(
            A_ub=csr_array((0, self.n_costs)),
            b_ub=np.empty(0),
            A_eq=csr_array((signs, (ends, np.tile(edges, 2))), shape=(len(nodes), self.n_costs)),
            b_eq=(nodes == self.source) - 1.0 * (nodes == self.target),
            lower=np.zeros(self.n_costs),
            upper=np.ones(self.n_costs),
        )


@kernel
def _shortest_paths(
    costs: FloatArray, decisions: FloatArray, edges: IntArray, heads: IntArray, starts: IntArray, rounding: float
) -> None:
    """Mark the path of each row.

    Nodes are in topological order; node `i` has the edges `edges[starts[i]:starts[i + 1]]`. Values are sums with an
    error of up to `rounding` times the largest cost. If several edges of a node are within that error, values in twice
    the precision decide.
    """
    last = len(starts) - 1
    cost = np.empty(len(edges))
    value = np.empty(len(starts))
    rest = np.empty(len(starts))
    choice = np.empty(len(starts), np.int64)
    terms = np.empty(2 * len(starts))
    value[last] = rest[last] = 0.0
    for row in range(len(costs)):
        largest = 0.0
        for k in range(len(edges)):
            cost[k] = costs[row, edges[k]]
            largest = max(largest, abs(cost[k]))
        unit = safe_unit(largest)
        if unit != 1.0:
            largest *= unit
            for k in range(len(edges)):
                cost[k] *= unit
        for node in range(last - 1, -1, -1):
            best = np.inf
            for k in range(starts[node], starts[node + 1]):
                best = min(best, cost[k] + value[heads[k]])
            value[node] = best
        is_exact = False
        node = np.int64(0)  # type: ignore[assignment]  # the type of heads, so that _first_tied_edge is compiled once
        while node != last:
            within = value[node] + rounding * largest
            chosen = starts[node]
            while cost[chosen] + value[heads[chosen]] > within:
                chosen += 1
            rival = starts[node + 1] - 1
            while cost[rival] + value[heads[rival]] > within:
                rival -= 1
            if chosen != rival:
                if not is_exact:
                    _set_exact_values(cost, heads, starts, value, rest, choice)
                    is_exact = True
                chosen = _first_tied_edge(node, within, cost, heads, starts, value, choice, terms)
            decisions[row, edges[chosen]] = 1.0
            node = heads[chosen]


@kernel(inner=True)
def _set_exact_values(
    cost: FloatArray, heads: IntArray, starts: IntArray, value: FloatArray, rest: FloatArray, choice: IntArray
) -> None:
    """Set the edge that each node takes, and its value in twice the precision: the unevaluated sum `value + rest`."""
    for node in range(len(starts) - 2, -1, -1):
        best, best_rest = np.inf, 0.0
        for k in range(starts[node], starts[node + 1]):
            ahead = value[heads[k]]
            high = cost[k] + ahead
            part = high - ahead
            low = (cost[k] - part) + (ahead - (high - part)) + rest[heads[k]]
            if (high - best) + (low - best_rest) < 0.0:
                best, best_rest, choice[node] = high, low, k
        value[node], rest[node] = best, best_rest


@kernel(inner=True)
def _first_tied_edge(
    node: int,
    within: float,
    cost: FloatArray,
    heads: IntArray,
    starts: IntArray,
    value: FloatArray,
    choice: IntArray,
    terms: FloatArray,
) -> int:
    """Return the lowest-numbered edge of the node whose best path to the target is tied with that of its choice."""
    for k in range(starts[node], choice[node]):
        if cost[k] + value[heads[k]] > within:
            continue
        terms[0], terms[1] = cost[k], -cost[choice[node]]
        count = 2
        here, other = heads[k], heads[choice[node]]
        while here != other:  # advance the path that is behind, until both meet: from there on they share their edges
            sign = 1.0 if here < other else -1.0
            edge = choice[min(here, other)]
            terms[count] = sign * cost[edge]
            count += 1
            if here < other:
                here = heads[edge]
            else:
                other = heads[edge]
        if is_tie(terms, count, TIE):
            return k
    return choice[node]


def _grid_edges(rows: int, columns: int) -> tuple[IntArray, IntArray]:
    nodes = np.arange(rows * columns).reshape(rows, columns)
    tails, heads = [nodes[0, :-1]], [nodes[0, 1:]]
    for i in range(1, rows):
        tails += [nodes[i - 1], nodes[i, :-1]]
        heads += [nodes[i], nodes[i, 1:]]
    return np.concatenate(tails), np.concatenate(heads)


def _as_nodes(values: Any, name: str) -> IntArray:
    try:
        nodes = np.asarray(values)
    except ValueError as reason:
        raise ValueError(f"{name} must be a list of nodes, one for each edge; {reason}") from reason
    if nodes.ndim != 1 or len(nodes) == 0:
        raise ValueError(f"{name} must be a list of nodes, one for each edge; got {name}.shape={nodes.shape}.")
    if nodes.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, the numbers of nodes; got {name}.dtype={nodes.dtype}.")
    if nodes.max() > np.iinfo(np.int64).max:
        raise ValueError(
            f"{name} must be below 2^63; edge {int(nodes.argmax())} has {nodes.max()}. Number the nodes from 0."
        )
    if nodes.min() < 0:
        edge = int(nodes.argmin())
        raise ValueError(f"{name} must not be negative; edge {edge} has {nodes[edge]}. Number the nodes from 0.")
    return nodes.astype(np.int64)


def _topological_order(tails: IntArray, heads: IntArray) -> IntArray:
    graph = TopologicalSorter[int]()
    for tail, head in zip(tails.tolist(), heads.tolist(), strict=True):
        graph.add(head, tail)
    try:
        return np.fromiter(graph.static_order(), dtype=np.int64)
    except CycleError as error:
        cycle = " -> ".join(map(str, error.args[1]))
        raise ValueError(f"the graph must have no cycle; nodes {cycle} form one. Remove one of its edges.") from error


def _most_edges(tails: IntArray, heads: IntArray, origin: int, n_nodes: int) -> IntArray:
    """Return the largest number of edges on a path from the origin to each node, or -1; edges are sorted by tail."""
    longest = [-1] * n_nodes
    longest[origin] = 0
    for tail, head in zip(tails.tolist(), heads.tolist(), strict=True):
        if longest[tail] >= 0:
            longest[head] = max(longest[head], longest[tail] + 1)
    return np.array(longest)
