"""The contest: WISE CV, which chooses among solver-free models, against the best published method of each row.

A row is won if the mean regret of WISE CV is at most that of the best published method plus a margin. The same model
trained on SPO+ is shown beside it. Its gain over the published SPO+ comes from the model, its start and its learning
rate; the difference between our two methods comes from the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, nan
from typing import ClassVar, NamedTuple

from decidewise.app.pages import Axis, Chart, Mark, Panel, Series
from decidewise_bench.paper import CONTESTS, TITLES
from decidewise_bench.report.results import (
    PUBLISHED,
    Board,
    Column,
    Setting,
    Summary,
    Trials,
    degree_text,
    in_order,
    in_sequence,
)
from decidewise_bench.report.tables import digits_of

CHOICE, FAIR = Column("WISE CV", "cv"), Column("SPO+ same model", "cv")
#: Points by which a mean may exceed the best published one, in general and by problem.
MARGIN, MARGINS = 0.1, {"portfolio": 0.02, "travelling_salesman": 0.0}
#: Where a log link should help most: this many points below the best published method, from this degree on.
CLEAR_GAP, CLEAR_PROBLEM, CLEAR_DEGREE = 0.3, "shortest_path", 4
#: The allowed excess over the floor, in percent of the floor: with at least this many samples, and with fewer.
MANY_SAMPLES, EXCESS_MANY, EXCESS_FEW = 800, 15.0, 30.0
_ROUNDING = 1e-9
_BEYOND = (
    "The floor exceeds the published number by more than the margin. On our instances even the true expected costs do "
    "not decide as well as published, so on average no prediction can."
)
_WITHIN = "The floor does not rule these rows out; a better prediction could win them."


def is_contest(board: Board) -> bool:
    """Whether a board is compared with the best published method of each row, not cell by cell."""
    return board.plan in CONTESTS and bool(board.published)


@dataclass(frozen=True)
class Match:
    """One row of the contest: the best published method against ours; `table` repeats the published methods."""

    board: Board
    setting: Setting
    table: Board | None = None

    @property
    def in_paper(self) -> bool:
        """Whether this is a row of the paper's tables; a problem outside the paper has a plan of the same name."""
        return self.board.plan != self.board.problem

    @cached_property
    def rival(self) -> tuple[str, float]:
        """The best published method and its mean regret."""
        means = {method: cell.regret.mean for (at, method), cell in self.board.published.items() if at == self.setting}
        best = min(means, key=lambda method: means[method])
        return best, means[best]

    @cached_property
    def repeated(self) -> tuple[str, float]:
        """The best method of `table` on the same trials, exact fits included, and its mean; "" and NaN if none."""
        cells = self.table.cells if self.table else {}
        means = {
            column.label: cell.regret.mean
            for (setting, column), cell in cells.items()
            if setting == self.setting and cell.trials.keys() == self.ours.trials.keys()
        }
        best = min(means, key=lambda label: means[label], default="")
        return best, means.get(best, nan)

    @property
    def ours(self) -> Trials:
        """The trials of WISE CV."""
        return self.board.cells.get((self.setting, CHOICE), Trials())

    @property
    def fair(self) -> Trials:
        """The trials of the same model trained on SPO+."""
        return self.board.cells.get((self.setting, FAIR), Trials())

    @property
    def floor(self) -> float:
        """The regret of the true expected costs, NaN if unknown."""
        return self.board.floors.get(self.setting, nan)

    @property
    def difference(self) -> float:
        """Our mean minus the best published one, in points."""
        return self.ours.regret.mean - self.rival[1]

    @property
    def margin(self) -> float:
        """The largest difference with which the row is won."""
        return MARGINS.get(self.board.problem, MARGIN)

    @property
    def excess(self) -> float:
        """Our regret above the floor, in percent of the floor."""
        return 100 * self.ours.excess.mean / self.floor

    @property
    def excess_limit(self) -> float:
        """The largest excess that meets the goal."""
        return EXCESS_MANY if self.setting.samples >= MANY_SAMPLES else EXCESS_FEW

    @property
    def won(self) -> bool | None:
        """Whether the difference is within the margin, None if the row has not been run."""
        return _at_most(self.difference, self.margin)

    @property
    def holds(self) -> bool | None:
        """Whether our mean is within the margin of the best repeated method, None if one of the two is missing."""
        return _at_most(self.ours.regret.mean - self.repeated[1], self.margin)

    @property
    def near_floor(self) -> bool | None:
        """Whether the excess is within its limit, None if it is unknown or the row has no such goal."""
        return _at_most(self.excess, self.excess_limit) if self.in_paper else None

    @property
    def fair_is_lower(self) -> bool | None:
        """Whether SPO+ on the same model has the lower mean, None if one of the two is missing."""
        gap = self.fair.regret.mean - self.ours.regret.mean
        return gap < 0 if isfinite(gap) else None

    @property
    def out_of_reach(self) -> bool:
        """Whether even the true expected costs would lose."""
        return self.floor > self.rival[1] + self.margin + _ROUNDING


