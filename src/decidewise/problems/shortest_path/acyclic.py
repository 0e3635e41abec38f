"""Shortest paths in an acyclic graph, by one pass backwards and one forwards.

The recursion `value(node) = min over its edges (cost + value(head))` runs backwards from the target; one pass forwards
then reads off the path. Both take time linear in the number of edges. Costs may be negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.rounding import TIE, is_tie, safe_unit, sum_of

#: Values in twice the precision that differ by less than this fraction may differ by rounding alone.
LOST = 1e-30


class _Exact(NamedTuple):
    """The edges of one row, and the best path of each node to the target in twice the precision."""

    cost: FloatArray  # of the edges
    heads: IntArray
    starts: IntArray
    value: FloatArray  # of nodes: the unevaluated sum `value + rest`
    rest: FloatArray
    choice: IntArray  # the edge that a node takes
    terms: FloatArray  # in which two paths differ


@kernel
def acyclic_paths(
    costs: FloatArray, decisions: FloatArray, edges: IntArray, heads: IntArray, starts: IntArray, rounding: float
) -> None:
    """Mark the path of each row.

    Nodes are in topological order; node `i` has the edges `edges[starts[i]:starts[i + 1]]`. Values are sums with an
    error of up to `rounding` times the largest cost. If several edges of a node are within that error, values in twice
    the precision decide.

    Scale: costs into the safe range.
    Backwards: the value of each node.
    Forwards: the only edge within rounding, or the first tied one.
    """
    last = len(starts) - 1
    cost = np.empty(len(edges))
    value = np.empty(len(starts))
    rest, choice, terms = np.empty(len(starts)), np.empty(len(starts), np.int64), np.empty(2 * len(starts))
    exact = _Exact(cost, heads, starts, value, rest, choice, terms)
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
                    _set_exact_values(exact)
                    is_exact = True
                chosen = _first_tied_edge(node, within, exact)
            decisions[row, edges[chosen]] = 1.0
            node = heads[chosen]


@kernel(inner=True, _nrt=False)
def _set_exact_values(exact: _Exact) -> None:
    """Set the edge that each node takes, and its value in twice the precision.

    Where huge costs that two paths share leave no digits for the others, the edges in which they differ decide.
    """
    cost, heads, starts, choice = exact.cost, exact.heads, exact.starts, exact.choice
    value, rest = exact.value, exact.rest
    for node in range(len(starts) - 2, -1, -1):
        best, best_rest = np.inf, 0.0
        for k in range(starts[node], starts[node + 1]):
            ahead = value[heads[k]]
            high = cost[k] + ahead
            part = high - ahead
            low = (cost[k] - part) + (ahead - (high - part)) + rest[heads[k]]
            gap = (high - best) + (low - best_rest)
            if (low != 0.0 or best_rest != 0.0) and abs(gap) <= LOST * abs(high):
                count = _list_difference(k, choice[node], exact)
                gap = sum_of(exact.terms, count)
            if gap < 0.0:
                best, best_rest, choice[node] = high, low, k
        value[node], rest[node] = best, best_rest


@kernel(inner=True, _nrt=False)
def _first_tied_edge(node: int, within: float, exact: _Exact) -> int:
    """Return the lowest-numbered edge of the node whose best path to the target is tied with that of its choice."""
    choice = exact.choice
    for k in range(exact.starts[node], choice[node]):
        if exact.cost[k] + exact.value[exact.heads[k]] > within:
            continue
        count = _list_difference(k, choice[node], exact)
        if is_tie(exact.terms, count, TIE):
            return k
    return choice[node]


@kernel(inner=True, _nrt=False)
def _list_difference(k: int, chosen: int, exact: _Exact) -> int:
    """List the costs in which the best paths over two edges of a node differ; return their number.

    The path that is behind advances, until both meet: from there on they share their edges.
    """
    cost, heads, choice, terms = exact.cost, exact.heads, exact.choice, exact.terms
    terms[0], terms[1] = cost[k], -cost[chosen]
    count = 2
    here, other = heads[k], heads[chosen]
    while here != other:
        sign = 1.0 if here < other else -1.0
        edge = choice[min(here, other)]
        terms[count] = sign * cost[edge]
        count += 1
        if here < other:
            here = heads[edge]
        else:
            other = heads[edge]
    return count
