"""Flows of least cost, by shortest augmenting paths.

Edges of negative cost start full, all others empty. Shortest augmenting paths then carry what is left over at some
nodes to those that lack it; prices of nodes keep the cost of every edge, less the difference of prices, on the right
side of zero (Ahuja, Magnanti and Orlin, "Network Flows", 1993, chapter 9). As in `Assignment`, prices are subtracted
from the costs in twice the precision and the flow is computed again, until it is proved optimal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.problems.rounding.ties import EPS, TIE, is_tie, safe_unit
from decidewise.runtime.kernels import kernel

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: The largest number of flows to compute, each from the slacks of the one before, until one is proved optimal.
ROUNDS = 3


@kernel
def send(
    costs: FloatArray,
    decisions: FloatArray,
    tails: IntArray,
    heads: IntArray,
    edges: IntArray,
    starts: IntArray,
    supply: FloatArray,
    capacity: FloatArray,
) -> int:
    """Set the flow of each row; return the first row for which there is none, or -1.

    The edges that enter or leave node `i` are `edges[starts[i]:starts[i + 1]]`.
    """
    n_nodes, n_edges = len(supply), len(tails)
    scale = 0.0
    for node in range(n_nodes):
        scale = max(scale, abs(supply[node]))
    for edge in range(n_edges):
        scale = max(scale, capacity[edge])
    tiny = 8 * EPS * (n_edges + n_nodes) * scale
    cost, slack = np.empty(n_edges), np.empty(n_edges)
    price, excess, distance = np.empty(n_nodes), np.empty(n_nodes), np.empty(n_nodes)
    link, settled = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.bool_)
    fixed = np.zeros(n_edges, np.bool_)
    terms = np.empty(n_nodes + 1)
    for row in range(len(costs)):
        flow = decisions[row]
        largest = 0.0
        for edge in range(n_edges):
            largest = max(largest, abs(costs[row, edge]))
        unit = safe_unit(largest)
        for edge in range(n_edges):
            cost[edge] = slack[edge] = costs[row, edge] * unit
        for _ in range(ROUNDS):
            for node in range(n_nodes):
                price[node], excess[node] = 0.0, supply[node]
            for edge in range(n_edges):
                flow[edge] = capacity[edge] if slack[edge] < 0.0 else 0.0
                excess[tails[edge]] -= flow[edge]
                excess[heads[edge]] += flow[edge]
            while True:
                status = _augment(slack, flow, tails, heads, edges, starts, capacity, tiny,
                                  price, excess, distance, link, settled)  # fmt: skip
                if status != 1:
                    break
            if status < 0:
                return row
            if _subtract_prices(slack, price, flow, tails, heads, capacity, tiny):
                break
        _break_ties(cost, largest * unit, slack, flow, tails, heads, edges, starts, capacity, tiny,
                    distance, link, settled, fixed, terms)  # fmt: skip
    return -1


@kernel(inner=True)
def _far_end(
    edge: int, node: int, flow: FloatArray, tails: IntArray, heads: IntArray, capacity: FloatArray, tiny: float
) -> int:
    """Return the node that more flow from this node would reach by the edge, or -1 if there is no room for more."""
    if tails[edge] == node:
        return heads[edge] if flow[edge] < capacity[edge] - tiny else -1
    return tails[edge] if flow[edge] > tiny else -1


@kernel(inner=True)
def _nearest(distance: FloatArray, settled: BoolArray) -> int:
    """Return the nearest node that is not settled, or -1 if none is in reach."""
    nearest, least = -1, np.inf
    for node in range(len(distance)):
        if distance[node] < least and not settled[node]:
            nearest, least = node, distance[node]
    return nearest


@kernel(inner=True)
def _augment(
    costs: FloatArray,
    flow: FloatArray,
    tails: IntArray,
    heads: IntArray,
    edges: IntArray,
    starts: IntArray,
    capacity: FloatArray,
    tiny: float,
    price: FloatArray,
    excess: FloatArray,
    distance: FloatArray,
    link: IntArray,
    settled: BoolArray,
) -> int:
    """Send flow along a shortest path from a node with an excess to one with a lack of it.

    Return 1 if it was sent, 0 if no node has an excess, and -1 if no path is left.
    """
    n_nodes = len(price)
    is_done = True
    for node in range(n_nodes):
        distance[node], link[node], settled[node] = np.inf, -1, False
        if excess[node] > tiny:
            distance[node] = 0.0
            is_done = False
    if is_done:
        return 0
    while True:  # Dijkstra's method from all nodes with an excess
        nearest = _nearest(distance, settled)
        if nearest < 0:
            return -1
        settled[nearest] = True
        if excess[nearest] < -tiny:
            break
        for i in range(starts[nearest], starts[nearest + 1]):
            edge = edges[i]
            other = _far_end(edge, nearest, flow, tails, heads, capacity, tiny)
            if other < 0 or settled[other]:
                continue
            length = costs[edge] + price[tails[edge]] - price[heads[edge]]
            length = distance[nearest] + max(length if other == heads[edge] else -length, 0.0)
            if length < distance[other]:
                distance[other], link[other] = length, edge
    for node in range(n_nodes):
        price[node] += min(distance[node], distance[nearest])
    amount = -excess[nearest]
    node = nearest
    while link[node] >= 0:
        edge = link[node]
        amount = min(amount, capacity[edge] - flow[edge] if heads[edge] == node else flow[edge])
        node = tails[edge] if heads[edge] == node else heads[edge]
    amount = min(amount, excess[node])
    excess[node] -= amount
    excess[nearest] += amount
    _push(nearest, amount, flow, tails, heads, link)
    return 1


@kernel(inner=True)
def _push(node: int, amount: float, flow: FloatArray, tails: IntArray, heads: IntArray, link: IntArray) -> None:
    """Send more flow along the links that lead to the node."""
    while link[node] >= 0:
        edge = link[node]
        if heads[edge] == node:
            flow[edge] += amount
            node = tails[edge]
        else:
            flow[edge] -= amount
            node = heads[edge]


@kernel(inner=True)
def _subtract_prices(
    costs: FloatArray,
    price: FloatArray,
    flow: FloatArray,
    tails: IntArray,
    heads: IntArray,
    capacity: FloatArray,
    tiny: float,
) -> bool:
    """Turn costs into slacks in twice the precision, and round flows that are nearly zero or full.

    Return whether the slacks prove the flow optimal: no edge with room has a negative one, and none with flow a
    positive one. The slacks have the same optimal flows as the costs, and keep the digits that prices of 1e15 would
    hide.
    """
    is_proved = True
    for edge in range(len(costs)):
        cost, ahead, behind = costs[edge], price[heads[edge]], price[tails[edge]]
        first = cost - ahead
        part = first - cost
        low = (cost - (first - part)) - (ahead + part)
        second = first + behind
        part = second - first
        low += (first - (second - part)) + (behind - part)
        costs[edge] = second + low
        if flow[edge] <= tiny:
            flow[edge] = 0.0
        elif flow[edge] >= capacity[edge] - tiny:
            flow[edge] = capacity[edge]
        is_proved &= costs[edge] >= 0.0 or flow[edge] == capacity[edge]
        is_proved &= costs[edge] <= 0.0 or flow[edge] == 0.0
    return is_proved


@kernel(inner=True)
def _break_ties(
    cost: FloatArray,
    largest: float,
    slack: FloatArray,
    flow: FloatArray,
    tails: IntArray,
    heads: IntArray,
    edges: IntArray,
    starts: IntArray,
    capacity: FloatArray,
    tiny: float,
    distance: FloatArray,
    link: IntArray,
    settled: BoolArray,
    fixed: BoolArray,
    terms: FloatArray,
) -> None:
    """Move flow from each edge in turn to a way around it that is tied, as much as possible."""
    n_edges = len(cost)
    # Tied flows differ in slack by at most TIE of their costs, so only edges with at most that slack matter.
    within = 2 * len(distance) * TIE * largest
    largest = 0.0
    for edge in range(n_edges):
        if abs(slack[edge]) <= within:
            largest = max(largest, abs(cost[edge]))
    within = 2 * len(distance) * TIE * largest
    for edge in range(n_edges):
        fixed[edge] = abs(slack[edge]) > within
    for edge in range(n_edges):
        if fixed[edge]:
            continue
        fixed[edge] = True
        while flow[edge] > tiny and _find_way_around(
            edge, cost, slack, flow, tails, heads, edges, starts, capacity, tiny, distance, link, settled, fixed, terms
        ):
            amount = flow[edge]
            node = heads[edge]
            while link[node] >= 0:
                other = link[node]
                amount = min(amount, capacity[other] - flow[other] if heads[other] == node else flow[other])
                node = tails[other] if heads[other] == node else heads[other]
            _push(heads[edge], amount, flow, tails, heads, link)
            flow[edge] -= amount
        if flow[edge] <= tiny:
            flow[edge] = 0.0


@kernel(inner=True)
def _find_way_around(
    edge: int,
    cost: FloatArray,
    slack: FloatArray,
    flow: FloatArray,
    tails: IntArray,
    heads: IntArray,
    edges: IntArray,
    starts: IntArray,
    capacity: FloatArray,
    tiny: float,
    distance: FloatArray,
    link: IntArray,
    settled: BoolArray,
    fixed: BoolArray,
    terms: FloatArray,
) -> bool:
    """Link a way from the tail of the edge to its head by edges that are not fixed; return whether it is a tie.

    Of all ways it is the one of least slack, by Dijkstra's method.
    """
    n_nodes = len(distance)
    for node in range(n_nodes):
        distance[node], link[node], settled[node] = np.inf, -1, False
    distance[tails[edge]] = 0.0
    while not settled[heads[edge]]:
        nearest = _nearest(distance, settled)
        if nearest < 0:
            return False
        settled[nearest] = True
        for i in range(starts[nearest], starts[nearest + 1]):
            other = edges[i]
            far = _far_end(other, nearest, flow, tails, heads, capacity, tiny)
            if far < 0 or fixed[other] or settled[far]:
                continue
            length = distance[nearest] + max(slack[other] if far == heads[other] else -slack[other], 0.0)
            if length < distance[far]:
                distance[far], link[far] = length, other
    terms[0] = -cost[edge]
    count = 1
    node = heads[edge]
    while link[node] >= 0:
        other = link[node]
        is_ahead = heads[other] == node
        terms[count] = cost[other] if is_ahead else -cost[other]
        count += 1
        node = tails[other] if is_ahead else heads[other]
    return is_tie(terms, count, TIE)


@kernel
def send_by_row(
    costs: FloatArray,
    decisions: FloatArray,
    tails: IntArray,
    heads: IntArray,
    edges: IntArray,
    starts: IntArray,
    supply: FloatArray,
    capacity: FloatArray,
) -> int:
    """Set the flow of each row, with supplies and capacities of its own; return the first row without one, or -1."""
    for row in range(len(costs)):
        part = slice(row, row + 1)
        if send(costs[part], decisions[part], tails, heads, edges, starts, supply[row], capacity[row]) >= 0:
            return row
    return -1
