"""What the methods of `make real` do on rows that it never tests: a rehearsal on the training rows of its first window.

A rule of the choice must not be decided by the test rows of `make real`. The training rows of the first window are no
test rows of any window, so rules can be compared on them. This script tests on their last four stretches, each
predicted from all rows before it, and prints the regret of every method; beside the choice also that with SPO+ among
its candidates.

    python examples/rehearsal.py [--only restaurant bakery]

It takes three minutes, most of them for the schedules, and needs the data of `docs/real_data.md`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.base import clone

from decidewise import WiseRegressorCV, normalized_regret
from decidewise.data import Dataset
from decidewise.kit.errors import TrainingWarning
from decidewise.kit.importable import resolve
from decidewise.kit.progress import tracked
from decidewise_bench.experiments import Method, PlannedProblem, read_plan
from decidewise_bench.real import PLANS
from decidewise_bench.real.files import with_data

N_STRETCHES = 4
CHOICE, WITH_SPO_PLUS = "choice", "choice with SPO+"


def stretches(task: PlannedProblem) -> Iterator[tuple[Dataset, Dataset]]:
    """Yield training and test rows, all from the training rows of the first window."""
    n_train, n_test = task.samples[0], task.test_samples
    rows = resolve(task.data)(n_train + n_test, seed=0, **task.options)[:n_train]
    for later in reversed(range(N_STRETCHES)):
        end = n_train - later * n_test
        yield rows[: end - n_test], rows[end - n_test : end]


def regrets(methods: Sequence[Method], train: Dataset, test: Dataset) -> dict[str, float]:
    """Return the regret of each method on the test rows, and of the choice with SPO+."""
    found: dict[str, float] = {}

    def measure(name: str, model: Any) -> None:
        found[name] = normalized_regret(test.problem, model.predict(test.X), test.costs)

    for method in methods:
        model = method.estimator(train.problem, random_state=0).fit(train.X, train.costs)
        measure(method.name, model)
        if isinstance(model, WiseRegressorCV):
            measure(WITH_SPO_PLUS, clone(model).set_params(train_solves="auto").fit(train.X, train.costs))
    return found


def main(only: tuple[str, ...] = ()) -> None:
    plan = read_plan(PLANS / "real.toml")
    if unknown := set(only) - {task.name for task in plan.problems}:
        known = ", ".join(task.name for task in plan.problems)
        raise SystemExit(f"no task is named {', '.join(sorted(unknown))}; there are {known}.")
    plan = with_data(plan, print)
    tasks = [task for task in plan.problems if "file" in task.options and (not only or task.name in only)]
    if not tasks:
        print("No task of `make real` has its data on this machine; docs/real_data.md says where they are from.")
        return
    columns = [*dict.fromkeys(method.name for task in tasks for method in task.methods), WITH_SPO_PLUS]
    table, means = Table("task", *columns), []
    for task in tracked(tasks, "Rehearsing"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrainingWarning)
            found = [regrets(task.methods, *rows) for rows in stretches(task)]
        mean = [np.mean([row.get(name, np.nan) for row in found]) for name in columns]
        table.add_row(task.name, *(f"{value:.2f}" for value in mean))
        means.append(mean)
    Console(width=150).print(table)
    above = 100 * (np.array(means) / np.array(means)[:, [columns.index(CHOICE)]] - 1)
    for name, change in zip(columns, above.T, strict=True):
        if name != CHOICE:
            known = change[np.isfinite(change)]
            error = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.nan
            print(f"{name}: {known.mean():+.1f} ± {error:.1f} % of the regret of the choice")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare the methods of `make real` on rows that it never tests.")
    parser.add_argument("--only", nargs="*", default=(), help="tasks, by their names in the plan; by default all")
    main(tuple(parser.parse_args().only))
