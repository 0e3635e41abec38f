"""Boards: a board holds one problem of one plan, with every trial of every cell and any published numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import isfinite, nan, sqrt
from typing import Any, Literal, NamedTuple

from decidewise.app.pages import DEFAULT_MODE, in_order

#: The order of modes in tables and legends; other modes follow in the order of their rows.
MODES = (DEFAULT_MODE, "exact")
#: The layer of a chart for published numbers.
PUBLISHED = "published"
#: Names of other elements of every page, which no board may have.
_RESERVED = ("main", "summary", "failures", "refusals", "tip", "data")
#: The most bytes of a stem; file systems allow 255 for a whole file name.
_MAX_STEM = 120
#: With more columns than this, tables have a row for each method, and lines show this many methods: the best.
_MANY = 12


class Column(NamedTuple):
    """One way of training: a method and its mode."""

    method: str
    mode: str

    @property
    def label(self) -> str:
        """The method's name, with its mode unless that is the default."""
        return self.method if self.mode == DEFAULT_MODE else f"{self.method}, {self.mode}"


@dataclass(frozen=True)
class Matrix:
    """How often column `i` beats column `j`: `shares[i][j]` percent of `meetings[i][j]` trials, None if no trials."""

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    labels: tuple[str, ...]
    shares: tuple[tuple[float | None, ...], ...]
    meetings: tuple[tuple[int, ...], ...]
    kind: Literal["matrix"] = "matrix"

    def data(self, notes: dict[str, int]) -> dict[str, Any]:
        """Return the matrix for the script of a page; it has no notes."""
        columns = [{"method": method, "layer": mode} for method, mode in self.columns]
        return asdict(self) | {"columns": columns}

    @property
    def methods(self) -> list[str]:
        """The methods in the matrix."""
        return list(dict.fromkeys(column.method for column in self.columns))


@dataclass(frozen=True)
class Conventions:
    """The titles of a report and the order of its problems and methods; by default those of the rows.

    Parameters
    ----------
    titles : mapping
        Titles of problems by name. Published problems appear in this order.
    methods : tuple of str
        Methods that come first, in this order and with the same style in every report.
    reserved : tuple of str
        Names of elements of the page and of files that no board may have.
    """

    titles: Mapping[str, str] = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()


#: The default conventions.
PLAIN = Conventions()


class Trial(NamedTuple):
    """One finished row: regret and floor in percent, then the seconds and the solver calls of labels and training."""

    regret: float
    floor: float
    seconds: float
    n_solves: float


class Failure(NamedTuple):
    """One row without a result: failed, or refused."""

    trial: int
    reason: str


