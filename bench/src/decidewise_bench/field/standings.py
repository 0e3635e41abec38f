"""All methods on all problems of one plan: the table of the field."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from math import isfinite, nan, sqrt
from typing import NamedTuple

from scipy.stats import rankdata

from decidewise_bench.field.ranks import Ranks
from decidewise_bench.report.differences import Difference
from decidewise_bench.report.formats import csv_text, markdown_bold, markdown_table, markdown_text
from decidewise_bench.report.results import Board, Summary, Trials

#: What every method is compared with: it sees no decision, has nothing to tune, and takes milliseconds.
REFERENCE = "least squares"
#: A standard error from fewer trials says next to nothing: a difference from the reference is then not judged.
FEWEST_TRIALS = 3


class Entry(NamedTuple):
    """One entry of the table, with its verdict against the reference, and the reason if there is no number."""

    text: str
    lowest: bool
    verdict: str
    reason: str


@dataclass(frozen=True)
class Standings:
    """The trials of every method on every problem of one plan."""

    plan: str
    boards: Sequence[Board]

    @cached_property
    def cells(self) -> dict[tuple[str, str], Trials]:
        """The trials by method and problem; of several settings of a problem, the last."""
        return {
            (column.method, board.problem): cell
            for board in self.boards
            for (setting, column), cell in board.cells.items()
            if setting == board.settings[-1]
        }

    @cached_property
    def n_trials(self) -> int:
        """The largest number of trials of any problem."""
        return max((len(cell.trials) for cell in self.cells.values()), default=0)

    def cell(self, method: str, board: Board) -> Trials:
        """Return the trials of a method on a problem, which may be none."""
        return self.cells.get((method, board.problem), Trials())

    @cached_property
    def places(self) -> dict[str, float]:
        """The mean place of each method over the problems on which it has a result, from 0, first, to 100, last.

        A place is by the mean regret, among all that have a result on the problem. It also orders the table.
        """
        found: dict[str, list[float]] = {method: [] for method, _ in self.cells}
        for board in self.boards:
            means = {m: self.cell(m, board).regret.mean for m in found if self.cell(m, board).trials}
            shares = (rankdata(list(means.values())) - 1) / max(len(means) - 1, 1)
            for method, share in zip(means, shares, strict=True):
                found[method].append(100 * float(share))
        mean = {method: sum(shares) / len(shares) if shares else nan for method, shares in found.items()}
        return dict(sorted(mean.items(), key=lambda item: (not isfinite(item[1]), item[1])))

    @property
    def methods(self) -> list[str]:
        """The methods, by their mean place."""
        return list(self.places)

    def lowest(self, board: Board) -> str:
        """Return the method with the lowest mean regret on a problem; "" if none has a result."""
        means = {m: self.cell(m, board).regret.mean for m in self.methods if self.cell(m, board).trials}
        return min(means, key=lambda method: means[method], default="")

    def difference(self, method: str, board: Board, other: str = REFERENCE) -> Difference:
        """Return the regret of a method minus that of another, trial by trial."""
        return Difference.of(self.cell(method, board), self.cell(other, board))

    def verdict(self, method: str, board: Board) -> str:
        """Return "lower" or "higher" than the reference by more than two standard errors, or "even".

        It is "" with fewer than three trials in common, and for the reference itself.
        """
        common = self.cell(method, board).trials.keys() & self.cell(REFERENCE, board).trials.keys()
        if method == REFERENCE or len(common) < FEWEST_TRIALS:
            return ""
        return self.difference(method, board).beyond(2.0)

    def entry(self, method: str, board: Board) -> Entry:
        """Return what the table shows: mean and standard error in percent, or why there is no number."""
        cell = self.cell(method, board)
        if not cell.trials:
            reasons = (*cell.failures, *cell.refusals)
            return Entry(cell.absence, False, "", reasons[0].reason if reasons else "")
        verdict = self.verdict(method, board)
        fewer = f" (n={len(cell.trials)})" if len(cell.trials) < self.n_trials else ""
        return Entry(show_mean(cell) + fewer, method == self.lowest(board), verdict.replace("even", ""), "")

    def seconds(self, method: str) -> float:
        """Return the mean over the problems of the seconds of search and fit."""
        return Summary.of(self.cell(method, board).seconds.mean for board in self.boards).mean

    def n_solves(self, method: str) -> float:
        """Return the mean over the problems of the solver calls of search and fit."""
        return Summary.of(self.cell(method, board).n_solves.mean for board in self.boards).mean

    @cached_property
    def ranks(self) -> Ranks:
        """The average ranks of the methods with a result on every problem, over all trials that all of them have."""
        complete = [m for m in self.methods if all(self.cell(m, board).trials for board in self.boards)]
        blocks = []
        for board in self.boards:
            cells = [self.cell(method, board).trials for method in complete]
            for trial in sorted(set.intersection(*(set(trials) for trials in cells)) if cells else ()):
                blocks.append([trials[trial].regret for trials in cells])
        return Ranks.of(complete, blocks)


def show_mean(cell: Trials) -> str:
    """Return mean ± standard error of the regret; the mean alone for a single trial.

    >>> from decidewise_bench.report.results import Trial
    >>> show_mean(Trials({0: Trial(8.0, 0.0, 0.1, 0.0), 1: Trial(9.0, 0.0, 0.1, 0.0)}))
    '8.50 ± 0.50'
    """
    mean, std = cell.regret
    return f"{mean:.2f} ± {std / sqrt(len(cell.trials)):.2f}" if len(cell.trials) > 1 else f"{mean:.2f}"


def to_markdown(standings: Standings) -> str:
    """Write one line per method: its regret on each problem, the lowest in bold, then place, rank, seconds, solves."""
    heads = ["method", *(board.problem_title for board in standings.boards), "place", "rank", "seconds", "solver calls"]
    lines = [[markdown_text(head) for head in heads]]
    for method in standings.methods:
        entries = [standings.entry(method, board) for board in standings.boards]
        lines.append([
            markdown_text(method), *(markdown_bold(entry.text, entry.lowest) for entry in entries),
            *numbers_of(standings, method),
        ])  # fmt: skip
    return markdown_table(lines)


def numbers_of(standings: Standings, method: str) -> list[str]:
    """Return mean place, average rank, seconds and solver calls of a method as text; "" where there is none."""
    rank = standings.ranks.mean.get(method, nan)
    shown = (
        (standings.places[method], ".0f"), (rank, ".1f"), (standings.seconds(method), ".3g"),
        (standings.n_solves(method), ",.0f"),
    )  # fmt: skip
    return [format(value, form) if isfinite(value) else "" for value, form in shown]


def to_csv(standings: Standings) -> str:
    """Write one line per method and problem, with the difference to the reference; unknown numbers are empty."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ("trials", "regret_mean", "regret_std", "to_reference", "to_reference_error", "seconds", "n_solves")
    writer.writerow(["problem", "method", "status", *names])
    for board in standings.boards:
        for method in standings.methods:
            cell = standings.cell(method, board)
            gap = standings.difference(method, board)
            numbers = (*cell.regret, *gap, cell.seconds.mean, cell.n_solves.mean)
            status = "ok" if cell.trials else cell.absence
            written = [f"{value:.6g}" if isfinite(value) else "" for value in numbers]
            writer.writerow([csv_text(board.problem), csv_text(method), status, len(cell.trials), *written])
    return text.getvalue()
