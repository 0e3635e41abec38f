"""The words of the site, each as a small picture: cost, decision, regret, floor, direction."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from decidewise.app.pages import INK, LIGHT
from decidewise.problems import ShortestPath

BLUE, ORANGE, GREEN = LIGHT[:3]
GRID = ShortestPath(3, 3)
#: Where the edges of the grid run: the entries of a decision in their order, between places (column, row) of the nodes.
EDGES = list(zip(*(np.column_stack([nodes % 3, 2 - nodes // 3]) for nodes in (GRID.tails, GRID.heads)), strict=True))
#: Minutes on each edge as they came, and as they were predicted.
MINUTES = np.array([4, 2, 6, 5, 7, 1, 4, 7, 2, 3, 5, 2], dtype=float)
PREDICTED = np.array([3, 2, 4, 6, 4, 3, 6, 5, 4, 3, 3, 3], dtype=float)
BEST, CHOSEN = GRID.solve(MINUTES[None])[0], GRID.solve(PREDICTED[None])[0]


def draw_cost() -> Figure:
    """Return the grid with its costs."""
    figure, axes = _empty()
    _roads(axes, MINUTES)
    return figure


def draw_decision() -> Figure:
    """Return the route that the predicted costs lead to."""
    figure, axes = _empty()
    _roads(axes, PREDICTED)
    _route(axes, CHOSEN, ORANGE, 0.0)
    return figure


def draw_regret() -> Figure:
    """Return that route and the best one in hindsight, with what both took."""
    figure, axes = _empty()
    _roads(axes, MINUTES)
    _route(axes, CHOSEN, ORANGE, 0.05)
    _route(axes, BEST, GREEN, -0.05)
    took, least = MINUTES @ CHOSEN, MINUTES @ BEST
    for x, text, color in (
        (0.2, f"{took:g} min", ORANGE),
        (1.0, f"− {least:g} min", GREEN),
        (1.85, f"= {took - least:g} min", INK),
    ):
        axes.text(x, -0.45, text, color=color, ha="center", fontsize=10, weight="bold")
    return figure


def draw_floor() -> Figure:
    """Return many mornings of one forecast: the best guess is still wrong on some of them."""
    rng = np.random.default_rng(2)
    mean = np.array([10.0, 12.0])  # two routes, the same forecast every morning
    minutes = mean + rng.normal(0, 2.5, size=(30, 2))
    figure = Figure(figsize=(3.4, 2.6), layout="constrained")
    axes = figure.subplots()
    is_wrong = minutes[:, 0] > minutes[:, 1]
    axes.plot([4, 18], [4, 18], color=INK, linewidth=0.8, alpha=0.5)
    axes.scatter(*minutes[~is_wrong].T, s=18, color=BLUE)
    axes.scatter(*minutes[is_wrong].T, s=18, color=ORANGE)
    for first, second in minutes[is_wrong]:
        axes.plot([first, first], [second, first], color=ORANGE, linewidth=1)
    axes.plot(*mean, "P", color=INK, markersize=9)
    axes.annotate("expected", mean, (-8, -3), textcoords="offset points", ha="right", fontsize=9, weight="bold")
    axes.text(5.2, 16.8, "first is better", color=BLUE, fontsize=9)
    axes.text(17.8, 5.2, "second is better:\nno forecast\nknew it", color=ORANGE, ha="right", fontsize=9)
    axes.set(xlim=(5, 18), ylim=(5, 18), xlabel="first route, min", ylabel="second route, min")
    return figure


def draw_direction() -> Figure:
    """Return a region, two cost vectors of one direction and a third beyond a border between decisions."""
    figure = Figure(figsize=(3.4, 2.6), layout="constrained")
    axes = figure.subplots()
    corners = np.array([[0.2, 2.4], [0.7, 0.7], [2.4, 0.2], [2.4, 2.4]])
    axes.fill(*corners.T, facecolor=to_rgba(BLUE, 0.15), edgecolor=BLUE, linewidth=1.2)
    axes.text(1.4, 1.95, "what can be decided", color=BLUE, ha="center", fontsize=9)
    for cost, color in (((2.2, 0.95), GREEN), ((1.1, 0.475), GREEN), ((2.2, 0.5), ORANGE)):
        best = corners[np.argmin(corners @ np.array(cost))]
        axes.annotate("", xy=cost, xytext=(0, 0), arrowprops={"arrowstyle": "->", "color": color, "lw": 2})
        axes.plot(*best, "o", color=color, markersize=8, zorder=3)
    axes.set(xlim=(-0.05, 2.6), ylim=(-0.05, 2.6), xlabel="first entry", ylabel="second entry", aspect="equal")
    return figure


def _empty() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(3.4, 2.6), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(-0.35, 2.35), ylim=(-0.55, 2.3), aspect="equal")
    axes.set_axis_off()
    return figure, axes


def _roads(axes: Axes, minutes: np.ndarray) -> None:
    for (start, end), cost in zip(EDGES, minutes, strict=True):
        axes.plot(*np.array([start, end]).T, color=INK, linewidth=1, alpha=0.35, zorder=1)
        is_level = start[1] == end[1]
        shift = (0, 0.09) if is_level else (0.08, 0)
        axes.text(*((start + end) / 2 + shift), f"{cost:g}", fontsize=9, ha="center" if is_level else "left",
                  va="bottom" if is_level else "center")  # fmt: skip
    places = np.array([(column, row) for row in range(3) for column in range(3)])
    axes.plot(*places.T, "o", color=INK, markersize=5, zorder=3)
    axes.text(-0.12, 2.0, "A", ha="right", va="center", weight="bold", fontsize=11)
    axes.text(2.12, 0.0, "B", ha="left", va="center", weight="bold", fontsize=11)


def _route(axes: Axes, decision: np.ndarray, color: str, shift: float) -> None:
    for start, end in (edge for edge, is_taken in zip(EDGES, decision > 0.5, strict=True) if is_taken):
        axes.plot(*(np.array([start, end]) + shift).T, color=color, linewidth=4, alpha=0.9, zorder=2,
                  solid_capstyle="round")  # fmt: skip


WORDS: dict[str, Callable[[], Figure]] = {
    "cost": draw_cost,
    "decision": draw_decision,
    "regret": draw_regret,
    "floor": draw_floor,
    "direction": draw_direction,
}
