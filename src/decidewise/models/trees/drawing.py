"""A tree as text and as a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.notebook import new_axes
from decidewise.models.trees.nodes import Nodes
from decidewise.problems.contract import Problem

# The most costs that the text of a leaf names.
_MOST_NAMES = 8


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
