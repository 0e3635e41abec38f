"""One decision as a picture: bars, the day of a battery, or a path on its graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.notebook import COLORS, new_axes, without_frame

#: What is decided, what is not, and what is bought.
_TAKEN, _LEFT, _BOUGHT = COLORS[0], "#c3cad4", COLORS[1]
#: The most entries with a name below, and the most edges with a cost beside.
_MOST_NAMES, _MOST_LABELS = 30, 60
_BY = "the figure of a decision"


def draw_bars(decision: FloatArray, costs: FloatArray | None, names: list[str] | None, ax: Any = None) -> Any:
    """Draw the costs with those that are chosen in colour, if entries are chosen or not; otherwise the amounts."""
    ax = _wide(len(decision), ax)
    places = np.arange(len(decision))
    if costs is not None and set(np.unique(decision)) <= {0.0, 1.0}:
        chosen = decision > 0
        ax.bar(places[chosen], costs[chosen], color=_TAKEN, label="chosen")
        ax.bar(places[~chosen], costs[~chosen], color=_LEFT, label="not chosen")
        ax.set_ylabel("cost or value")
        _legend(ax)
    else:
        ax.bar(places, decision, color=_TAKEN)
        ax.set_ylabel("decision")
        if costs is not None:
            _second(ax, places, costs, "o", "cost or value")
    _name(ax, names, "item")
    return without_frame(ax)


def draw_trades(sales: FloatArray, prices: FloatArray | None, names: list[str] | None, ax: Any = None) -> Any:
    """Draw what is sold and bought in each period, with the prices."""
    ax = _wide(len(sales), ax)
    places = np.arange(len(sales))
    ax.bar(places, np.maximum(sales, 0.0), color=_TAKEN, label="sell")
    ax.bar(places, np.minimum(sales, 0.0), color=_BOUGHT, label="buy")
    ax.axhline(0.0, color="0.6", linewidth=0.8)
    ax.set_ylabel("sold (above zero) or bought")
    if prices is not None:
        _second(ax, places, prices, "-", "price")
    _legend(ax)
    _name(ax, names, "period")
    return without_frame(ax)


def draw_graph(
    ends: tuple[IntArray, IntArray], places: FloatArray, taken: FloatArray, costs: FloatArray | None, ax: Any = None
) -> Any:
    """Draw a graph with the edges that a path takes.

    Parameters
    ----------
    ends : pair of int arrays of shape (n_edges,)
        The nodes that each edge leads from and to.
    places : array of shape (n_nodes, 2)
        Where nodes are; the first is the start and the last is the end of the path.
    taken, costs : array of shape (n_edges,)
    """
    if ax is None:
        width, height = np.clip(1.2 + 1.2 * np.ptp(places, axis=0), 3.0, 9.0)
        [ax] = new_axes(size=(width, height), by=_BY)
    for edge, (tail, head) in enumerate(zip(*ends, strict=True)):
        on_path = taken[edge] > 0.5
        look = {"color": _TAKEN, "lw": 2.8} if on_path else {"color": _LEFT, "lw": 1.2}
        arrow = {"arrowstyle": "-|>" if on_path else "->", "shrinkA": 6, "shrinkB": 6, **look}
        ax.annotate("", places[head], places[tail], arrowprops=arrow, zorder=2 if on_path else 1)
        if costs is not None and len(taken) <= _MOST_LABELS:
            box = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.6}
            middle = 0.4 * places[head] + 0.6 * places[tail]
            ink = {"color": _TAKEN if on_path else "0.45", "fontweight": "bold" if on_path else "normal"}
            ax.text(*middle, f"{costs[edge]:.3g}", ha="center", va="center", fontsize=8, bbox=box, zorder=3, **ink)
    ax.scatter(*places.T, s=28, color="0.35", zorder=4)
    for node, name, above in ((0, "start", 9), (-1, "end", -16)):
        ax.annotate(name, places[node], (0, above), textcoords="offset points", ha="center", color=_TAKEN, zorder=5)
    for text in ax.texts:  # an arrow has no size of its own that a layout could use
        text.set_in_layout(False)
    ax.margins(0.15)
    ax.set_axis_off()
    return ax


def layers(tails: IntArray, heads: IntArray, start: int, end: int) -> tuple[IntArray, FloatArray]:
    """Return the nodes of a graph, the start first and the end last, and places by their distance from the start.

    >>> layers(np.array([0, 0, 7]), np.array([7, 9, 9]), 0, 9)[0]
    array([0, 7, 9])
    """
    steps = {start: 0}
    reached = [start]
    for node in reached:  # which grows meanwhile
        for head in heads[tails == node].tolist():
            if head not in steps:
                steps[head] = steps[node] + 1
                reached.append(head)
    last = max(steps.values()) + 1
    steps |= {node: last for node in np.union1d(tails, heads).tolist() if node not in steps}
    steps[end] = max(last - 1, *(step for node, step in steps.items() if node != end))
    nodes = [start, *(node for node in steps if node not in (start, end)), end]
    across = np.array([steps[node] for node in nodes], dtype=float)
    down = np.zeros(len(nodes))
    for step in np.unique(across):
        same = np.flatnonzero(across == step)
        down[same] = (len(same) - 1) / 2 - np.arange(len(same)) + 0.25 * (step % 2)  # no three in a line
    return np.array(nodes), np.column_stack([1.6 * across, 1.2 * down])  # room for costs


def _wide(n: int, ax: Any) -> Any:
    return new_axes(size=(float(np.clip(2.5 + 0.25 * n, 4.0, 10.0)), 3.2), by=_BY)[0] if ax is None else ax


def _second(ax: Any, places: IntArray, values: FloatArray, how: str, label: str) -> None:
    """Draw values of another unit, with an axis to the right."""
    other = ax.twinx()
    other.plot(places, values, how, color="0.25", linewidth=1.4, markersize=4, drawstyle="steps-mid")
    other.set_ylabel(label, color="0.25")
    other.spines[["top"]].set_visible(False)


def _legend(ax: Any) -> None:
    ax.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _name(ax: Any, names: list[str] | None, what: str) -> None:
    if names is None:
        ax.set_xlabel(what)
    elif len(names) <= _MOST_NAMES:
        upright = max(map(len, names)) > 3
        ax.set_xticks(range(len(names)), names, rotation=90 if upright else 0, fontsize="small")
