"""The first minute: least squares against WISE on synthetic shortest paths, both fitted exactly."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from rich.text import Text

from decidewise.data import Dataset, make_shortest_path
from decidewise.evaluate import Interval, normalized_regret, regret_interval
from decidewise.kit.files import write_whole
from decidewise.models import GeneralizedLinear, WiseRegressor

DEGREES = (4, 8)
N_TRAIN, N_TEST, SEED = 400, 10_000, 42
MODELS: dict[str, Any] = {"least squares": GeneralizedLinear(), "WISE": WiseRegressor()}


@dataclass(frozen=True)
class Result:
    """One model on one data set: regret and floor in percent, the time of the fit in seconds."""

    degree: int
    model: str
    regret: Interval
    floor: float
    seconds: float


def run_demo(out: Path) -> list[Result]:
    """Fit, print the table, write `demo.png` into the folder `out`, and return the rows."""
    out.mkdir(parents=True, exist_ok=True)  # first, so that a bad path fails before the work starts
    console = Console()
    results = []
    with console.status("Drawing data, fitting, solving 40,000 shortest paths ..."):
        for degree in DEGREES:
            train, test = make_shortest_path(N_TRAIN + N_TEST, degree=degree, seed=SEED).split(N_TRAIN)
            results += [_evaluate(degree, name, train, test) for name in MODELS]
    console.print(_table(results))
    path, content = out / "demo.png", BytesIO()
    _draw(results).savefig(content, dpi=150)
    write_whole({path: content.getvalue()})
    console.print("Figure:", Text(str(path), style="bold"))
    return results


def _evaluate(degree: int, name: str, train: Dataset, test: Dataset) -> Result:
    model = MODELS[name]
    model.fit(train.X, train.costs)  # the first fit also loads libraries, so the second one is timed
    start = perf_counter()
    model.fit(train.X, train.costs)
    seconds = perf_counter() - start
    regret = regret_interval(test.problem, model.predict(test.X), test.costs, rng=np.random.default_rng(SEED))
    floor = normalized_regret(test.problem, test.mean_costs, test.costs)
    return Result(degree, name, regret, floor, seconds)


def _table(results: list[Result]) -> Table:
    table = Table(
        title=f"Shortest path on a 5×5 grid: {N_TRAIN} training and {N_TEST:,} test samples",
        caption="Regret: cost of the chosen paths above the best ones, in percent.\n"
        "Floor: the regret of the true expected costs, which no prediction can beat.",
    )
    for heading in ("degree", "model"):
        table.add_column(heading)
    for heading in ("regret %", "95 % interval", "floor %", "fit"):
        table.add_column(heading, justify="right")
    best = {degree: min(r.regret.estimate for r in results if r.degree == degree) for degree in DEGREES}
    for index, result in enumerate(results):
        regret = f"{result.regret.estimate:.2f}"
        table.add_row(
            str(result.degree),
            result.model,
            f"[bold green]{regret}[/]" if result.regret.estimate == best[result.degree] else regret,
            f"{result.regret.low:.2f} – {result.regret.high:.2f}",
            f"{result.floor:.2f}",
            f"{1e3 * result.seconds:.1f} ms",
            end_section=index + 1 < len(results) and results[index + 1].degree != result.degree,
        )
    return table


def _draw(results: list[Result]) -> Figure:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(MODELS)
    for index, (name, color) in enumerate(zip(MODELS, ("#9aa5b1", "#2a6f97"), strict=True)):
        rows = [result for result in results if result.model == name]
        at = np.arange(len(rows)) + (index - (len(MODELS) - 1) / 2) * width
        heights = np.array([row.regret.estimate for row in rows])
        spread = [heights - [row.regret.low for row in rows], [row.regret.high for row in rows] - heights]
        axes.bar(at, heights, 0.92 * width, yerr=spread, capsize=4, color=color, label=name)
        for x, row in zip(at, rows, strict=True):
            axes.annotate(
                f"{row.regret.estimate:.1f} %", (x, row.regret.high), (0, 4), textcoords="offset points", ha="center"
            )
    floors = {result.degree: result.floor for result in results}
    centers = np.arange(len(floors))
    axes.hlines(list(floors.values()), centers - 0.45, centers + 0.45, color="black", linestyle="dashed", label="floor")
    axes.set_xticks(centers, [f"degree {degree}" for degree in floors])
    axes.set_ylabel("normalised regret, %")
    axes.set_title("Same features, same linear model, no solver in training", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.12)
    axes.legend(frameon=False, loc="upper left")
    return figure
