"""The shortest path in a directed graph: a grid, or any list of edges.

Ties: at every node the path takes the lowest-numbered edge with which an optimal path continues.
"""

from __future__ import annotations

import copy
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self

import numpy as np

from decidewise.kit.batches import in_parts
from decidewise.kit.checks import FloatArray, IntArray, as_integer
from decidewise.kit.errors import SolverError
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.problems.drawing import draw_graph, layers
from decidewise.problems.rounding import EPS, TIE
from decidewise.problems.shortest_path.acyclic import acyclic_paths
from decidewise.problems.shortest_path.any_graph import Graph, paths_in_any_graph
from decidewise.problems.shortest_path.flow import UnitFlows, net_outflow, reached, useful_edges
from decidewise.solvers import Polyhedron


class ShortestPath(Problem, marks_ones=True):
    """Walk a grid from its north-west to its south-east node, one step east or south at a time.

    Each edge has a cost. Edges are ordered by rows of the grid: for each row first the edges east,
    `(i, j) -> (i, j + 1)`, then the edges south, `(i, j) -> (i + 1, j)`. A decision has a 1 for every edge on the path
    and a 0 elsewhere. `from_edges` builds the same problem on any directed graph.

    An acyclic graph may have costs of any sign, and be solved with `sense="max"`, for the longest path. A path visits
    no node twice, even if a cycle costs nothing.

    In a graph with cycles the region is that of `polyhedron`: a unit flow from source to target with at most 1 on every
    edge. Where no cycle has a negative cost, as on roads, a shortest path is the best flow. In a row of predictions
    with a negative cycle, the best flow is a path and, beside it or around it, all that costs less than nothing; it is
    found by linear programming, with the ties of `LinearProgram`. So every loss can train, and every prediction can be
    judged. Who knows that no cost is negative passes `lower=0` to `from_edges`: then decisions are paths.

    `is_integer` is false because the flow constraints are totally unimodular: all vertices are whole.

    Parameters
    ----------
    rows, columns : int
        The number of nodes in each direction. A grid of 5 by 5 nodes has 40 edges.
    sense : {"min", "max"}

    Attributes
    ----------
    n_costs : int
        One per edge: `rows (columns - 1) + columns (rows - 1)` in a grid.
    tails, heads : ndarray of shape (n_costs,)
        The nodes that each edge leaves and enters.
    source, target : int or ndarray of shape (n_rows,)
    n_rows : int or None
        The number of rows that costs must have, where each has a source and a target of its own.
    lower : float or None
        See `from_edges`.
    B_S : float
        A bound on the norm of decisions: the square root of the largest number of edges on a path; in a graph with
        cycles, or with a source and a target by row, of the number of edges.

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

    faces = "flat"
    source: Any
    target: Any
    lower: Any = None
    n_rows: int | None

    def __init__(self, rows: int, columns: int, *, sense: Sense = "min") -> None:
        super().__init__(sense=sense)
        self.rows = rows = as_integer(rows, name="rows")
        self.columns = columns = as_integer(columns, name="columns")
        if rows * columns == 1:
            raise ValueError("a grid of 1 by 1 nodes has no edges; rows or columns must be at least 2.")
        as_n_costs(rows * (columns - 1) + columns * (rows - 1))
        self._set_graph(*_grid_edges(rows, columns), source=0, target=rows * columns - 1)

    @classmethod
    def from_edges(
        cls, tails: Any, heads: Any, source: Any, target: Any, *, lower: Any = None, sense: Sense = "min"
    ) -> Self:
        """Build the problem on a directed graph, which may have cycles, and several edges between two nodes.

        Edge `k` goes from node `tails[k]` to node `heads[k]`; cost `k` is the cost of edge `k`. Edges that are on no
        path from the source to the target are allowed and never taken.

        Parameters
        ----------
        tails, heads : array-like of int, of shape (n_costs,)
            Node numbers: any integers from 0, with or without gaps.
        source, target : int or array-like of int, of shape (n_rows,)
            The nodes where the path starts and ends: the same in all rows of costs, or one per row. The problem then
            solves exactly `n_rows` rows of costs; `take` chooses among them.
        lower : 0, optional
            Pass 0 if no cost is ever negative. Then predictions below zero count as zero where a model decides or is
            judged (`decide`, regrets, `compare`, the choice), and negative realised costs are an error. `solve` takes
            costs as they are, since losses ask it for other ones. If more is known, such as the time without traffic,
            predict what comes on top of it, and pass the rest to `KnownCosts`.
        sense : {"min", "max"}

        Examples
        --------
        >>> from decidewise.problems import ShortestPath
        >>> detour = ShortestPath.from_edges(tails=[0, 0, 7], heads=[7, 9, 9], source=0, target=9)
        >>> detour.solve([[1.0, 3.0, 1.0], [1.0, 3.0, 2.5]])
        array([[1., 0., 1.],
               [0., 1., 0.]])

        Two trips on a road that goes both ways:

        >>> road = ShortestPath.from_edges([0, 1, 1, 2], [1, 0, 2, 1], source=[0, 2], target=[2, 1])
        >>> road.solve([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
        array([[1., 0., 1., 0.],
               [0., 0., 0., 1.]])

        A prediction with a negative cycle, as it is and with what is known of the costs:

        >>> network = [0, 1, 2, 1], [1, 2, 1, 3], 0, 3
        >>> prediction = [[4.0, 1.0, -2.0, 3.0]]
        >>> ShortestPath.from_edges(*network).solve(prediction)
        array([[1., 1., 1., 1.]])
        >>> known = ShortestPath.from_edges(*network, lower=0.0)
        >>> known.solve(known.as_costs(prediction))
        array([[1., 0., 0., 1.]])
        """
        problem = cls.__new__(cls)
        Problem.__init__(problem, sense=sense)
        problem._built_by = "from_edges"
        tails, heads = _as_nodes(tails, "tails", "edge"), _as_nodes(heads, "heads", "edge")
        if len(tails) != len(heads):
            raise ValueError(f"tails has {len(tails)} nodes and heads {len(heads)}; pass one of each for every edge.")
        problem._set_lower(lower)
        if np.ndim(source) == 0 and np.ndim(target) == 0:
            source = as_integer(source, name="source", minimum=0)
            target = as_integer(target, name="target", minimum=0)
            if source == target:
                raise ValueError(f"source and target are both node {source}; the path between them is empty.")
            problem._set_graph(tails, heads, source, target)
        else:
            problem._set_graph_by_row(tails, heads, *_as_ends(source, target))
        return problem

    def _set_graph(self, tails: IntArray, heads: IntArray, source: int, target: int) -> None:
        self.tails, self.heads, self.source, self.target = tails, heads, source, target
        self.n_costs, self.n_rows = len(tails), None
        # Keep only edges on a way from source to target: a huge cost elsewhere must not enlarge the tie tolerance, and
        # a negative cycle elsewhere does not matter.
        nodes, tails, heads = self._numbered()
        first, last = _places(nodes, source, "source"), _places(nodes, target, "target")
        edges = np.flatnonzero(useful_edges(tails, heads, first, last, len(nodes)))
        if not len(edges):
            raise ValueError(f"no path leads from source {source} to target {target}; add edges or choose other ends.")
        tails, heads = tails[edges], heads[edges]
        order = _topological_order(tails, heads)
        self._is_acyclic = order is not None
        order = np.unique([tails, heads]) if order is None else order
        position = np.empty(len(nodes), np.int64)
        position[order] = np.arange(len(order))
        self._graph = Graph.of(edges, position[tails], position[heads], len(order))
        self._ends = position[[first, last]]
        self._longest = _most_edges(self._graph) if self._is_acyclic else len(edges)
        self.B_S = float(np.sqrt(self._longest))

    def _set_graph_by_row(self, tails: IntArray, heads: IntArray, sources: IntArray, targets: IntArray) -> None:
        self.tails, self.heads, self.source, self.target = tails, heads, sources, targets
        self.n_costs, self.n_rows = len(tails), len(sources)
        nodes, tails, heads = self._numbered()
        ends = _places(nodes, sources, "source"), _places(nodes, targets, "target")
        for source in np.unique(ends[0]):
            rows = np.flatnonzero(ends[0] == source)
            lost = rows[~reached(tails, heads, source, len(nodes))[ends[1][rows]]]
            if len(lost):
                raise ValueError(
                    f"row {lost[0]}: no path leads from source {sources[lost[0]]} to target {targets[lost[0]]}; add "
                    "edges or choose other ends."
                )
        order = _topological_order(tails, heads)  # in which the recursion for negative costs needs one round
        order = np.arange(len(nodes)) if order is None else order
        position = np.argsort(order)
        self._is_acyclic = False  # the fast recursion is for one source and one target
        self._graph = Graph.of(np.arange(self.n_costs), position[tails], position[heads], len(nodes))
        self._ends = position[np.array(ends)]
        self.B_S = float(np.sqrt(self.n_costs))

    def _set_lower(self, lower: Any) -> None:
        if lower is None:
            return
        if np.ndim(lower) or lower != 0:
            raise ValueError(
                f"lower must be 0 or None; got {lower!r}. Predictions may have any unit, in which only zero stays what "
                "it is. If costs are never below other numbers, predict what comes on top, and pass these numbers to "
                "KnownCosts."
            )
        if self.sense == "max":
            raise ValueError("lower is a bound on costs that are minimised; leave it out where sense is 'max'.")
        self.lower = 0.0

    def _numbered(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the nodes in increasing order, and the places of the tails and of the heads among them."""
        nodes, ends = np.unique(np.concatenate([self.tails, self.heads]), return_inverse=True)
        return nodes, ends[: self.n_costs], ends[self.n_costs :]

    def take(self, rows: Any) -> Self:
        """Return the problem of some rows, with their sources and targets: an index array, a mask or a slice."""
        if self.n_rows is None:
            return self
        part = copy.copy(self)
        part.source, part.target = self.source[rows], self.target[rows]
        part._ends = np.ascontiguousarray(self._ends[:, rows])
        part.n_rows = len(part.source)
        return part

    def _draw(self, decision: FloatArray, costs: FloatArray | None, names: list[str] | None, ax: Any) -> Any:
        if self.n_rows not in (None, 1):
            raise ValueError(f"start and end differ by row; draw the decision of row i of {self.n_rows} by take([i]).")
        if self._built_by:
            start, end = (int(np.ravel(node)[0]) for node in (self.source, self.target))
            nodes, places = layers(self.tails, self.heads, start, end)
        else:
            nodes = np.arange(self.rows * self.columns)
            places = np.column_stack([nodes % self.columns, -(nodes // self.columns)]).astype(float)
        order = np.argsort(nodes)
        ends = tuple(order[np.searchsorted(nodes[order], each)] for each in (self.tails, self.heads))
        return draw_graph((ends[0], ends[1]), places, decision, costs, ax)

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a shortest path for each row; ties go to the lowest-numbered edge at the first fork."""
        if not self._is_acyclic:
            return self._minimize_in_any_graph(costs)
        return in_parts(lambda rows, decisions: acyclic_paths(rows, decisions, *self._acyclic), costs)

    @cached_property
    def _acyclic(self) -> tuple[IntArray, IntArray, IntArray, float]:
        """What `acyclic_paths` needs of the graph."""
        # A value is a sum of up to L costs; its rounding is at most eps L² / 2 of the largest cost. A tie may differ by
        # TIE times 2 L such costs.
        rounding = (4 * EPS * self._longest + 2 * TIE) * self._longest
        return self._graph.edges, self._graph.heads, self._graph.starts[:-1], rounding

    def _minimize_in_any_graph(self, costs: FloatArray) -> FloatArray:
        ends = np.repeat(self._ends[:, None], len(costs), axis=1) if self.n_rows is None else self._ends
        has_path = np.ones(len(costs), np.bool_)
        decisions = in_parts(lambda *part: paths_in_any_graph(*part, self._graph), costs, *ends, has_path)
        if len(rows := np.flatnonzero(~has_path)):
            edges = self._graph.edges
            try:
                decisions[np.ix_(rows, edges)] = self._flows.minimize(costs[np.ix_(rows, edges)], ends[:, rows])
            except SolverError as error:
                raise error.at(int(rows[error.row])) from error
        return decisions

    @cached_property
    def _flows(self) -> UnitFlows:
        graph = self._graph
        return UnitFlows(graph.tails, graph.heads, len(graph.starts) - 1, self._ends)

    def as_costs(self, values: Any, *, name: str = "costs", realised: bool = False) -> FloatArray:
        """Return costs (n, n_costs) of costs or scenarios, predicted ones not below `lower`."""
        costs = super().as_costs(values, name=name, realised=realised)
        if self.lower is None:
            return costs
        if not realised:
            return np.maximum(costs, self.lower)
        if len(below := np.argwhere(costs < self.lower)):
            row, edge = below[0]
            raise ValueError(
                f"{name} must not be negative where lower=0 says so; row {row}, edge {edge} has {costs[row, edge]:g}. "
                "Leave out lower, or look at this cost."
            )
        return costs

    @property
    def polyhedron(self) -> Polyhedron | None:
        """Unit flow from source to target: out minus in is 1 at the source, -1 at the target, 0 elsewhere.

        None if sources and targets differ by row: there is no single region.
        """
        if self.n_rows is not None:
            return None
        nodes, tails, heads = self._numbered()
        supply = (nodes == self.source) - 1.0 * (nodes == self.target)
        upper = np.isin(np.arange(self.n_costs), self._graph.edges).astype(float)
        return Polyhedron.within(np.zeros(self.n_costs), upper, eq=(net_outflow(tails, heads, len(nodes)), supply))

    @property
    def missing(self) -> dict[str, str]:
        """Why there is no polyhedron, where there is none."""
        return {} if self.n_rows is None else {"polyhedron": "sources and targets differ by row"}


def _grid_edges(rows: int, columns: int) -> tuple[IntArray, IntArray]:
    nodes = np.arange(rows * columns).reshape(rows, columns)
    tails, heads = [nodes[0, :-1]], [nodes[0, 1:]]
    for i in range(1, rows):
        tails += [nodes[i - 1], nodes[i, :-1]]
        heads += [nodes[i], nodes[i, 1:]]
    return np.concatenate(tails), np.concatenate(heads)


def _as_nodes(values: Any, name: str, owner: str) -> IntArray:
    """Return the numbers of nodes, one for each owner: an edge or a row."""
    try:
        nodes = np.asarray(values)
    except ValueError as reason:
        raise ValueError(f"{name} must be a list of nodes, one for each {owner}; {reason}") from reason
    if nodes.ndim != 1 or len(nodes) == 0:
        raise ValueError(f"{name} must be a list of nodes, one for each {owner}; got {name}.shape={nodes.shape}.")
    if nodes.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, the numbers of nodes; got {name}.dtype={nodes.dtype}.")
    if nodes.max() > np.iinfo(np.int64).max:
        raise ValueError(
            f"{name} must be below 2^63; {owner} {int(nodes.argmax())} has {nodes.max()}. Number the nodes from 0."
        )
    if nodes.min() < 0:
        row = int(nodes.argmin())
        raise ValueError(f"{name} must not be negative; {owner} {row} has {nodes[row]}. Number the nodes from 0.")
    return nodes.astype(np.int64)


def _as_ends(source: Any, target: Any) -> tuple[IntArray, IntArray]:
    """Return the sources and the targets of all rows, of which one may be the same for all."""
    sources, targets = (
        _as_nodes(np.atleast_1d(source), "source", "row"),
        _as_nodes(np.atleast_1d(target), "target", "row"),
    )
    sources = np.repeat(sources, len(targets)) if np.ndim(source) == 0 else sources
    targets = np.repeat(targets, len(sources)) if np.ndim(target) == 0 else targets
    if len(sources) != len(targets):
        raise ValueError(f"source has {len(sources)} rows and target {len(targets)}; pass one of each for every row.")
    if (same := np.flatnonzero(sources == targets)).size:
        raise ValueError(f"row {same[0]}: source and target are both node {sources[same[0]]}; the path is empty.")
    return sources, targets


def _places(nodes: IntArray, wanted: Any, name: str) -> Any:
    """Return where nodes stand in the sorted list of all."""
    places = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
    if (missing := np.flatnonzero(nodes[places] != wanted)).size:
        node = np.atleast_1d(wanted)[missing[0]]
        raise ValueError(f"node {node} is the {name}, but is not an end of any edge.")
    return places


def _topological_order(tails: IntArray, heads: IntArray) -> IntArray | None:
    """Return the nodes so that every edge leads forwards, or None if there is a cycle."""
    graph = TopologicalSorter[int]()
    for tail, head in zip(tails.tolist(), heads.tolist(), strict=True):
        graph.add(head, tail)
    try:
        return np.fromiter(graph.static_order(), dtype=np.int64)
    except CycleError:
        return None


def _most_edges(graph: Graph) -> int:
    """Return the largest number of edges on a path from the first node to the last, of nodes in topological order."""
    longest = [0] * (len(graph.starts) - 1)
    for tail, head in zip(graph.tails.tolist(), graph.heads.tolist(), strict=True):
        longest[head] = max(longest[head], longest[tail] + 1)
    return longest[-1]
