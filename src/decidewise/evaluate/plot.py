"""A comparison as a figure: the regret of each model with its interval, and over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from decidewise.kit.notebook import COLORS, new_axes, without_frame

if TYPE_CHECKING:
    from decidewise.evaluate.comparison import Comparison

#: The most stretches of rows, and the fewest rows of one, whose mean regret is a point of a line.
_MOST_STRETCHES, _FEWEST_ROWS = 20, 5


def plot_comparison(found: Comparison, ax: Any = None) -> Any:
    """Draw a comparison; see `Comparison.plot`."""
    over_time = ax is None and found.in_order and found.regrets is not None and found.n_samples >= 2 * _FEWEST_ROWS
    if ax is None:
        ax, *others = new_axes(1 + over_time, size=(5.5, max(2.2, 0.9 + 0.4 * len(found))), by="the figure of regrets")
        if others:
            _draw_over_time(found, others[0])
    for place, row in enumerate(found):
        color = COLORS[place % len(COLORS)]
        ax.plot([row.regret.low, row.regret.high], [place, place], color=color, linewidth=2)
        ax.plot(row.regret.estimate, place, "o", color=color, markersize=7)
    ax.set_yticks(range(len(found)), [str(row.name) for row in found])
    for place, label in enumerate(ax.get_yticklabels()):
        label.set_color(COLORS[place % len(COLORS)])  # the legend of both panels
    ax.set_ylim(len(found) - 0.5, -0.5)  # the first model is on top, as in the table
    ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
    ax.set_xlabel(f"regret % (lower is better), with {100 * found.level:g} % intervals")
    return without_frame(ax)


def _draw_over_time(found: Comparison, ax: Any) -> None:
    """Draw the mean regret of each model in consecutive stretches of rows."""
    n = found.n_samples
    parts = np.array_split(np.arange(n), max(2, min(_MOST_STRETCHES, n // _FEWEST_ROWS)))
    middle = [(part[0] + part[-1]) / 2 for part in parts]
    highest = 0.0
    for place, row in enumerate(found):
        regrets = (found.regrets or {})[row.name]
        means = [float(regrets[part].mean()) for part in parts]
        ax.plot(middle, means, color=COLORS[place % len(COLORS)])
        highest = max(highest, *means)
    ax.set_ylim(0.0, 1.05 * highest or 1.0)
    ax.set_xlabel("row, in the order of time")
    ax.set_ylabel("mean regret")
    without_frame(ax)
