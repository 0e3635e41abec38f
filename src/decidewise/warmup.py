"""Compile every kernel ahead of time, so that no first answer has to wait."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.progress import track

from decidewise.models import DecisionRegressor
from decidewise.problems import Assignment, Knapsack, Portfolio, Problem, ShortestPath, TravellingSalesman


def warm_up() -> None:
    """Solve a small instance of every problem, and train a step on every loss that has kernels of its own."""
    console = Console(stderr=True)
    begin = perf_counter()
    for task in track(_tasks(), "Compiling", console=console, transient=True):
        task()
    console.print(f"All kernels are ready ({perf_counter() - begin:.1f} s).", highlight=False)


def _tasks() -> list[Callable[[], object]]:
    rng = np.random.default_rng(0)
    weights = rng.uniform(3, 8, size=(2, 40))
    path, tour = ShortestPath(3, 3), TravellingSalesman(8)
    return [
        lambda: _solve(path),
        lambda: _solve(Assignment(4)),
        lambda: _solve(Knapsack(weights[:, :10], [20.0, 20.0])),
        lambda: _solve(Knapsack(weights, [60.0, 60.0])),
        lambda: _solve(Portfolio(np.eye(4), 0.2)),
        lambda: _solve(tour),
        lambda: _train(path, "cave"),
        lambda: _train(path, "cave+"),
        lambda: _train(path, "lava"),
        lambda: _train(tour, "cave"),
    ]


def _costs(problem: Problem, n_rows: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(1, 2, size=(n_rows, problem.n_costs)).round(1)  # with ties


def _solve(problem: Problem) -> None:
    problem.solve(_costs(problem, 5))


def _train(problem: Problem, loss: str) -> None:
    X = np.random.default_rng(2).normal(size=(16, 2))
    DecisionRegressor(problem, loss, epochs=1, random_state=0).fit(X, _costs(problem, 16))
