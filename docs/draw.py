"""Draw the two figures of the pages that explain, as SVG: `python docs/draw.py`."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

IMAGES = Path(__file__).parent / "images"
INK, BLUE, ORANGE, GREEN, PAPER = "#333333", "#0072b2", "#d55e00", "#009e73", "#ffffff"

#: The tree: places and texts.
QUESTIONS = {
    "have": (4.6, 9.3, "What do you have?"),
    "table": (1.5, 7.4, "one line per sample\nand item?"),
    "problem": (4.6, 7.4, "a problem of\nyour own?"),
    "size": (8.1, 7.4, "what is hard?"),
}
ANSWERS = {
    "wide": (0.75, 4.6, "no: a wide table\n\nWiseRegressorCV(\n  problem)"),
    "long": (2.3, 4.6, "yes: a long table\n\nread_table(rows=,\n  items=)"),
    "tool": (3.85, 4.6, "in CVXPY, Pyomo,\nGurobi, MPS\n\nfrom_cvxpy, ...\nread_problem"),
    "built": (5.35, 4.6, "no: built in\n\nShortestPath,\nKnapsack, ..."),
    "solver": (6.75, 4.6, "slow solver,\nmany rows\n\nWiseRegressor()\n.partial_fit"),
    "known": (8.1, 4.6, "known costs,\nlimits by row\n\nKnownCosts"),
    "network": (9.45, 4.6, "a network\n\nloss_module(\n  'spo+', ...)"),
}
EDGES = [
    ("have", "table"), ("have", "problem"), ("have", "size"), ("table", "wide"), ("table", "long"), ("problem", "tool"),
    ("problem", "built"), ("size", "solver"), ("size", "known"), ("size", "network"),
]  # fmt: skip


def draw_tree() -> Figure:
    """Return the tree from what a reader has to the call."""
    figure = Figure(figsize=(10, 4.6), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-0.2, 10.2), ylim=(3.1, 10))
    axes.axis("off")
    places = {**QUESTIONS, **ANSWERS}
    for start, end in EDGES:
        (x, y, _), (u, v, _) = places[start], places[end]
        turn = (y + v) / 2 + 0.1
        axes.plot([x, x, u, u], [y, turn, turn, v], color="#9aa5b1", lw=1.3, zorder=1)
    for x, y, text in QUESTIONS.values():
        _box(axes, x, y, text, BLUE, "white", 11, "DejaVu Sans")
    for x, y, text in ANSWERS.values():
        _box(axes, x, y, text, PAPER, INK, 8, "DejaVu Sans Mono")
    return figure


def draw_words() -> Figure:
    """Return the picture of directions: equal decisions, and a small error that changes one."""
    figure = Figure(figsize=(8.4, 3.7), facecolor=PAPER, layout="constrained")
    titles = ("the same direction, the same decision", "a small error near an edge: another decision")
    for axes, title, vectors in zip(
        figure.subplots(1, 2), titles, ([(1.0, 0.6), (2.0, 1.2)], [(2.0, 0.75), (2.0, 0.45)]), strict=True
    ):
        corners = np.array([[0.2, 2.4], [0.7, 0.7], [2.4, 0.2], [2.4, 2.4]])
        axes.fill(*corners.T, facecolor="#dbe9f4", edgecolor=BLUE, lw=1.2)
        axes.text(1.85, 1.95, "what can be\ndecided", color=BLUE, ha="center", va="center", fontsize=9)
        for cost, color, name in zip(vectors, (ORANGE, GREEN), ("costs", "prediction"), strict=True):
            best = corners[np.argmin(corners @ np.array(cost))]
            axes.annotate("", xy=cost, xytext=(0, 0), arrowprops={"arrowstyle": "->", "color": color, "lw": 2})
            axes.plot(*best, "o", color=color, ms=9 if name == "costs" else 5, zorder=3)
            axes.plot([], [], color=color, lw=2, marker="o", label=name)
        axes.set(title=title, xlim=(-0.1, 2.6), ylim=(-0.1, 2.6), aspect="equal")
        axes.set_xlabel("first entry: its cost, or how much of it")
        axes.title.set_fontsize(10)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _box(axes, x, y, text, fill, ink, size, family):
    axes.text(
        x, y, text, ha="center", va="center", fontsize=size, color=ink, family=family, zorder=2,
        bbox={"boxstyle": "round,pad=0.5", "facecolor": fill, "edgecolor": BLUE},
    )  # fmt: skip


def main() -> None:
    """Write both figures; the same figure is the same file."""
    mpl.rcParams["svg.hashsalt"] = "decidewise"
    mpl.rcParams["svg.fonttype"] = "none"
    for name, figure in {"choose": draw_tree(), "words": draw_words()}.items():
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
