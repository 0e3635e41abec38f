"""Shortest paths in any directed graph, from the source to the target of each row.

Where no cost is negative, Dijkstra's method runs backwards from the target until it has passed the source; otherwise
Bellman and Ford's does, which also finds cycles of negative cost: such a row has no shortest path, but a flow. Both
compute in twice the precision, and leave a tree of shortest paths to the target. An edge is tied if the path that it
begins is tied with that of the tree.

The path then takes, at each node, the lowest-numbered tied edge that still leads to the target without visiting a node
twice. Where a cycle costs nothing, the tree may lead back to a node that is visited; then a search along tied edges
finds out whether there is another way.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.rounding import EPS, TIE, is_tie, safe_unit


class Graph(NamedTuple):
    """Edges in the order of their tails; `edges` are their numbers.

    Node `i` is left by the edges at `starts[i]:starts[i + 1]`, and entered by those at the places
    `entering[entering_starts[i]:entering_starts[i + 1]]`.
    """

    edges: IntArray
    tails: IntArray
    heads: IntArray
    starts: IntArray
    entering: IntArray
    entering_starts: IntArray

    @classmethod
    def of(cls, edges: IntArray, tails: IntArray, heads: IntArray, n_nodes: int) -> Self:
        """Sort edges by their tails, and in the order given where they share one."""
        order = np.argsort(tails, kind="stable")
        tails, heads = tails[order], heads[order]
        entering, nodes = np.argsort(heads, kind="stable"), np.arange(n_nodes + 1)
        starts, entering_starts = np.searchsorted(tails, nodes), np.searchsorted(heads[entering], nodes)
        return cls(edges[order], tails, heads, starts, entering, entering_starts)


class Search(NamedTuple):
    """The search for one row: shortest paths to the target, with an entry for each node, and room to work in.

    A node takes the edge at `choice`. Its path has `depth` edges and the cost `value + rest`, an unevaluated sum in
    twice the precision; `size` is the sum of absolute costs. A node without a path has the depth -1.
    """

    graph: Graph
    cost: FloatArray  # of the edges
    choice: IntArray
    depth: IntArray
    value: FloatArray
    rest: FloatArray
    size: FloatArray
    visited: BoolArray  # by the path
    seen: BoolArray  # by a search within it
    stack: IntArray
    terms: FloatArray  # in which two paths differ


@kernel
def paths_in_any_graph(
    costs: FloatArray, decisions: FloatArray, sources: IntArray, targets: IntArray, has_path: BoolArray, graph: Graph
) -> None:
    """Mark the path of each row; rows that have a cycle of negative cost become False in `has_path`.

    Tree: Dijkstra, or Bellman and Ford.
    Measure: depths and sizes of its paths.
    Walk: lowest tied edge that leads on.
    """
    n_nodes, heads = len(graph.starts) - 1, graph.heads
    cost, visited = np.empty(len(heads)), np.empty(n_nodes, np.bool_)
    at = Search(
        graph, cost, np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64), np.empty(n_nodes), np.empty(n_nodes),
        np.empty(n_nodes), visited, np.empty(n_nodes, np.bool_), np.empty(n_nodes, np.int64), np.empty(2 * n_nodes + 2),
    )  # fmt: skip
    heap, keys = np.empty(len(heads) + 1, np.int64), np.empty(len(heads) + 1)
    for row in range(len(costs)):
        largest = least = 0.0
        for k in range(len(heads)):
            cost[k] = costs[row, graph.edges[k]]
            largest, least = max(largest, abs(cost[k])), min(least, cost[k])
        unit = safe_unit(largest)
        if unit != 1.0:
            for k in range(len(heads)):
                cost[k] *= unit
        source, target = sources[row], targets[row]
        furthest = _dijkstra(source, target, at, heap, keys) if least >= 0.0 else np.inf
        if furthest == np.inf and not _bellman_ford(source, target, at):
            has_path[row] = False
            continue
        _measure(target, furthest, at)
        for node in range(n_nodes):
            visited[node] = False
        node = source
        while node != target:
            visited[node] = True
            k = graph.starts[node]
            while visited[heads[k]] or not _is_tied(k, node, at) or not _leads_on(heads[k], target, at):
                k += 1
            decisions[row, graph.edges[k]] = 1.0
            node = heads[k]


@kernel(inner=True, _nrt=False)
def _dijkstra(source: int, target: int, at: Search, heap: IntArray, keys: FloatArray) -> float:
    """Set the paths of all nodes that are no further from the target than the source; return the largest distance.

    The heap is in the order of the values without their rests. So it can happen that a node that has left the heap is
    shortened by a rest, and enters it again. If the heap is too small for that, infinity is returned.
    """
    graph, cost, value = at.graph, at.cost, at.value
    _clear(target, at)
    heap[0], keys[0] = target, 0.0
    count = 1
    furthest = np.inf
    while count > 0:
        node, key = heap[0], keys[0]
        if key > furthest:
            break
        # Move the last node of the heap down from the top.
        count -= 1
        last, last_key = heap[count], keys[count]
        place = 0
        while 2 * place + 1 < count:
            child = 2 * place + 1
            if child + 1 < count and keys[child + 1] < keys[child]:
                child += 1
            if keys[child] >= last_key:
                break
            heap[place], keys[place] = heap[child], keys[child]
            place = child
        heap[place], keys[place] = last, last_key
        if key > value[node]:
            continue  # it has become shorter, and was put into the heap again
        if node == source:
            furthest = key * (1.0 + 8 * TIE)  # tied paths may lead through nodes that are just as far
        for i in range(graph.entering_starts[node], graph.entering_starts[node + 1]):
            edge = graph.entering[i]
            tail = graph.tails[edge]
            if cost[edge] + key > value[tail] or not _shorten(tail, node, edge, at):
                continue
            if count == len(heap):
                return np.inf
            # Move the tail up from the end of the heap.
            place = count
            count += 1
            while place > 0 and keys[(place - 1) // 2] > value[tail]:
                heap[place], keys[place] = heap[(place - 1) // 2], keys[(place - 1) // 2]
                place = (place - 1) // 2
            heap[place], keys[place] = tail, value[tail]
    return furthest


@kernel(inner=True, _nrt=False)
def _clear(target: int, at: Search) -> None:
    """Forget all paths but the empty one at the target."""
    for node in range(len(at.value)):
        at.value[node], at.rest[node], at.choice[node] = np.inf, 0.0, -1
    at.value[target] = 0.0


@kernel(inner=True, _nrt=False)
def _shorten(node: int, head: int, edge: int, at: Search) -> bool:
    """Let the node take the edge if that is shorter than its present path; return whether it is."""
    value, rest, cost = at.value, at.rest, at.cost[edge]
    ahead = value[head]
    high = cost + ahead
    part = high - ahead
    low = (cost - part) + (ahead - (high - part)) + rest[head]
    if (high - value[node]) + (low - rest[node]) >= 0.0:
        return False
    value[node], rest[node], at.choice[node] = high, low, edge
    return True


@kernel(inner=True, _nrt=False)
def _bellman_ford(source: int, target: int, at: Search) -> bool:
    """Set the paths of the nodes that the source reaches; return False if they have a cycle of negative cost.

    Paths neither come back to the source nor leave the target, so that cycles through them do not matter. Nodes in
    topological order need one round. Cycles are looked for after 1, 2, 4, 8 and so on rounds, which is soon enough not
    to go all rounds and seldom enough to take no time.
    """
    heads, starts = at.graph.heads, at.graph.starts
    n_nodes = len(starts) - 1
    _explore(source, target, at)
    n_rounds = 0
    changed = source
    while changed >= 0:
        if n_rounds == 0:
            _clear(target, at)
        changed = -1
        for node in range(n_nodes - 1, -1, -1):
            if node == target or not at.seen[node]:
                continue
            for k in range(starts[node], starts[node + 1]):
                head = heads[k]
                if head == source or at.value[head] == np.inf:
                    continue
                if _shorten(node, head, k, at):
                    changed = node
        n_rounds += 1
        if changed >= 0 and (n_rounds & (n_rounds - 1) == 0 or n_rounds >= n_nodes):
            node = _on_a_cycle(at)
            if node >= 0:
                if not _open_cycle(node, at):
                    return False
                n_rounds = 0
    return True


@kernel(inner=True, _nrt=False)
def _on_a_cycle(at: Search) -> int:
    """Return a node of a cycle that the choices form, or -1 if there is none."""
    depth, choice, heads = at.depth, at.choice, at.graph.heads
    for node in range(len(depth)):
        depth[node] = -1
    for start in range(len(depth)):
        node = start
        while depth[node] < 0:  # not yet seen from any start
            depth[node] = start
            if choice[node] >= 0:
                node = heads[choice[node]]
        if depth[node] == start and choice[node] >= 0:
            return node
    return -1


@kernel(inner=True, _nrt=False)
def _explore(source: int, target: int, at: Search) -> None:
    """Mark the nodes that the source reaches on paths that end at the target."""
    heads, starts, stack, seen = at.graph.heads, at.graph.starts, at.stack, at.seen
    for node in range(len(seen)):
        seen[node] = False
    stack[0], seen[source] = source, True
    count = 1
    while count > 0:
        count -= 1
        node = stack[count]
        if node == target:
            continue
        for k in range(starts[node], starts[node + 1]):
            if not seen[heads[k]]:
                seen[heads[k]] = True
                stack[count] = heads[k]
                count += 1


@kernel(inner=True, _nrt=False)
def _open_cycle(node: int, at: Search) -> bool:
    """Return whether the cycle that the choices form at a node costs nothing, and is negative by rounding only.

    If so, one of its edges is made more expensive by that rounding, so that there is a shortest path.
    """
    cost, heads, terms = at.cost, at.graph.heads, at.terms
    start, count = node, 0
    while count == 0 or node != start:
        terms[count] = -cost[at.choice[node]]
        count += 1
        node = heads[at.choice[node]]
    if not is_tie(terms, count, TIE):
        return False
    # Raise an edge that is left over when equal costs of opposite sign cancel: the smallest, which loses no digits.
    excess = size = 0.0
    smallest = -1
    for i in range(count):
        edge = at.choice[node]
        excess += terms[i]
        size += abs(terms[i])
        if terms[i] != 0.0 and (smallest < 0 or abs(cost[edge]) < abs(cost[smallest])):
            smallest = edge
        node = heads[edge]
    cost[smallest] += 2 * max(excess, EPS * size)
    return True


@kernel(inner=True, _nrt=False)
def _measure(target: int, furthest: float, at: Search) -> None:
    """Set the depth and the size of all paths up to the largest distance, and the depth of other nodes to -1."""
    heads, stack = at.graph.heads, at.stack
    for node in range(len(stack)):
        at.depth[node] = -1
    at.depth[target], at.size[target] = 0, 0.0
    for start in range(len(stack)):
        node = start
        count = 0
        while at.depth[node] < 0 and at.choice[node] >= 0 and at.value[node] <= furthest:
            stack[count] = node
            count += 1
            node = heads[at.choice[node]]
        while count > 0:
            count -= 1
            node = stack[count]
            edge = at.choice[node]
            head = heads[edge]
            at.depth[node], at.size[node] = at.depth[head] + 1, at.size[head] + abs(at.cost[edge])


@kernel(inner=True, _nrt=False)
def _is_tied(k: int, node: int, at: Search) -> bool:
    """Return whether the edge at `k`, and from its head on the tree, is as short as the node's path in the tree."""
    cost, heads, terms = at.cost, at.graph.heads, at.terms
    edge = at.choice[node]
    here, other = heads[k], heads[edge]
    if k == edge or at.depth[here] < 0:
        return k == edge
    slack = ((cost[k] + at.value[here]) - at.value[node]) + (at.rest[here] - at.rest[node])
    if slack > 2 * TIE * (abs(cost[k]) + at.size[here] + at.size[node]):
        return False
    terms[0], terms[1] = cost[k], -cost[edge]
    count = 2
    while here != other:  # advance the path that is behind, until both meet: from there on they share their edges
        is_behind = at.depth[here] >= at.depth[other]
        edge = at.choice[here if is_behind else other]
        terms[count] = cost[edge] if is_behind else -cost[edge]
        count += 1
        if is_behind:
            here = heads[edge]
        else:
            other = heads[edge]
    return is_tie(terms, count, TIE)


@kernel(inner=True, _nrt=False)
def _leads_on(start: int, target: int, at: Search) -> bool:
    """Return whether tied edges lead from the start to the target through nodes that are not visited."""
    heads, starts, stack, seen, visited = at.graph.heads, at.graph.starts, at.stack, at.seen, at.visited
    node = start
    while node != target and not visited[node]:
        node = heads[at.choice[node]]
    if node == target:
        return True
    for other in range(len(seen)):
        seen[other] = visited[other]
    stack[0], seen[start] = start, True
    count = 1
    while count > 0:
        count -= 1
        node = stack[count]
        for k in range(starts[node], starts[node + 1]):
            head = heads[k]
            if seen[head] or not _is_tied(k, node, at):
                continue
            if head == target:
                return True
            seen[head] = True
            stack[count] = head
            count += 1
    return False
