"""The paper's experiments with exact fits: regret against samples, beside the published numbers of all methods."""

import csv
from importlib.resources import files
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from decidewise import GeneralizedLinear, WiseRegressor
from decidewise.app.pages import INK, LIGHT
from decidewise.data import make_knapsack, make_portfolio, make_shortest_path
from decidewise.evaluate import Hindsight

TRIALS = 20
#: How the paper's trials are drawn; docs/notes/paper_protocol.md says why.
SETTINGS: dict[str, dict[str, Any]] = {
    "shortest path": {"make": make_shortest_path, "seed": 42, "n_test": 10_000, "degrees": (1, 4, 8)},
    "knapsack": {
        "make": lambda n, **more: make_knapsack(n, instance_seed=42, **more), "seed": 43, "n_test": 2_000,
        "degrees": (1, 2, 4),
    },
    "portfolio": {
        "make": lambda n, **more: make_portfolio(n, instance_seed=42, factor_noise=False, **more), "seed": 43,
        "n_test": 5_000, "degrees": (1, 3, 7),
    },
}  # fmt: skip
SAMPLES = {"knapsack": (100, 200, 400, 800)}
#: The lines: exact fits of linear models.
FITS = {"MSE": GeneralizedLinear(), "WISE": WiseRegressor()}
#: The published methods, with a marker each.
PUBLISHED = {"MSE": "o", "WISE": "s", "SPO+": "D", "PFY": "^", "DBB": "v", "CAVE": "P", "LAVA": "X"}


def draw_exact_fits(problem: str) -> Figure:
    """Return one panel per degree: lines are exact fits here, open marks are published."""
    setting = SETTINGS[problem]
    figure = Figure(figsize=(7.6, 3.2), layout="constrained")
    panels = figure.subplots(1, len(setting["degrees"]))
    for axes, degree in zip(panels, setting["degrees"], strict=True):
        _draw_panel(axes, problem, degree, **setting)
    panels[0].set_ylabel("regret, %")
    shown = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=8.5)
    return figure


def _draw_panel(axes: Axes, problem: str, degree: int, *, make: Any, seed: int, n_test: int, degrees: Any) -> None:
    samples = SAMPLES.get(problem, (200, 400, 800, 1600))
    regrets: dict[str, list[float]] = {}
    for n in samples:
        found: dict[str, list[float]] = {}
        for trial in range(TRIALS):
            train, test = make(n + n_test, degree=degree, seed=seed + trial).split(n)
            hindsight = Hindsight.of(test.problem, test.costs)
            for name, model in FITS.items():
                prediction = model.fit(train.X, train.costs).predict(test.X)
                found.setdefault(name, []).append(hindsight.normalized_regret(prediction))
            found.setdefault("floor", []).append(hindsight.normalized_regret(test.mean_costs))
        for name, values in found.items():
            regrets.setdefault(name, []).append(float(np.mean(values)))
    colors = dict(zip(FITS, LIGHT, strict=False)) | {"floor": INK}
    for name, values in regrets.items():
        line, label = ((0, (4, 3)), "floor") if name == "floor" else ("-", f"{name}, exact")
        axes.plot(samples, values, color=colors[name], linestyle=line, linewidth=1.6, label=label)
    published = [row for row in _published(problem) if int(row["degree"]) == degree]
    for k, method in enumerate(PUBLISHED):
        rows = [row for row in published if row["method"].upper() == method]
        at = [int(row["samples"]) for row in rows], [float(row["regret_mean"]) for row in rows]
        if rows:
            axes.plot(*at, PUBLISHED[method], color=LIGHT[k], markersize=5, linestyle="none", markerfacecolor="none",
                      label=f"{method} published")  # fmt: skip
    axes.set(xscale="log", xlabel="training samples", title=f"{problem}, degree {degree}")
    axes.set_xticks(samples, [f"{n}" for n in samples])
    axes.minorticks_off()
    if problem != "portfolio":  # where all methods are close
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        ticks = [tick for tick in (4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 80) if low <= tick <= high]
        axes.set_yticks(ticks, [f"{tick}" for tick in ticks])
        axes.minorticks_off()


def _published(problem: str) -> list[dict[str, str]]:
    text = (files("decidewise_bench.paper") / "published" / f"{problem.replace(' ', '_')}.csv").read_text(
        encoding="utf-8"
    )
    return list(csv.DictReader(text.splitlines()))
