"""Unit flows of least cost with at most 1 on every edge: a path, beside it the cycles that cost less than nothing.

They are what the constraints of a shortest path allow in a row in which a cycle has a negative cost. The constraints
are totally unimodular, so that the vertices that linear programming finds are whole.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import breadth_first_order

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.solvers.highs import Solver
from decidewise.solvers.program import Program


def net_outflow(tails: IntArray, heads: IntArray, n_nodes: int) -> csr_array:
    """Return what leaves each node minus what enters it, as a matrix of shape (n_nodes, n_edges)."""
    edges = np.arange(len(tails))
    signs = np.repeat([1.0, -1.0], len(edges))
    return csr_array((signs, (np.concatenate([tails, heads]), np.tile(edges, 2))), shape=(n_nodes, len(edges)))


def useful_edges(tails: IntArray, heads: IntArray, source: int, target: int, n_nodes: int) -> BoolArray:
    """Return which edges a way from the source to the target may take that passes through neither of them."""
    is_open = (heads != source) & (tails != target)
    ahead = reached(tails[is_open], heads[is_open], source, n_nodes)
    behind = reached(heads[is_open], tails[is_open], target, n_nodes)
    return np.asarray(is_open & ahead[tails] & behind[heads] & ahead[target])


def reached(tails: IntArray, heads: IntArray, origin: int, n_nodes: int) -> BoolArray:
    """Return which nodes the edges reach from the origin, itself included: (n_nodes,)."""
    graph = csr_array((np.ones(len(tails)), (tails, heads)), shape=(n_nodes, n_nodes))
    reached = np.zeros(n_nodes, np.bool_)
    reached[breadth_first_order(graph, origin, return_predecessors=False)] = True
    return reached


class UnitFlows:
    """Unit flows through one graph, between one source and target or between those of each row."""

    def __init__(self, tails: IntArray, heads: IntArray, n_nodes: int, ends: IntArray) -> None:
        self.tails, self.heads, self.n_nodes = tails, heads, n_nodes
        self.by_row = ends.ndim == 2
        matrix = net_outflow(tails, heads, n_nodes)
        matrix.eliminate_zeros()  # an edge from a node to itself
        self.matrix = csc_array(matrix)
        widest = self.program(ends.T).widest if self.by_row else self.program(ends[np.newaxis]).take(0)
        self.solver = Solver(widest, by_row=self.by_row)

    def program(self, ends: IntArray) -> Program:
        """Return the program of pairs of ends (r, 2), with bounds by row."""
        pairs, which = np.unique(ends, axis=0, return_inverse=True)
        upper = np.array([useful_edges(self.tails, self.heads, pair[0], pair[1], self.n_nodes) for pair in pairs]) * 1.0
        supply = np.zeros((len(pairs), self.n_nodes))
        rows = np.arange(len(pairs))
        supply[rows, pairs[:, 0]], supply[rows, pairs[:, 1]] = 1.0, -1.0
        upper, supply = upper[which.ravel()], supply[which.ravel()]
        return Program(self.matrix, supply, supply, np.zeros_like(upper), upper)

    def minimize(self, costs: FloatArray, ends: IntArray) -> FloatArray:
        """Return a flow of least cost for each row, between the ends (2,) or, by row, (2, n)."""
        return np.rint(self.solver.minimize(costs, self.program(ends.T) if self.by_row else None)) + 0.0
