"""A binary tree as arrays, one entry per node; the root is node 0 and children come after their parents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IndexArray
from decidewise.kit.kept import are_floats, need


@dataclass(frozen=True)
class Nodes:
    """The nodes of a tree. A sample goes left where `x[feature] <= threshold`.

    Attributes
    ----------
    feature : ndarray of shape (t,)
        The feature of the split, or -1 at a leaf.
    threshold : ndarray of shape (t,)
    left, right : ndarray of shape (t,)
        The children, or -1 at a leaf.
    value : ndarray of shape (t, k)
        The mean of the samples of each node: what a leaf predicts.
    count : ndarray of shape (t,)
        The number of samples of each node.
    """

    feature: IndexArray
    threshold: FloatArray
    left: IndexArray
    right: IndexArray
    value: FloatArray
    count: IndexArray

    def _check_kept(self) -> None:
        """Raise unless children come after their parents, so that every sample ends at a leaf."""
        size = len(self.feature)
        for name in ("feature", "left", "right", "count"):
            numbers = getattr(self, name)
            whole = isinstance(numbers, np.ndarray) and numbers.dtype == np.intp and numbers.shape == (size,)
            need(whole, f"{name} of a tree must be {size} whole numbers")
        need(are_floats(self.threshold) and np.shape(self.threshold) == (size,), "threshold of a tree must be a row")
        need(are_floats(self.value) and np.ndim(self.value) == 2 and len(self.value) == size, "value must be a matrix")
        inner = np.flatnonzero(self.feature >= 0)
        for child in (self.left[inner], self.right[inner]):
            need(bool(((child > inner) & (child < size)).all()), "the children of a node must come after it")

    @property
    def is_leaf(self) -> BoolArray:
        """Whether each node is a leaf, (t,)."""
        return self.feature < 0

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return int(self.is_leaf.sum())

    def apply(self, X: FloatArray) -> IndexArray:
        """Return the leaf of each row of features, (m, p) -> (m,)."""
        at = np.zeros(len(X), dtype=np.intp)
        moving = np.arange(len(X))
        while len(moving := moving[self.feature[at[moving]] >= 0]):
            node = at[moving]
            goes_left = X[moving, self.feature[node]] <= self.threshold[node]
            at[moving] = np.where(goes_left, self.left[node], self.right[node])
        return at

    def reached(self, X: FloatArray) -> BoolArray:
        """Return whether each row of features passes through each node, (m, p) -> (t, m)."""
        reached = np.zeros((len(self.feature), len(X)), dtype=bool)
        reached[0] = True
        for node in np.flatnonzero(~self.is_leaf):
            goes_left = X[:, self.feature[node]] <= self.threshold[node]
            reached[self.left[node]] = reached[node] & goes_left
            reached[self.right[node]] = reached[node] & ~goes_left
        return reached

    def depths(self) -> IndexArray:
        """Return the depth of each node, (t,); that of the root is 0."""
        depths = np.zeros(len(self.feature), dtype=np.intp)
        for node in np.flatnonzero(~self.is_leaf):
            depths[[self.left[node], self.right[node]]] = depths[node] + 1
        return depths

    def in_order(self) -> Iterator[int]:
        """Yield each node before the nodes below it, from left to right."""
        stack = [0]
        while stack:
            node = stack.pop()
            yield node
            if self.feature[node] >= 0:
                stack += [int(self.right[node]), int(self.left[node])]

    def collapsed(self, leaves: BoolArray) -> Nodes:
        """Return the tree in which the marked nodes (t,) are leaves, without the nodes below them."""
        keep = np.zeros(len(self.feature), dtype=bool)
        keep[0] = True
        for node in np.flatnonzero(~self.is_leaf & ~leaves):
            keep[[self.left[node], self.right[node]]] = keep[node]
        number = np.cumsum(keep) - 1
        leaf = (self.is_leaf | leaves)[keep]
        return Nodes(
            np.where(leaf, -1, self.feature[keep]),
            np.where(leaf, 0.0, self.threshold[keep]),
            np.where(leaf, -1, number[self.left[keep]]),
            np.where(leaf, -1, number[self.right[keep]]),
            self.value[keep],
            self.count[keep],
        )

    def refilled(self, X: FloatArray, values: FloatArray) -> Nodes:
        """Return the same tree with the means and the counts of other samples, (m, p) and (m, k)."""
        reached = self.reached(X)
        count = reached.sum(axis=1)
        return replace(self, value=(reached @ values) / count[:, None], count=count)
