"""Read rows and published numbers into boards."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite, nan
from pathlib import Path
from typing import Any

import pyarrow as pa

from decidewise.kit.errors import InputError
from decidewise_bench.report.results import (
    PLAIN,
    Board,
    Column,
    Conventions,
    Failure,
    Published,
    Setting,
    Summary,
    Trial,
    Trials,
    in_order,
    stems,
)

COLUMNS = (
    "plan", "problem", "degree", "samples", "method", "mode", "trial", "regret", "floor", "label_seconds",
    "train_seconds", "n_solves", "version", "machine", "status", "reason",
)  # fmt: skip


#: The published numbers of one problem, by setting and method.
Numbers = Mapping[tuple[Setting, str], Published]


def read_boards(
    table: pa.Table, published: Mapping[str, Numbers] | None = None, conventions: Conventions = PLAIN
) -> list[Board]:
    """Sort rows into boards, one for each problem of each plan.

    A board whose plan and problem have the same name gets the published numbers of that name.

    Parameters
    ----------
    table : pyarrow.Table
        One row per (plan, problem, degree, samples, method, mode, trial).
    published : mapping, optional
        Published numbers by problem, as returned by `read_published`. A published problem without rows gets a board of
        its own, with all cells not run; but if no row belongs to any published problem, there are no such boards.
    """
    missing = [column for column in COLUMNS if column not in table.column_names]
    if missing:
        raise ValueError(
            f"the table of rows lacks the columns {missing}; it has {table.column_names}. Pass a table as returned by "
            "decidewise_bench.experiments.as_table."
        )
    cells: dict[tuple[str, str], dict[tuple[Setting, Column], Trials]] = {}
    for row in table.to_pylist():
        found = cells.setdefault((row["plan"], row["problem"]), {})
        key = Setting(row["degree"], row["samples"]), Column(row["method"], row["mode"])
        _add(found.setdefault(key, Trials()), row)
    published = published or {}
    expected = [(problem, problem) for problem in in_order(published, first=tuple(conventions.titles))]
    if cells and not cells.keys() & set(expected):
        expected = []
    names = stems(dict.fromkeys([*expected, *cells]), conventions.reserved)
    boards = []
    for (plan, problem), stem in names.items():
        board = Board(plan, problem, cells.get((plan, problem), {}), stem=stem, conventions=conventions)
        boards.append(compare_with(board, published.get(problem, {})) if plan == problem else board)
    return boards


def compare_with(board: Board, published: Numbers) -> Board:
    """Return the board with published numbers, under the method names of its rows."""
    spelling = {column.method.casefold(): column.method for _, column in board.cells}  # CaVE and CAVE are one method
    spelled = {(at, spelling.get(method.casefold(), method)): value for (at, method), value in published.items()}
    return replace(board, published=spelled)


def _add(cell: Trials, row: Mapping[str, Any]) -> None:
    trial = row["trial"]
    if trial in cell.trials or trial in (failure.trial for failure in (*cell.failures, *cell.refusals)):
        where = ", ".join(f"{name}={row[name]!r}" for name in COLUMNS[:7])
        raise InputError(f"two rows are of the same trial of the same cell ({where}); report one version at a time.")
    regret = _number(row["regret"])
    if row["status"] == "ok" and isfinite(regret):
        seconds = _number(row["label_seconds"]) + _number(row["train_seconds"])
        cell.trials[trial] = Trial(regret, _number(row["floor"]), seconds, _number(row["n_solves"]))
    else:
        without = cell.refusals if row["status"] == "refused" else cell.failures
        without.append(Failure(trial, row["reason"] or "no regret was recorded"))


def _number(value: float | None) -> float:
    return nan if value is None else float(value)


def read_published(folder: Path) -> dict[str, Numbers]:
    """Read published numbers by problem, from one CSV file per problem, named after it.

    The columns are samples, method, regret_mean and, if known, degree, regret_std, seconds_mean and seconds_std.
    """
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise InputError(f"no published numbers in {folder}; name a folder with one CSV file per problem.")
    return {file.stem: _read_numbers(file) for file in files}


def _read_numbers(file: Path) -> Numbers:
    with file.open(newline="", encoding="utf-8") as text:
        lines = csv.DictReader(text)
        try:
            return dict(_published(line) for line in lines)
        except KeyError as missing:
            raise InputError(f"{file}: column {missing} is missing; the first line must name all columns.") from missing
        except UnicodeDecodeError as reason:
            raise InputError(f"{file} is not a text file in UTF-8: {reason}.") from reason
        except (TypeError, ValueError, csv.Error) as reason:
            raise InputError(f"{file}, line {lines.line_num}: {reason}.") from reason


def _published(line: Mapping[str, str]) -> tuple[tuple[Setting, str], Published]:
    if not line["method"]:
        raise ValueError("the method has no name")
    regret = Summary(float(line["regret_mean"]), float(line.get("regret_std") or nan))
    seconds = Summary(float(line.get("seconds_mean") or nan), float(line.get("seconds_std") or nan))
    degree = int(line["degree"]) if line.get("degree") else None
    return (Setting(degree, int(line["samples"])), line["method"]), Published(regret, seconds)