class Count(NamedTuple):
    """The number of rows in which a statement holds, of those that could be judged and of all."""

    text: str
    held: int
    judged: int
    rows: int

    def __str__(self) -> str:
        missing = f" ({self.rows - self.judged} not run)" if self.judged < self.rows else ""
        return f"{self.held} of {self.rows}{missing}"


class ContestEntry(NamedTuple):
    """An entry of the table: its text, whether it is the lower of our two means, and whether it misses a goal."""

    text: str
    best: bool = False
    missed: bool = False


@dataclass(frozen=True)
class Contest:
    """All rows of the contests, problem by problem."""

    boards: Sequence[Board]
    tables: Mapping[str, Board] = field(default_factory=dict)  # by problem: the boards that repeat the paper's tables
    name: ClassVar[str] = "better"  # the name of its files, and its id on the page

    @classmethod
    def among(cls, boards: Iterable[Board]) -> Contest:
        """Return the contest of those boards that belong to it, in the order of the paper's problems."""
        boards = list(boards)
        found = [board for board in boards if is_contest(board)]
        order = in_order((board.problem for board in found), first=tuple(TITLES))
        tables = {board.problem: board for board in boards if board.plan == board.problem and not is_contest(board)}
        return cls(sorted(found, key=lambda board: order.index(board.problem)), tables)

    @cached_property
    def matches(self) -> list[Match]:
        """One match per row with a published number."""
        return [
            Match(board, setting, self.tables.get(board.problem))
            for board in self.boards
            for setting in in_sequence(setting for setting, _ in board.published)
        ]

    @property
    def paper(self) -> list[Match]:
        """The rows of the paper's own tables."""
        return [match for match in self.matches if match.in_paper]

    @property
    def headline(self) -> str:
        """The result in one line."""
        count = _count("", self.paper or self.matches, lambda match: match.won)
        return f"{count} rows within a margin of the best published"

    @property
    def counts(self) -> list[Count]:
        """The number of rows that meet each goal, and the number in which SPO+ has the lower mean."""
        clear = [m for m in self.paper if m.board.problem == CLEAR_PROBLEM and (m.setting.degree or 0) >= CLEAR_DEGREE]
        others = [match for match in self.matches if not match.in_paper]
        counts = [
            _count(
                f"The paper's rows at or below their best published method, within {MARGIN} points (portfolio "
                f"{MARGINS['portfolio']})",
                self.paper,
                lambda match: match.won,
            ),
            _count("The same without the margin", self.paper, lambda match: _at_most(match.difference, 0.0)),
            _count(
                "The paper's rows at or below the best of all methods repeated here, on the same instances and trials, "
                "within the same margins",
                [match for match in self.paper if match.table],
                lambda match: match.holds,
            ),
            _count(
                f"Rows of the shortest path, degree {CLEAR_DEGREE} and above, at least {CLEAR_GAP} points below their "
                "best published method",
                clear,
                lambda match: _at_most(match.difference, -CLEAR_GAP),
            ),
            _count(
                f"The paper's rows whose excess is at most {EXCESS_MANY:g} % of the floor ({MANY_SAMPLES} samples or "
                f"more) or {EXCESS_FEW:g} % (fewer)",
                self.paper,
                lambda match: match.near_floor,
            ),
            _count("Other rows at or below their best published method", others, lambda match: match.won),
            _count("Rows in which SPO+ on the same model has the lower mean", self.matches, lambda m: m.fair_is_lower),
        ]
        return [count for count in counts if count.rows]

    @property
    def lost(self) -> list[tuple[str, list[Match]]]:
        """The lost rows, grouped by whether the floor rules out a win."""
        lost = [match for match in self.matches if match.won is False]
        groups = [(_BEYOND, [m for m in lost if m.out_of_reach]), (_WITHIN, [m for m in lost if not m.out_of_reach])]
        return [(text, matches) for text, matches in groups if matches]

    @property
    def others(self) -> list[str]:
        """The results of other methods on these rows, one sentence per row and method."""
        return [
            f"{match.board.problem_title}, {match.setting.text}: {column.label} {_shown(cell, 2)} %"
            for match in self.matches
            for (setting, column), cell in match.board.cells.items()
            if setting == match.setting and column not in (CHOICE, FAIR)
        ]

    @property
    def heads(self) -> tuple[str, ...]:
        """The headings of the table's columns."""
        return (
            "problem", "degree", "samples", "best published", "best repeated", CHOICE.method, "difference", FAIR.method,
            "floor", "excess, %",
        )  # fmt: skip

    @property
    def rows(self) -> list[tuple[ContestEntry, ...]]:
        """The rows of the table."""
        return [_row(match) for match in self.matches]

    @property
    def caption(self) -> str:
        """The caption of the table, with the number of trials."""
        trials = max((board.n_trials for board in self.boards), default=0)
        over = f", mean ± standard deviation over {trials} trials" if trials > 1 else ", in one trial"
        return f"Normalised test regret in percent{over}"