class Summary(NamedTuple):
    """Mean and sample standard deviation (0 for a single value)."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Summary:
        """Summarise the finite values; NaN if there are none.

        >>> Summary.of([1.0, 3.0])
        Summary(mean=2.0, std=1.4142135623730951)
        """
        finite = [value for value in values if isfinite(value)]
        if not finite:
            return cls(nan, nan)
        mean = sum(finite) / len(finite)
        return cls(mean, sqrt(sum((value - mean) ** 2 for value in finite) / max(len(finite) - 1, 1)))


class Setting(NamedTuple):
    """One row of a table: the degree of the data (None if they have none) and the number of training samples."""

    degree: int | None
    samples: int

    @property
    def text(self) -> str:
        """The setting in words.

        >>> Setting(4, 1600).text, Setting(None, 1600).text
        ('degree 4, 1,600 samples', '1,600 samples')
        """
        return f"{degree_text(self.degree)}, {self.samples:,} samples".removeprefix(", ")


@dataclass(frozen=True)
class Trials:
    """All trials of one column in one setting."""

    trials: dict[int, Trial] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    refusals: list[Failure] = field(default_factory=list)

    @property
    def absence(self) -> str:
        """Why there is no trial: "failed", "refused" or, if there is no row at all, "not run"."""
        return "failed" if self.failures else "refused" if self.refusals else "not run"

    @cached_property
    def regret(self) -> Summary:
        """Normalised regret in percent."""
        return Summary.of(trial.regret for trial in self.trials.values())

    @cached_property
    def excess(self) -> Summary:
        """Regret above the floor, trial by trial."""
        return Summary.of(trial.regret - trial.floor for trial in self.trials.values())

    @cached_property
    def seconds(self) -> Summary:
        """Seconds of labels and training together."""
        return Summary.of(trial.seconds for trial in self.trials.values())

    @cached_property
    def n_solves(self) -> Summary:
        """Solver calls of labels and training together."""
        return Summary.of(trial.n_solves for trial in self.trials.values())


class Published(NamedTuple):
    """One published cell; `seconds` is NaN if no time is published."""

    regret: Summary
    seconds: Summary


class Verdict(NamedTuple):
    """The verdict on our cell against a published one: a word, its mark, and the tolerated difference."""

    word: str
    mark: str
    tone: Literal["good", "bad", ""] = ""
    tolerance: float = nan


@dataclass(frozen=True)
class Board:
    """Everything known about one problem in one plan.

    Parameters
    ----------
    cells : mapping
        The trials of each column in each setting.
    published : mapping
        The published numbers, by setting and method.
    verdicts : mapping
        Verdicts on our cells, by setting and method; optional.
    stem : str
        The beginning of the names of its files; `stems` makes it unique among several boards.
    """

    plan: str
    problem: str
    cells: Mapping[tuple[Setting, Column], Trials]
    published: Mapping[tuple[Setting, str], Published] = field(default_factory=dict)
    verdicts: Mapping[tuple[Setting, str], Verdict] = field(default_factory=dict)
    stem: str = ""
    conventions: Conventions = PLAIN

    @property
    def problem_title(self) -> str:
        """The title of the problem."""
        plain = re.fullmatch(r"[\w -]+", self.problem)
        by_name = self.problem.replace("_", " ").capitalize() if plain else self.problem
        return self.conventions.titles.get(self.problem, by_name)

    @property
    def title(self) -> str:
        """The title of the board: that of its problem, with the plan unless both have the same name."""
        return self.problem_title if self.plan == self.problem else f"{self.problem_title} ({self.plan})"

    @property
    def name(self) -> str:
        """The stem of its files, and its id on the page."""
        return self.stem or _plain_stem(self.plan, self.problem)

    @cached_property
    def settings(self) -> list[Setting]:
        """All settings of the table, run or only published."""
        return in_sequence(setting for setting, _ in [*self.cells, *self.published])

    @cached_property
    def degrees(self) -> list[int | None]:
        """The degrees, ascending; [None] for data without degrees."""
        return list(dict.fromkeys(setting.degree for setting in self.settings))

    @property
    def has_degrees(self) -> bool:
        """Whether its data have degrees."""
        return self.degrees != [None]

    @property
    def has_several_sizes(self) -> bool:
        """Whether the board has several numbers of samples."""
        return len({setting.samples for setting in self.settings}) > 1

    @cached_property
    def columns(self) -> list[Column]:
        """All columns of the table: the default mode first, then the other modes."""
        columns = dict.fromkeys(column for _, column in self.cells)
        columns |= dict.fromkeys(Column(method, DEFAULT_MODE) for _, method in self.published)
        methods = in_order((column.method for column in columns), first=self.conventions.methods)
        rank = {method: index for index, method in enumerate(methods)}
        modes = in_order((column.mode for column in columns), first=MODES)
        return sorted(columns, key=lambda column: (modes.index(column.mode), rank[column.method]))

    @property
    def has_many_columns(self) -> bool:
        """Whether it has too many columns for a table as wide as a page, and for lines that one can tell apart."""
        return len(self.columns) > _MANY

    @cached_property
    def ranked(self) -> list[Column]:
        """The columns by their mean rank over the settings, the lowest regret first; without a trial they are last."""
        ranks = dict.fromkeys(self.columns, 0)
        for setting in self.settings:
            means = {column: self.cells.get((setting, column), Trials()).regret.mean for column in self.columns}
            for rank, column in enumerate(
                sorted(means, key=lambda column: (not isfinite(means[column]), means[column]))
            ):
                ranks[column] += rank
        return sorted(ranks, key=ranks.__getitem__)

    @property
    def leading(self) -> Board:
        """The board, with its best columns alone if it has many."""
        leaders = set(self.ranked[:_MANY])
        cells = {place: cell for place, cell in self.cells.items() if place[1] in leaders}
        published = {at: cell for at, cell in self.published.items() if Column(at[1], DEFAULT_MODE) in leaders}
        return replace(self, cells=cells, published=published) if self.has_many_columns else self

    @property
    def n_trials(self) -> int:
        """The largest number of trials, finished or failed, of any cell."""
        return max((len(cell.trials) + len(cell.failures) for cell in self.cells.values()), default=0)

    @cached_property
    def floors(self) -> dict[Setting, float]:
        """The regret of the true expected costs, as the mean over the trials of each setting; only where known."""
        # All columns of a trial have the same test set, so the floor of any of them will do.
        by_trial: dict[Setting, dict[int, float]] = {}
        for (setting, _), cell in self.cells.items():
            by_trial.setdefault(setting, {}).update((number, trial.floor) for number, trial in cell.trials.items())
        means = {setting: Summary.of(floors.values()).mean for setting, floors in by_trial.items()}
        return {setting: mean for setting, mean in means.items() if isfinite(mean)}


def stems(places: Iterable[tuple[str, str]], reserved: Sequence[str] = ()) -> dict[tuple[str, str], str]:
    """Return a stem for the files of each plan and problem, distinct on every file system.

    >>> list(stems([("mine", "x_y"), ("mine", "x y"), ("mine_x", "y"), ("y", "y")]).values())
    ['mine_x_y', 'mine_x_y-96c719fb', 'mine_x_y-2f993d0e', 'y']
    """
    chosen: dict[tuple[str, str], str] = {}
    taken = {*_RESERVED, *reserved}
    for place in places:
        stem = _plain_stem(*place)
        if _names_taken(stem) & taken:
            stem = f"{stem}-{sha256(repr(place).encode()).hexdigest()[:8]}"
        taken |= _names_taken(stem)
        chosen[place] = stem
    return chosen


def _plain_stem(plan: str, problem: str) -> str:
    stem = re.sub(r"[^\w-]+", "_", problem if plan == problem else f"{plan}_{problem}")
    return stem.encode()[:_MAX_STEM].decode(errors="ignore")


def _names_taken(stem: str) -> set[str]:
    """Return the names that a board takes, normalised: equal if a file system may take them for the same."""
    names = (stem, f"{stem}_seconds", f"{stem}-title")
    return {unicodedata.normalize("NFC", name).casefold() for name in names}


def in_sequence(settings: Iterable[Setting]) -> list[Setting]:
    """Return the distinct settings in ascending order, those without a degree first."""
    return sorted(set(settings), key=lambda at: (at.degree is not None, at.degree or 0, at.samples))


def degree_text(degree: int | None) -> str:
    """Return text such as "degree 4", empty for data without degrees."""
    return "" if degree is None else f"degree {degree}"
