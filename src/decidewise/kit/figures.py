"""Axes for the figures that notebooks show; Matplotlib is imported when one is drawn."""

from __future__ import annotations

from typing import Any

from decidewise.kit.extras import require

#: The colours of Okabe and Ito (2008), darkened where they are pale, which colour-blind readers can tell apart.
COLORS = ("#0072b2", "#d55e00", "#00805c", "#b5588f", "#b07a00", "#3a97cf", "#4b5563")


def new_axes(n: int = 1, *, size: tuple[float, float], by: str) -> list[Any]:
    """Return the axes of a new figure, side by side; a notebook shows it at the end of the cell.

    Parameters
    ----------
    n : int
    size : tuple of two floats
        The width of each of the axes and their height, in inches.
    by : str
        What is drawn, for the message if Matplotlib is missing.
    """
    require("cli", "matplotlib", by=by)
    from matplotlib import pyplot  # noqa: PLC0415  (an extra)

    _, axes = pyplot.subplots(1, n, figsize=(n * size[0], size[1]), layout="constrained", squeeze=False)
    return list(axes[0])


def without_frame(ax: Any) -> Any:
    """Leave out the upper and the right line of axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