def contest_chart(board: Board) -> Chart | None:
    """Return regret above the floor against samples, one panel per degree; None unless two rows have a floor."""
    matches = [match for match in Contest([board]).matches if isfinite(match.floor)]
    if len(matches) < 2:
        return None
    panels = tuple(
        Panel(degree_text(degree), tuple(_series([m for m in matches if m.setting.degree == degree])))
        for degree in dict.fromkeys(match.setting.degree for match in matches)
    )
    return Chart(
        f"contest_{board.name}",
        f"{board.problem_title}: regret above the floor",
        "Mean regret minus the floor (the regret of the true expected costs), with the standard deviation over trials. "
        "Hollow marks are the best published method of each row.",
        Axis("training samples", "log", ticks=tuple(sorted({float(match.setting.samples) for match in matches}))),
        Axis("excess regret, points"),
        panels,
    )


def _series(matches: Sequence[Match]) -> Iterable[Series]:
    for method in dict.fromkeys(match.rival[0] for match in matches):
        theirs = [match for match in matches if match.rival[0] == method]
        yield Series(method, PUBLISHED, tuple(_mark(m, Summary(m.rival[1] - m.floor, 0.0)) for m in theirs))
    for column in (FAIR, CHOICE):  # WISE CV last, so that it is drawn on top
        cells = [(match, match.board.cells.get((match.setting, column), Trials())) for match in matches]
        marks = tuple(_mark(match, cell.excess) for match, cell in cells if cell.trials)
        if marks:
            yield Series(*column, marks)


def _mark(match: Match, excess: Summary) -> Mark:
    digits = digits_of(match.board)
    method, published = match.rival
    lines = [
        f"{degree_text(match.setting.degree)}, n = {match.setting.samples:,}",
        *(f"{column.method} {_shown(cell, digits)} %" for column, cell in ((CHOICE, match.ours), (FAIR, match.fair))),
        f"best published: {method} {published:.2f} %",
        f"floor {match.floor:.{digits}f} %",
    ]
    return Mark(match.setting.samples, *excess, "\n".join(lines))


def _row(match: Match) -> tuple[ContestEntry, ...]:
    digits = digits_of(match.board)
    method, published = match.rival
    label, repeated = match.repeated
    difference = f"{match.difference:+.{digits}f}".replace("-", "−") if isfinite(match.difference) else ""
    return (
        ContestEntry(match.board.problem_title),
        ContestEntry(str(match.setting.degree)),
        ContestEntry(str(match.setting.samples)),
        ContestEntry(f"{published:.2f} {method}"),
        ContestEntry(f"{repeated:.{digits}f} {label}" if label else "", missed=match.holds is False),
        ContestEntry(_shown(match.ours, digits), best=match.fair_is_lower is False),
        ContestEntry(difference, missed=match.won is False),
        ContestEntry(_shown(match.fair, digits), best=match.fair_is_lower is True),
        ContestEntry(f"{match.floor:.{digits}f}" if isfinite(match.floor) else ""),
        ContestEntry(f"{match.excess:.1f}" if isfinite(match.excess) else "", missed=match.near_floor is False),
    )


def _shown(cell: Trials, digits: int) -> str:
    if not cell.trials:
        return cell.absence
    mean, std = cell.regret
    return f"{mean:.{digits}f} ± {std:.{digits}f}" if len(cell.trials) > 1 else f"{mean:.{digits}f}"


def _at_most(value: float, limit: float) -> bool | None:
    return value <= limit + _ROUNDING if isfinite(value) else None


def _count(text: str, matches: Sequence[Match], holds: Callable[[Match], bool | None]) -> Count:
    answers = [answer for answer in map(holds, matches) if answer is not None]
    return Count(text, sum(answers), len(answers), len(matches))
