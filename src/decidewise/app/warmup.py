"""Compile every kernel ahead of time, so that the first solve and the first fit are fast."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from decidewise.kit.compilation import watch
from decidewise.kit.progress import watched
from decidewise.losses import Cave, Loss
from decidewise.models import DecisionRegressor
from decidewise.models.linear.blocks import Blocks
from decidewise.models.linear.column_sums import column_sums
from decidewise.problems import (
    Assignment,
    Inventory,
    Knapsack,
    Levels,
    LinearProgram,
    Portfolio,
    Problem,
    ShortestPath,
    Storage,
    TravellingSalesman,
    VehicleRouting,
)
from decidewise.rows.source import ColumnMatrix, Rows


def warm_up() -> None:
    """Solve a small instance of each problem with kernels, and train one epoch of each loss with kernels of its own."""
    console = Console(stderr=True)
    begin = perf_counter()
    columns = TextColumn("Compiling {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    silent_before, watch.silent = watch.silent, True
    try:
        with watched(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("", total=len(tasks := _tasks()))
            for name, work in tasks.items():
                progress.update(bar, description=name)
                work()
                progress.advance(bar)
    finally:
        watch.silent = silent_before
    console.print(f"All kernels are ready ({perf_counter() - begin:.1f} s).", highlight=False)


def _tasks() -> dict[str, Callable[[], None]]:
    rng = np.random.default_rng(0)
    weights = rng.uniform(3, 8, size=(2, 40))
    roads = ShortestPath.from_edges([0, 1, 2, 2, 1], [1, 2, 1, 3, 3], source=0, target=3)  # with a cycle
    path, tour = ShortestPath(3, 3), TravellingSalesman(8)
    return {
        "shortest paths": lambda: _solve(path),
        "shortest paths in any graph": lambda: _solve(roads),
        "assignments": lambda: _solve(Assignment(4)),
        "small knapsacks": lambda: _solve(Knapsack(weights[:, :10], [20.0, 20.0])),
        "large knapsacks": lambda: _solve(Knapsack(weights, [60.0, 60.0])),
        "levels": lambda: _solve(Levels([[0, 1, 2]] * 4, budget=5)),
        "portfolios": lambda: _solve(Portfolio(np.eye(4), 0.2)),
        "inventory": lambda: _solve(Inventory([1.0, 2.0, 1.0], 2.0)),
        "inventory by row": lambda: _solve(Inventory([[1.0, 2.0, 1.0]] * 5, 2.0)),
        "storage": lambda: _solve(Storage(4, 1.0, 2.0)),
        "storage by row": lambda: _solve(Storage(4, 1.0, [2.0] * 5)),
        "routes": lambda: _solve(VehicleRouting([1.0, 1.0, 1.0, 1.0], 3.0, 2)),
        "hard routes": lambda: _solve(VehicleRouting(np.ones(61), 61.0, 1, gap=1.0)),
        "linear programs": lambda: _solve(LinearProgram(weights[:, :6], [20.0, 20.0], upper=1, sense="max")),
        "tours": lambda: _solve(tour),
        "CaVE": lambda: _train(path, "cave"),
        "CaVE+": lambda: _train(path, "cave+"),
        "LAVA": lambda: _train(path, "lava"),
        "RFWO": lambda: _train(path, "rfwo"),
        "I-MLE": lambda: _train(path, "imle"),
        "CaVE on tours": lambda: _train(tour, Cave(relaxed=False)),
        "sums over columns of files": _sum_columns,
    }


def _costs(problem: Problem, n_rows: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(1, 2, size=(n_rows, problem.n_costs)).round(1)  # with ties


def _solve(problem: Problem) -> None:
    problem.solve(_costs(problem, 5))


def _sum_columns() -> None:
    column = ColumnMatrix([np.ones(1)])
    column_sums(Blocks(None, exponent=1.0).of(Rows(column, column)), np.zeros(1))


def _train(problem: Problem, loss: str | Loss) -> None:
    X = np.random.default_rng(2).normal(size=(16, 2))
    # The paper's protocol does not compare the end with the start, which after one epoch says nothing.
    DecisionRegressor(problem, loss, protocol="paper", epochs=1, random_state=0).fit(X, _costs(problem, 16))
