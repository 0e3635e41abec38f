"""Show how fast decisions improve with data: as n^-1/2 over a polytope in the worst case, as n^-1 over a ball.

The costs are drawn so that the WISE minimiser is linear: `E[y|x] / E[‖y‖ | x] = margin · x₁ · v` for a unit vector `v`
and features of ±1. The exact linear WISE fit is scored by its excess decision risk,
`E[y|x]·(w(f(x)) - w(E[y|x]))`, averaged over all values of the features and over trials.

The slow rate is a worst case over distributions: for every n, the worst of several margins of order n^-1/2 is taken. A
larger margin is learnt from fewer samples, and with a smaller margin mistakes cost less. Over a ball the rate is fast
if the margin is fixed, which is the paper's assumption `‖E[y|x]‖ >= γ`, and slow if it shrinks.

    python examples/rates.py [--quick] [out/rates.png]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from decidewise.evaluate import decision_regret
from decidewise.kit.checks import FloatArray
from decidewise.models import WiseRegressor
from decidewise.problems import Ball, Problem, TopK

#: Every value of the features, all equally likely.
FEATURES = np.array(list(product([-1.0, 1.0], repeat=2)))
SIZES = tuple(2**k for k in range(5, 13))


class Case(NamedTuple):
    """A problem, the margins of which the worst counts, and the exponent of n in the paper's bound."""

    name: str
    problem: Problem
    margins: Sequence[float]
    shrink: bool  # whether margins are in units of n^-1/2
    theory: float


POLYTOPE = TopK(20, 10, sense="min")
BALL = Ball(20)
CASES = (
    Case("10 of 20 items, margin ~ 1/√n", POLYTOPE, (0.5, 1, 2, 4), True, -1 / 2),
    Case("ball, margin ~ 1/√n", BALL, (0.5, 1, 2, 4), True, -1 / 2),
    Case("ball, margin 1/2", BALL, (0.5,), False, -1.0),
)


def bayes(X: FloatArray, margin: float, d: int) -> FloatArray:
    """Return the WISE minimiser, `E[y|x] / E[‖y‖ | x]`, whose norm is the margin: (n, 2) -> (n, d)."""
    v = np.resize([1.0, -1.0], d) / np.sqrt(d)
    return margin * X[:, :1] * v


def mean_norm(X: FloatArray) -> FloatArray:
    """Return `E[‖y‖ | x]`: it makes the mean cost nonlinear, but not the WISE minimiser: (n, 2) -> (n, 1)."""
    return np.exp(X[:, 1:] / 2)


def draw_costs(X: FloatArray, margin: float, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw corners of a cube, with sign probabilities that give the right mean, times random norms."""
    probability = (1 + np.sqrt(d) * bayes(X, margin, d)) / 2
    directions = np.where(rng.random(probability.shape) < probability, 1.0, -1.0) / np.sqrt(d)
    return mean_norm(X) * rng.uniform(0.5, 1.5, size=(len(X), 1)) * directions


def excess_risk(problem: Problem, margin: float, n: int, rng: np.random.Generator) -> float:
    """Return the excess decision risk of the WISE fit on one sample of n rows."""
    X = rng.choice(FEATURES, size=n)
    model = WiseRegressor(scale="unit").fit(X, draw_costs(X, margin, problem.n_costs, rng))
    mean_costs = mean_norm(FEATURES) * bayes(FEATURES, margin, problem.n_costs)
    return float(decision_regret(problem, model.predict(FEATURES), mean_costs).mean())


def worst_risk(case: Case, n: int, trials: int) -> tuple[float, float]:
    """Return the mean excess risk over the trials for the worst of the margins, and its standard error."""
    margins = np.array(case.margins) / (np.sqrt(n) if case.shrink else 1.0)
    risks = np.array(
        [
            [excess_risk(case.problem, margin, n, np.random.default_rng([n, trial])) for trial in range(trials)]
            for margin in margins
        ]
    )
    worst = risks[risks.mean(axis=1).argmax()]
    return float(worst.mean()), float(worst.std() / np.sqrt(trials))


def draw_figure(sizes: FloatArray, risks: Sequence[FloatArray], slopes: Sequence[float], out: Path) -> None:
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    for case, (mean, error), slope, marker in zip(CASES, risks, slopes, "os^", strict=True):
        label = f"{case.name}: fitted slope {slope:.2f}"
        points = axes.errorbar(sizes, mean, 2 * error, fmt=marker, markersize=5, capsize=2, label=label)
        level = np.exp(np.mean(np.log(mean) - case.theory * np.log(sizes)))
        axes.plot(sizes, level * sizes**case.theory, "--", color=points[0].get_color(), alpha=0.6)
    axes.plot([], [], "--", color="grey", label="the theory's slopes: -1/2, -1/2 and -1")
    axes.set(
        xscale="log",
        yscale="log",
        title="Excess decision risk of the exact WISE fit",
        xlabel="training samples n",
        ylabel="mean excess decision risk, ± 2 standard errors",
    )
    axes.set_xticks(sizes, [f"{n:g}" for n in sizes])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=150)


def main(trials: int = 100, sizes: Sequence[int] = SIZES, out: Path = Path("out/rates.png")) -> list[float]:
    """Run the experiment, print the slopes, write the figure, and return the slopes in the order of `CASES`."""
    risks = [np.array([worst_risk(case, n, trials) for n in sizes]).T for case in CASES]
    slopes = [float(np.polyfit(np.log(sizes), np.log(mean), 1)[0]) for mean, _ in risks]

    table = Table(title=f"Excess decision risk of the exact WISE fit, mean of {trials} trials")
    for heading in ("case", f"n = {sizes[0]:,}", f"n = {sizes[-1]:,}", "fitted slope", "theory"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for case, (mean, _), slope in zip(CASES, risks, slopes, strict=True):
        table.add_row(case.name, f"{mean[0]:.2g}", f"{mean[-1]:.2g}", f"{slope:.2f}", f"{case.theory:.2f}")
    console = Console()
    console.print(table)
    draw_figure(np.array(sizes, dtype=float), risks, slopes, out)
    console.print(f"Figure: {out}")
    return slopes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the rates of the paper's theory.")
    parser.add_argument("out", type=Path, nargs="?", default=Path("out/rates.png"), help="the file of the figure")
    parser.add_argument("--quick", action="store_true", help="few trials and small samples, in seconds")
    arguments = parser.parse_args()
    if arguments.quick:
        main(trials=10, sizes=SIZES[:5], out=arguments.out)
    else:
        main(out=arguments.out)
