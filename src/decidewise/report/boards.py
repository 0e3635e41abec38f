"""Rows -> boards: one for each plan and problem, with every trial of every cell and the published numbers beside it."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, nan, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

#: The mode that follows the paper's protocol: the one that published numbers are compared with.
PROTOCOL = "adam"
#: The order of methods in tables and legends: the paper's. Others follow in the order of their rows.
METHODS = ("MSE", "WISE", "SPO+", "PFY", "DBB", "CaVE", "LAVA")
TITLES = {"shortest_path": "Shortest path", "knapsack": "2D knapsack", "portfolio": "Portfolio"}
COLUMNS = (
    "plan", "problem", "degree", "samples", "method", "mode", "trial", "regret", "floor", "label_seconds",
    "train_seconds", "solver_calls", "version", "machine", "status", "reason",
)  # fmt: skip


class Trial(NamedTuple):
    """One finished row: regret and floor in percent, seconds of labels and training, solver calls of both."""

    regret: float
    floor: float
    seconds: float
    solver_calls: float


class Failure(NamedTuple):
    """One failed row."""

    trial: int
    reason: str


class Moments(NamedTuple):
    """Mean and standard deviation (of the sample; 0 for a single value)."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Moments:
        """Return the moments of the finite values, NaN where there are none.

        >>> Moments.of([1.0, 3.0])
        Moments(mean=2.0, std=1.4142135623730951)
        """
        finite = [value for value in values if isfinite(value)]
        if not finite:
            return cls(nan, nan)
        mean = sum(finite) / len(finite)
        return cls(mean, sqrt(sum((value - mean) ** 2 for value in finite) / max(len(finite) - 1, 1)))


class Column(NamedTuple):
    """One way of training: a method and its mode."""

    method: str
    mode: str

    @property
    def label(self) -> str:
        """The method's name, with its mode unless that is the paper's."""
        return self.method if self.mode == PROTOCOL else f"{self.method}, {self.mode}"


class Setting(NamedTuple):
    """One row of a table: how misspecified the problem is, and how many samples there are to learn from."""

    degree: int
    samples: int


@dataclass(frozen=True)
class Cell:
    """All trials of one column in one setting."""

    trials: dict[int, Trial] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @cached_property
    def regret(self) -> Moments:
        """Normalised regret in percent."""
        return Moments.of(trial.regret for trial in self.trials.values())

    @cached_property
    def excess(self) -> Moments:
        """Regret above the floor, trial by trial."""
        return Moments.of(trial.regret - trial.floor for trial in self.trials.values())

    @cached_property
    def seconds(self) -> Moments:
        """Labels and training together."""
        return Moments.of(trial.seconds for trial in self.trials.values())

    @cached_property
    def solver_calls(self) -> Moments:
        """Solver calls of labels and training together."""
        return Moments.of(trial.solver_calls for trial in self.trials.values())


class Published(NamedTuple):
    """One published cell; `seconds` is NaN where the paper gives no time."""

    regret: Moments
    seconds: Moments


@dataclass(frozen=True)
class Board:
    """Everything known about one problem in one plan."""

    plan: str
    problem: str
    cells: Mapping[tuple[Setting, Column], Cell]
    published: Mapping[tuple[Setting, str], Published] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What a reader calls it."""
        title = TITLES.get(self.problem, self.problem.replace("_", " ").capitalize())
        return title if self.plan == self.problem else f"{title} ({self.plan})"

    @property
    def name(self) -> str:
        """The stem of its files."""
        name = self.problem if self.plan == self.problem else f"{self.plan}_{self.problem}"
        return re.sub(r"[^\w-]+", "_", name)

    @cached_property
    def settings(self) -> list[Setting]:
        """All rows of the table, run or only published."""
        return sorted({setting for setting, _ in [*self.cells, *self.published]})

    @cached_property
    def degrees(self) -> list[int]:
        """The degrees, ascending."""
        return sorted({setting.degree for setting in self.settings})

    @cached_property
    def columns(self) -> list[Column]:
        """All columns of the table: the paper's protocol first, then the other modes."""
        columns = dict.fromkeys(column for _, column in self.cells)
        columns |= dict.fromkeys(Column(method, PROTOCOL) for _, method in self.published)
        rank = {method: index for index, method in enumerate(in_order(column.method for column in columns))}
        modes = in_order((column.mode for column in columns), first=(PROTOCOL, "exact"))
        return sorted(columns, key=lambda column: (modes.index(column.mode), rank[column.method]))

    @property
    def n_trials(self) -> int:
        """The largest number of trials, finished or failed, of any cell."""
        return max((len(cell.trials) + len(cell.failures) for cell in self.cells.values()), default=0)

    def floor(self, setting: Setting) -> float:
        """Return the mean regret of the true expected costs over the trials of a setting, NaN where it is unknown."""
        # Every column of a trial sees the same test set, so any of them knows the floor.
        floors = {n: t.floor for (at, _), cell in self.cells.items() if at == setting for n, t in cell.trials.items()}
        return Moments.of(floors.values()).mean


