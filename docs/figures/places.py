"""The table of the field as a figure: the place of every method on every problem, from `field.csv`.

The file is `tables/standings.csv` of `decidewise field report`, of the run that docs/notes/field.md describes.
"""

import csv
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import rankdata

from decidewise.app.pages import INK, LIGHT

ROWS = Path(__file__).with_name("field.csv")
#: The upper ends of the solver calls of a search, with a colour each.
CALLS = {"none": (1, LIGHT[2]), "up to 10,000": (10_000, LIGHT[0]), "more": (np.inf, LIGHT[1])}


def draw_places() -> Figure:
    """Return one line per method: a small mark for each problem, a large one for their mean."""
    with ROWS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "ok"]
    places: dict[str, list[float]] = {}
    calls: dict[str, list[float]] = {}
    for problem in dict.fromkeys(row["problem"] for row in rows):
        own = [row for row in rows if row["problem"] == problem]
        ranks = rankdata([float(row["regret_mean"]) for row in own])
        for row, rank in zip(own, ranks, strict=True):
            places.setdefault(row["method"], []).append(100 * (rank - 1) / (len(own) - 1))
            calls.setdefault(row["method"], []).append(float(row["n_solves"]))
    order = sorted(places, key=lambda method: -float(np.mean(places[method])))
    figure = Figure(figsize=(6.4, 0.185 * len(order) + 1.1), layout="constrained")
    axes = figure.subplots()
    for height, method in enumerate(order):
        color = next(color for most, color in CALLS.values() if np.mean(calls[method]) < most)
        axes.plot(places[method], [height] * len(places[method]), "|", color=color, markersize=6, alpha=0.6)
        axes.plot(np.mean(places[method]), height, "o", color=color, markersize=6)
    axes.set_yticks(range(len(order)), order, fontsize=8)
    axes.set(xlabel="place, from 0 (first) to 100 (last)", ylim=(-0.8, len(order) - 0.2), xlim=(-3, 103))
    axes.grid(axis="y", color=INK, alpha=0.08)
    marks = [
        Line2D([], [], marker="o", linestyle="none", color=color, label=name) for name, (_, color) in CALLS.items()
    ]
    figure.legend(
        handles=marks, title="solver calls of the search and the fit", loc="outside lower center", ncols=3,
        frameon=False, fontsize=8.5, title_fontsize=8.5,
    )  # fmt: skip
    return figure
