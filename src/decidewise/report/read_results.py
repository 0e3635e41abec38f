"""Rows and published numbers -> boards."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from math import isfinite, nan
from pathlib import Path
from typing import Any

import pyarrow as pa

from decidewise.errors import InputError
from decidewise.paper import CONTESTS
from decidewise.report.results import (
    TITLES,
    Board,
    Column,
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
    "train_seconds", "solver_calls", "version", "machine", "status", "reason",
)  # fmt: skip


def read_boards(table: pa.Table, published: Path | None = None) -> list[Board]:
    """Sort rows into boards; a board whose plan and problem bear the name of a published file is compared with it.

    The boards of contests are given the published numbers of their problem, whatever their plan is called.

    Parameters
    ----------
    table : pyarrow.Table
        One row per (plan, problem, degree, samples, method, mode, trial).
    published : Path, optional
        A folder of CSV files with columns degree, samples, method, regret_mean and, where known, regret_std,
        seconds_mean, seconds_std. A file without rows is a board too, on which everything is yet to be run, unless
        all rows belong to other plans (then there is nothing to compare) or it is that of a contest.
    """
    missing = [column for column in COLUMNS if column not in table.column_names]
    if missing:
        raise ValueError(f"the table of rows lacks the columns {missing}; it has {table.column_names}.")
    cells: dict[tuple[str, str], dict[tuple[Setting, Column], Trials]] = {}
    for row in table.to_pylist():
        board = cells.setdefault((row["plan"], row["problem"]), {})
        key = Setting(row["degree"], row["samples"]), Column(row["method"], row["mode"])
        _add(board.setdefault(key, Trials()), row)
    references = dict(_read_published(published)) if published is not None else {}
    published_boards = [(stem, stem) for stem in in_order(references, first=tuple(TITLES)) if stem not in CONTESTS]
    if cells and not cells.keys() & set(published_boards):
        published_boards = []
    names = stems(dict.fromkeys([*published_boards, *cells]))
    return [
        _board(
            plan,
            problem,
            cells.get((plan, problem), {}),
            references.get(problem, {}) if plan in (problem, *CONTESTS) else {},
            stem,
        )
        for (plan, problem), stem in names.items()
    ]


def _board(
    plan: str,
    problem: str,
    cells: Mapping[tuple[Setting, Column], Trials],
    published: Mapping[tuple[Setting, str], Published],
    stem: str,
) -> Board:
    # CaVE and CAVE are one method: the published name gives way to that of the rows.
    spelling = {column.method.casefold(): column.method for _, column in cells}
    spelled = {(at, spelling.get(method.casefold(), method)): value for (at, method), value in published.items()}
    return Board(plan, problem, cells, spelled, stem)


def _add(cell: Trials, row: Mapping[str, Any]) -> None:
    trial = row["trial"]
    if trial in cell.trials or trial in (failure.trial for failure in cell.failures):
        where = ", ".join(f"{name}={row[name]!r}" for name in COLUMNS[:7])
        raise InputError(f"two rows are the same trial of the same cell ({where}); report one version at a time.")
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
        raise InputError(f"no published numbers in {folder}: a folder with CSV files was expected.")
    for file in files:
        with file.open(newline="", encoding="utf-8") as text:
            lines = csv.DictReader(text)
            try:
                yield file.stem, dict(_published(line) for line in lines)
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
    return (Setting(int(line["degree"]), int(line["samples"])), line["method"]), Published(regret, seconds)
