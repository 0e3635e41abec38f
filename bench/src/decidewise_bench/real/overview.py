"""All tasks and methods in one table: where the choice stands, and where the change of measure pays.

Methods are compared window by window, so that windows that are hard for all of them cancel. The standard error is that
of the mean of these differences. With few windows it is itself uncertain, and the method with the lowest regret is
found on the test rows, which favours it over the choice; the table says what it says no more exactly than that.

The usual one-standard-error rule takes the standard error of the lowest regret itself, which is mostly larger: windows
that are hard for all methods count in it. Where the choice stands is told by both.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from math import isfinite, nan, sqrt
from typing import ClassVar

from decidewise_bench.real import METHODS
from decidewise_bench.report.differences import Difference
from decidewise_bench.report.formats import csv_text, markdown_bold, markdown_table, markdown_text
from decidewise_bench.report.results import Board, Trials, in_order

CHOICE = "choice"
#: What the choice must not be worse than: these take no fitting at all.
BASELINES = ("training mean", "given forecast")
#: The pairs that differ in the change of measure alone: without it, and with it.
PAIRS = (("least squares", "WISE"), ("least squares", "iterated"), ("trees", "WISE trees"))


@dataclass(frozen=True)
class Task:
    """One row of the table: the trials of each method on one task."""

    board: Board
    trials: Mapping[str, Trials]

    @cached_property
    def best(self) -> str:
        """The method with the lowest mean regret, the choice aside; "" if there is none."""
        means = {name: cell.regret.mean for name, cell in self.trials.items() if cell.trials and name != CHOICE}
        return min(means, key=lambda name: means[name], default="")

    def difference(self, one: str, other: str) -> Difference:
        """Return the regret of one method minus that of another."""
        return Difference.of(self.trials.get(one, Trials()), self.trials.get(other, Trials()))

    @property
    def to_best(self) -> Difference:
        """The choice minus the best of the others."""
        return self.difference(CHOICE, self.best)

    @property
    def best_error(self) -> float:
        """The standard error of the best of the others itself; NaN with fewer than two windows."""
        cell = self.trials.get(self.best, Trials())
        return cell.regret.std / sqrt(len(cell.trials)) if len(cell.trials) > 1 else nan

    @property
    def best_regret(self) -> str:
        """The regret of the best of the others, with its standard error, as text."""
        mean = self.trials.get(self.best, Trials()).regret.mean
        return str(Difference(mean, self.best_error)).removeprefix("+")

    @property
    def beaten_by(self) -> list[str]:
        """The baselines that are better than the choice by more than a standard error."""
        return [name for name in BASELINES if self.difference(CHOICE, name).verdict == "higher"]


@dataclass(frozen=True)
class Overview:
    """All tasks."""

    tasks: Sequence[Task]
    name: ClassVar[str] = "overview"  # the name of its files, and its id on the page

    @classmethod
    def of(cls, boards: Iterable[Board]) -> Overview:
        """Return one task for each board; of several settings, the one with the most samples."""
        tasks = []
        for board in boards:
            last = board.settings[-1]
            tasks.append(Task(board, {at.method: cell for (where, at), cell in board.cells.items() if where == last}))
        return cls(tasks)

    @cached_property
    def methods(self) -> list[str]:
        """All methods, in the order of the tables."""
        return in_order((name for task in self.tasks for name in task.trials), first=METHODS)

    @property
    def judged(self) -> list[Task]:
        """The tasks in which the choice can be compared with the best."""
        return [task for task in self.tasks if task.to_best.verdict]

    @property
    def n_near(self) -> int:
        """The number of tasks in which the choice is within a standard error of the best, or below."""
        return sum(task.to_best.verdict != "higher" for task in self.judged)

    @property
    def n_usual(self) -> int:
        """The number of tasks in which the choice is near the best by the usual one-standard-error rule."""
        return sum(task.to_best.mean <= task.best_error for task in self.judged)

    @property
    def headline(self) -> str:
        """The result in one line."""
        return f"{self.n_near} of {len(self.judged)} tasks: the choice within one standard error of the best method"

    @property
    def excesses(self) -> dict[str, tuple[float, float]]:
        """By how many percent of the lowest regret of a task each method is above it: the mean and the largest.

        Only methods that ran on all tasks with a lowest regret above zero are here, those with the lowest mean first.
        """
        tasks = [{name: cell.regret.mean for name, cell in task.trials.items() if cell.trials} for task in self.tasks]
        tasks = [means for means in tasks if means and min(means.values()) > 0]
        found = {}
        for name in self.methods:
            above = [100 * (means[name] / min(means.values()) - 1) for means in tasks if name in means]
            if above and len(above) == len(tasks):
                found[name] = sum(above) / len(above), max(above)
        return dict(sorted(found.items(), key=lambda item: item[1]))

    @property
    def sentences(self) -> list[str]:
        """The results in words: of the choice, of all methods, and of each pair."""
        beaten = [f"{task.board.problem_title} ({', '.join(task.beaten_by)})" for task in self.judged if task.beaten_by]
        where = f"on {len(beaten)} ({'; '.join(beaten)})" if beaten else "on none"
        found = [
            f"On {self.n_near} of {len(self.judged)} tasks the regret of the choice is at most one standard error "
            "above the lowest of all other methods, by the standard error of this difference.",
            f"On {self.n_usual} of {len(self.judged)} it is so by the standard error of the lowest regret itself: the "
            "usual one-standard-error rule.",
            f"It is more than one standard error above the {' or the '.join(BASELINES)} {where}.",
        ]
        if excesses := self.excesses:
            listed = ", ".join(f"{name} {mean:.1f} ({most:.0f})" for name, (mean, most) in excesses.items())
            found.append(f"Regret above the lowest of a task, in percent of it, on average (and at most): {listed}.")
        for without, measured in PAIRS:
            words: dict[str, list[str]] = {"lower": [], "even": [], "higher": []}
            for task in self.tasks:
                verdict = task.difference(measured, without).verdict
                if verdict:
                    words[verdict].append(task.board.problem_title)
            parts = [f"{word} on {len(titles)} ({'; '.join(titles)})" for word, titles in words.items() if titles]
            if parts:
                found.append(f"Regret of {measured}, compared with {without}: {', '.join(parts)}.")
        return found

    @property
    def difference_heads(self) -> list[str]:
        """The headings of the differences."""
        return ["choice − best", *(f"{measured} − {without}" for without, measured in PAIRS)]

    def differences(self, task: Task) -> list[Difference]:
        """Return the differences of a task in the order of their headings."""
        return [task.to_best, *(task.difference(measured, without) for without, measured in PAIRS)]

    def regrets(self, task: Task) -> list[tuple[str, bool]]:
        """Return the mean regrets of a task as text, and which is the lowest; "–" for a method that is not tried."""
        lowest = min((cell.regret.mean for cell in task.trials.values() if cell.trials), default=nan)
        return [_shown(task.trials.get(name, Trials()), lowest) for name in self.methods]


def _shown(cell: Trials, lowest: float) -> tuple[str, bool]:
    if not cell.trials:
        return cell.absence if cell.failures or cell.refusals else "–", False
    return f"{cell.regret.mean:.2f}", cell.regret.mean == lowest


def to_markdown(overview: Overview) -> str:
    """Write two tables of one line per task: the mean regrets, the lowest in bold; differences with standard errors."""
    regrets, differences = [["task", *overview.methods]], [["task", "best", "its regret", *overview.difference_heads]]
    for task in overview.tasks:
        title = markdown_text(task.board.problem_title)
        regrets.append([title, *(markdown_bold(text, lowest) for text, lowest in overview.regrets(task))])
        best = markdown_text(task.best), task.best_regret
        differences.append([title, *best, *map(str, overview.differences(task))])
    return markdown_table(regrets) + "\n" + markdown_table(differences)


def to_csv(overview: Overview) -> str:
    """Write one line per task and method: mean, standard deviation and windows, and the difference to the best."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["task", "method", "windows", "regret_mean", "regret_std", "best", "to_best", "to_best_error", "seconds"]
    )
    for task in overview.tasks:
        for name in overview.methods:
            cell = task.trials.get(name)
            if cell is not None:
                numbers = (*cell.regret, *task.difference(name, task.best), cell.seconds.mean)
                mean, std, gap, error, seconds = (f"{value:.6g}" if isfinite(value) else "" for value in numbers)
                start = [csv_text(task.board.problem), csv_text(name), len(cell.trials)]
                writer.writerow([*start, mean, std, csv_text(task.best), gap, error, seconds])
    return text.getvalue()
