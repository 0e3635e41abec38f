"""Grow a tree, each split by the least cost of decisions, and remove the splits that do not make them cheaper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from decidewise.kit.checks import FloatArray, IndexArray, as_integer, as_number
from decidewise.models.trees.nodes import Nodes
from decidewise.models.trees.samples import Splits, TreeSamples

# Costs of decisions this close, relative to the largest, differ by rounding.
_TIED = 1e-12


@dataclass
class _Node:
    """A node of a growing tree, with the numbers of its samples."""

    members: IndexArray
    depth: int
    value: FloatArray
    feature: int = -1
    threshold: float = 0.0
    left: int = -1
    right: int = -1


@dataclass(frozen=True)
class Growth:
    """The limits within which a tree grows.

    Attributes
    ----------
    max_depth : int or None
    min_samples_leaf : int
        The smallest number of samples of a leaf.
    n_thresholds : int
        The largest number of thresholds of each feature that are tried at a node; they are at quantiles.
    max_features : float
        The share of the features that are tried at a node, drawn anew for each node if they are not all.
    """

    max_depth: int | None
    min_samples_leaf: int
    n_thresholds: int
    max_features: float

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return the limits that an estimator has as parameters, after a check of these."""
        if estimator.max_depth is not None:
            as_integer(estimator.max_depth, name="max_depth")
        as_integer(estimator.min_samples_leaf, name="min_samples_leaf")
        as_integer(estimator.n_thresholds, name="n_thresholds")
        share = 1.0
        if estimator.max_features is not None:
            share = as_number(estimator.max_features, name="max_features", above=0, at_most=1)
        return cls(estimator.max_depth, estimator.min_samples_leaf, estimator.n_thresholds, share)

    def grow(self, samples: TreeSamples, rng: np.random.Generator) -> Nodes:
        """Return the tree of the samples, grown breadth first.

        A node is split wherever a split is possible, even if no split makes its decisions cheaper, because a later one
        may: `prune` removes those that turn out useless.
        """
        values = samples.values
        root = _Node(np.arange(len(samples)), 0, values.mean(axis=0))
        nodes, now = [root], samples.predictions(np.tile(root.value, (len(values), 1)))
        for node in nodes:  # which grows meanwhile
            if self.max_depth is not None and node.depth >= self.max_depth:
                continue
            split = self._best(samples, node.members, now, rng)
            if split is None:
                continue
            node.feature, node.threshold = split
            node.left, node.right = len(nodes), len(nodes) + 1
            goes_left = samples.features[node.members, node.feature] <= node.threshold
            for members in (node.members[goes_left], node.members[~goes_left]):
                nodes.append(_Node(members, node.depth + 1, values[members].mean(axis=0)))
                if samples.per_item:
                    now[np.unravel_index(members, samples.X.shape[:2])] = nodes[-1].value[0]
        names = ("feature", "threshold", "left", "right", "value")
        count = np.array([len(node.members) for node in nodes])
        return Nodes(**{name: np.array([getattr(node, name) for node in nodes]) for name in names}, count=count)

    def _best(
        self, samples: TreeSamples, own: IndexArray, now: FloatArray, rng: np.random.Generator
    ) -> tuple[int, float] | None:
        """Return the feature and the threshold of the best split of some samples, or None if none is possible.

        The best has the least cost of decisions; of several, the least squared error, then the first feature and the
        lowest threshold.
        """
        if len(own) < 2 * self.min_samples_leaf:
            return None
        n_features = samples.features.shape[1]
        columns, n_tried = np.arange(n_features), max(1, round(self.max_features * n_features))
        if n_tried < n_features:
            columns = np.sort(rng.choice(n_features, n_tried, replace=False))
        splits = self.candidates(samples.features[own][:, columns], samples.values[own], columns)
        if len(splits) == 0:
            return None
        costs = samples.cost_of_splits(splits, own, now)
        tied = np.flatnonzero(costs <= costs.min() + _TIED * np.abs(costs).max())
        explained = splits.n_left * (splits.left**2).sum(axis=1) + splits.n_right * (splits.right**2).sum(axis=1)
        best = tied[explained[tied].argmax()]
        return int(splits.feature[best]), float(splits.threshold[best])

    def candidates(self, X: FloatArray, values: FloatArray, columns: IndexArray) -> Splits:
        """Return the splits to try, by features (e, p) whose numbers are `columns` (p,), with the means of the values.

        The means of all splits of a feature come from sums over the samples between two thresholds, added up.
        """
        found = []
        n_samples, total = len(X), values.sum(axis=0)
        for position, column in enumerate(columns):
            order = np.argsort(X[:, position], kind="stable")
            x = X[order, position]
            cuts = self._cuts(x)
            if len(cuts) == 0:
                continue
            sums = np.add.reduceat(values[order], np.concatenate([[0], cuts]), axis=0)[:-1].cumsum(axis=0)
            middle = x[cuts - 1] + (x[cuts] - x[cuts - 1]) / 2
            threshold = np.where(middle < x[cuts], middle, x[cuts - 1])  # the middle of neighbours rounds to either
            left, right = sums / cuts[:, None], (total - sums) / (n_samples - cuts)[:, None]
            found.append((np.full(len(cuts), column), threshold, left, right, cuts, n_samples - cuts))
        if not found:
            empty, none = np.empty(0), np.empty(0, dtype=np.intp)
            means = np.empty((0, values.shape[1]))
            return Splits(none, empty, means, means, none, none)
        return Splits(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _cuts(self, x: FloatArray) -> IndexArray:
        """Return how many of the sorted numbers (e,) each candidate sends left: where they change, at quantiles."""
        least = self.min_samples_leaf
        changes = np.flatnonzero(x[1:] > x[:-1]) + 1
        changes = changes[(changes >= least) & (changes <= len(x) - least)]
        if len(changes) <= self.n_thresholds:
            return changes
        quantiles = np.arange(1, self.n_thresholds + 1) * len(x) / (self.n_thresholds + 1)
        return changes[np.unique(np.minimum(np.searchsorted(changes, quantiles), len(changes) - 1))]


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
