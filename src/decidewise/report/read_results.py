"""Rows and published numbers -> boards."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite, nan
from pathlib import Path
from typing import Any

import pyarrow as pa

from decidewise.errors import InputError
from decidewise.report.results import (
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
    """Sort rows into boards; a board whose plan and problem bear the name of published numbers is compared with them.

    Parameters
    ----------
    table : pyarrow.Table
        One row per (plan, problem, degree, samples, method, mode, trial).
    published : mapping, optional
        Published numbers by problem, as `read_published` returns them. Those without rows are boards too, on which
        everything is yet to be run, unless all rows belong to other plans: then there is nothing to compare.
    """
    missing = [column for column in COLUMNS if column not in table.column_names]
    if missing:
        raise ValueError(f"the table of rows lacks the columns {missing}; it has {table.column_names}.")
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
    """Put published numbers beside those of a board, under the names that its rows give to the methods."""
    spelling = {column.method.casefold(): column.method for _, column in board.cells}  # CaVE and CAVE are one method
    spelled = {(at, spelling.get(method.casefold(), method)): value for (at, method), value in published.items()}
    return replace(board, published=spelled)


def _add(cell: Trials, row: Mapping[str, Any]) -> None:
    trial = row["trial"]
    if trial in cell.trials or trial in (failure.trial for failure in cell.failures):
        where = ", ".join(f"{name}={row[name]!r}" for name in COLUMNS[:7])
        raise InputError(f"two rows are the same trial of the same cell ({where}); report one version at a time.")
    regret = _number(row["regret"])
    if row["status"] == "ok" and isfinite(regret):
        seconds = _number(row["label_seconds"]) + _number(row["train_seconds"])
        cell.trials[trial] = Trial(regret, _number(row["floor"]), seconds, _number(row["n_solves"]))
    else:
        cell.failures.append(Failure(trial, row["reason"] or "no regret was recorded"))


def _number(value: float | None) -> float:
    return nan if value is None else float(value)


def read_published(folder: Path) -> dict[str, Numbers]:
    """Read published numbers by problem: one CSV file for each, named after it.

    Columns are samples, method, regret_mean and, where known, degree, regret_std, seconds_mean and seconds_std.
    """
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise InputError(f"no published numbers in {folder}: a folder with CSV files was expected.")
    return {file.stem: _read_numbers(file) for file in files}


def _read_numbers(file: Path) -> Numbers:
    with file.open(newline="", encoding="utf-8") as text:
        lines = csv.DictReader(text)
        try:
            return dict(_published(line) for line in lines)
        except KeyError as missing:
            raise InputError(f"{file}: there is no column {missing}; the first line must name it.") from missing
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
