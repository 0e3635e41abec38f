"""Remove the splits of a tree that do not make decisions cheaper."""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.models.trees.nodes import Nodes
from decidewise.models.trees.samples import TreeSamples

# Costs of decisions this close, relative to the larger, differ by rounding.
_TIED = 1e-12


def prune(nodes: Nodes, samples: TreeSamples) -> Nodes:
    """Return the part of a tree at whose leaves the decisions for the samples cost the least.

    From the last split to the first, a node becomes a leaf unless its decisions would then cost more. Where rows do not
    share decisions with other leaves, as with features (n, p), no other part of the tree costs less, and none that
    costs the same has fewer leaves.
    """
    return nodes.collapsed(_by_item(nodes, samples) if samples.per_item else _by_row(nodes, samples))


def _by_row(nodes: Nodes, samples: TreeSamples) -> np.ndarray:
    """Return the nodes to make leaves, (t,), if each row of costs has one leaf."""
    reached = nodes.reached(samples.features)
    if samples.shares_decisions:
        costs = samples.cost_of_groups(nodes.value, reached @ samples.costs)
    else:
        costs = np.zeros(len(nodes.feature))
        for node, rows in enumerate(map(np.flatnonzero, reached)):
            if len(rows):
                prediction = np.broadcast_to(nodes.value[node], (1, len(rows), samples.costs.shape[1]))
                costs[node] = samples.cost_of_rows(prediction, rows)[0]
    leaves = np.zeros(len(nodes.feature), dtype=bool)
    for node in np.flatnonzero(~nodes.is_leaf)[::-1]:
        below = costs[nodes.left[node]] + costs[nodes.right[node]]
        leaves[node] = _no_more(costs[node], below)
        costs[node] = costs[node] if leaves[node] else below
    return leaves


def _by_item(nodes: Nodes, samples: TreeSamples) -> np.ndarray:
    """Return the nodes to make leaves, (t,), if the items of a row are in several leaves, which a decision mixes."""
    reached, rows = nodes.reached(samples.features), np.arange(len(samples.costs))
    leaves = np.zeros(len(nodes.feature), dtype=bool)

    def cost(values: FloatArray) -> float:
        return float(samples.cost_of_rows(samples.predictions(values)[None], rows)[0])

    values = nodes.value[nodes.apply(samples.features)]
    now = cost(values)
    for node in np.flatnonzero(~nodes.is_leaf)[::-1]:
        merged = np.where(reached[node][:, None], nodes.value[node], values)
        without = cost(merged)
        if _no_more(without, now):
            leaves[node], values, now = True, merged, without
    return leaves


def _no_more(cost: float, other: float) -> bool:
    return bool(cost <= other + _TIED * max(abs(cost), abs(other)))