def read_boards(table: pa.Table, published: Path | None = None) -> list[Board]:
    """Sort rows into boards; a board whose plan and problem bear the name of a published file is compared with it.

    Parameters
    ----------
    table : pyarrow.Table
        One row per (plan, problem, degree, samples, method, mode, trial).
    published : Path, optional
        A folder of CSV files with columns degree, samples, method, regret_mean, regret_std and, where known,
        seconds_mean, seconds_std. A file without rows is a board too: everything on it is yet to be run.
    """
    missing = [column for column in COLUMNS if column not in table.column_names]
    if missing:
        raise ValueError(f"the table of rows lacks the columns {missing}; it has {table.column_names}.")
    cells: dict[tuple[str, str], dict[tuple[Setting, Column], Cell]] = {}
    for row in table.to_pylist():
        board = cells.setdefault((row["plan"], row["problem"]), {})
        key = Setting(row["degree"], row["samples"]), Column(row["method"], row["mode"])
        _add(board.setdefault(key, Cell()), row)
    references = dict(_read_published(published)) if published is not None else {}
    paper = [(stem, stem) for stem in [*TITLES, *references]]
    names = sorted(dict.fromkeys([*cells, *((stem, stem) for stem in references)]), key=_rank(paper))
    return [
        _board(plan, problem, cells.get((plan, problem), {}), references.get(problem, {}) if plan == problem else {})
        for plan, problem in names
    ]


def in_order(names: Iterable[str], first: Sequence[str] = METHODS) -> list[str]:
    """Return the distinct names: known ones in their known order, then the others as they come.

    >>> in_order(["mine", "LAVA", "WISE", "mine"])
    ['WISE', 'LAVA', 'mine']
    """
    rank = _rank([name.casefold() for name in first])
    return sorted(dict.fromkeys(names), key=lambda name: rank(name.casefold()))


def _rank(known: Sequence[Any]) -> Callable[[Any], int]:
    return lambda name: known.index(name) if name in known else len(known)


def _board(
    plan: str,
    problem: str,
    cells: Mapping[tuple[Setting, Column], Cell],
    published: Mapping[tuple[Setting, str], Published],
) -> Board:
    # CaVE and CAVE are one method: the published name gives way to that of the rows.
    spelling = {column.method.casefold(): column.method for _, column in cells}
    spelled = {(at, spelling.get(method.casefold(), method)): value for (at, method), value in published.items()}
    return Board(plan, problem, cells, spelled)


def _add(cell: Cell, row: Mapping[str, Any]) -> None:
    trial = row["trial"]
    if trial in cell.trials or trial in (failure.trial for failure in cell.failures):
        where = ", ".join(f"{name}={row[name]!r}" for name in COLUMNS[:7])
        raise ValueError(f"two rows are the same trial of the same cell ({where}); report one version at a time.")
    regret = _number(row["regret"])
    if row["status"] == "ok" and isfinite(regret):
        seconds = _number(row["label_seconds"]) + _number(row["train_seconds"])
        cell.trials[trial] = Trial(regret, _number(row["floor"]), seconds, _number(row["solver_calls"]))
    else:
        cell.failures.append(Failure(trial, row["reason"] or "no regret was recorded"))


def _number(value: float | None) -> float:
    return nan if value is None else float(value)


def _read_published(folder: Path) -> Iterator[tuple[str, dict[tuple[Setting, str], Published]]]:
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise ValueError(f"no published numbers in {folder}: a folder with CSV files was expected.")
    for file in files:
        with file.open(newline="", encoding="utf-8") as lines:
            yield (
                file.stem,
                {
                    (Setting(int(line["degree"]), int(line["samples"])), line["method"]): Published(
                        Moments(float(line["regret_mean"]), float(line["regret_std"])),
                        Moments(float(line.get("seconds_mean") or nan), float(line.get("seconds_std") or nan)),
                    )
                    for line in csv.DictReader(lines)
                },
            )
