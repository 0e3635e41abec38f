"""A binary tree as arrays, one entry per node, as text and as a figure.

The root is node 0, and children come after their parents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray, IndexArray
from decidewise.kit.kept import are_floats, need
from decidewise.kit.notebook import new_axes
from decidewise.problems.contract import Problem

# The most costs that the text of a leaf names.
_MOST_NAMES = 8


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


def leaf_labels(nodes: Nodes, problem: Problem | None, names: Sequence[str], *, per_item: bool) -> Callable[[int], str]:
    """Return a function from a leaf to what it does: what it decides or, where decisions differ by row, predicts.

    A model that was read from a file has no problem unless one was set; then it also says what it predicts.
    """
    if per_item:
        return lambda leaf: f"predicts {nodes.value[leaf, 0]:.4g}"
    if problem is None or problem.n_rows is not None:
        return lambda leaf: f"predicts {_shortened(nodes.value[leaf])}"
    decisions = problem.solve(nodes.value)

    def label(leaf: int) -> str:
        chosen = np.flatnonzero(decisions[leaf]).tolist()
        whole = np.array_equal(decisions[leaf, chosen], np.ones(len(chosen)))
        paid = [names[j] if whole else f"{decisions[leaf, j]:.3g} of {names[j]}" for j in chosen]
        more = f" and {len(paid) - _MOST_NAMES} others" if len(paid) > _MOST_NAMES else ""
        return f"decides on {', '.join(paid[:_MOST_NAMES])}{more}" if paid else "decides on nothing"

    return label


def _shortened(value: FloatArray, most: int = 4) -> str:
    numbers = ", ".join(f"{number:.4g}" for number in value[:most])
    return f"{numbers}, ..." if len(value) > most else numbers


def as_text(nodes: Nodes, features: Sequence[str], label: Callable[[int], str], sample: str) -> str:
    """Return one line per node, indented by its depth."""
    conditions = {0: "all"}
    for split in np.flatnonzero(~nodes.is_leaf).tolist():
        name, threshold = features[nodes.feature[split]], f"{nodes.threshold[split]:.4g}"
        conditions[int(nodes.left[split])] = f"{name} <= {threshold}"
        conditions[int(nodes.right[split])] = f"{name} > {threshold}"
    depths, lines = nodes.depths(), []
    for node in nodes.in_order():
        count = f"{nodes.count[node]:,} {sample}{'' if nodes.count[node] == 1 else 's'}"
        does = f", {label(node)}" if nodes.is_leaf[node] else ""
        lines.append(f"{'  ' * depths[node]}{conditions[node]}: {count}{does}")
    return "\n".join(lines)


def draw(nodes: Nodes, features: Sequence[str], label: Callable[[int], str], sample: str, ax: Any = None) -> Any:
    """Draw a tree with matplotlib and return its axes; leaves are evenly spaced, each parent above its children."""
    depths = nodes.depths()
    across = np.zeros(len(depths))
    order = [node for node in nodes.in_order() if nodes.is_leaf[node]]
    across[order] = np.arange(len(order))
    for node in np.flatnonzero(~nodes.is_leaf)[::-1]:
        across[node] = (across[nodes.left[node]] + across[nodes.right[node]]) / 2
    if ax is None:
        size = max(4.0, 1.8 * len(order)), 1.6 * (depths.max() + 1)
        [ax] = new_axes(size=size, by="the figure of a tree")
    for node in range(len(depths)):
        here = (across[node], -depths[node])
        if nodes.feature[node] >= 0:
            text = f"{features[nodes.feature[node]]} <= {nodes.threshold[node]:.4g}\n{nodes.count[node]:,} {sample}s"
            for child, answer in ((nodes.left[node], "yes"), (nodes.right[node], "no")):
                ax.plot([here[0], across[child]], [here[1], -depths[child]], color="0.6", zorder=1)
                middle = ((here[0] + across[child]) / 2, (here[1] - depths[child]) / 2)
                ax.annotate(answer, middle, ha="center", va="center", fontsize=7, color="0.4")
        else:
            text = f"{label(node)}\n{nodes.count[node]:,} {sample}s".replace(" on ", " on\n")
        box = {"boxstyle": "round", "facecolor": "white" if nodes.feature[node] >= 0 else "0.93", "edgecolor": "0.5"}
        ax.annotate(text, here, ha="center", va="center", fontsize=8, bbox=box, zorder=2)
    ax.set_xlim(-0.6, len(order) - 0.4)
    ax.set_ylim(-depths.max() - 0.5, 0.5)
    ax.set_axis_off()
    return ax
