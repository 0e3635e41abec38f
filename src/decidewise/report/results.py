"""Boards: one problem of one plan each, with every trial of every cell and the published numbers beside it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from math import isfinite, nan, sqrt
from typing import Literal, NamedTuple

#: The mode of a plan's method unless it names another. Labels leave it out, and published numbers are compared with it.
DEFAULT_MODE = "adam"
#: Modes in the order of tables and legends; others follow in the order of their rows.
MODES = (DEFAULT_MODE, "exact")
#: What every page has besides its boards: no board may take these names.
_RESERVED = ("main", "summary", "failures", "tip", "data")
#: Bytes of a stem; file systems allow 255 for a whole name.
_LONGEST_STEM = 120


@dataclass(frozen=True)
class Conventions:
    """What a report calls things and in which order; the default goes by the names and the order of the rows.

    Parameters
    ----------
    titles : mapping
        Titles of problems. Published problems appear in this order.
    methods : tuple of str
        Methods that come first, in this order and with the same look in every report.
    reserved : tuple of str
        Names on the page and of files that no board may take.
    """

    titles: Mapping[str, str] = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()


#: Those of a report that says nothing else.
PLAIN = Conventions()


class Trial(NamedTuple):
    """One finished row: regret and floor in percent, seconds of labels and training, solver calls of both."""

    regret: float
    floor: float
    seconds: float
    n_solves: float


class Failure(NamedTuple):
    """One failed row."""

    trial: int
    reason: str


class Summary(NamedTuple):
    """Mean and standard deviation (of the sample; 0 for a single value)."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Summary:
        """Summarise the finite values; NaN where there are none.

        >>> Summary.of([1.0, 3.0])
        Summary(mean=2.0, std=1.4142135623730951)
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
        """The method's name, with its mode unless that is the default."""
        return self.method if self.mode == DEFAULT_MODE else f"{self.method}, {self.mode}"


class Setting(NamedTuple):
    """One row of a table: how misspecified a linear model is (None for data without degrees), and how many samples."""

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
        """Labels and training together."""
        return Summary.of(trial.seconds for trial in self.trials.values())

    @cached_property
    def n_solves(self) -> Summary:
        """Solver calls of labels and training together."""
        return Summary.of(trial.n_solves for trial in self.trials.values())


class Published(NamedTuple):
    """One published cell; `seconds` is NaN where no time is published."""

    regret: Summary
    seconds: Summary


class Verdict(NamedTuple):
    """What is said about our cell beside a published one: a word, a mark for it, and how far apart they may be."""

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
        What whoever judges our cells says about them, by setting and method; a report works without.
    stem : str
        Begins the names of its files; among several boards `stems` keeps them apart.
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
        """What a reader calls the problem."""
        plain = re.fullmatch(r"[\w -]+", self.problem)
        by_name = self.problem.replace("_", " ").capitalize() if plain else self.problem
        return self.conventions.titles.get(self.problem, by_name)

    @property
    def title(self) -> str:
        """What a reader calls the board."""
        return self.problem_title if self.plan == self.problem else f"{self.problem_title} ({self.plan})"

    @property
    def name(self) -> str:
        """The stem of its files, and its place on the page."""
        return self.stem or _plain_stem(self.plan, self.problem)

    @cached_property
    def settings(self) -> list[Setting]:
        """All rows of the table, run or only published."""
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
        """Whether there are several numbers of samples."""
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
    def n_trials(self) -> int:
        """The largest number of trials, finished or failed, of any cell."""
        return max((len(cell.trials) + len(cell.failures) for cell in self.cells.values()), default=0)

    @cached_property
    def floors(self) -> dict[Setting, float]:
        """The mean regret of the true expected costs over the trials of each setting, where it is known."""
        # Every column of a trial sees the same test set, so any of them knows its floor.
        by_trial: dict[Setting, dict[int, float]] = {}
        for (setting, _), cell in self.cells.items():
            by_trial.setdefault(setting, {}).update((number, trial.floor) for number, trial in cell.trials.items())
        means = {setting: Summary.of(floors.values()).mean for setting, floors in by_trial.items()}
        return {setting: mean for setting, mean in means.items() if isfinite(mean)}


def stems(places: Iterable[tuple[str, str]], reserved: Sequence[str] = ()) -> dict[tuple[str, str], str]:
    """Return a stem for the files of each plan and problem; no two of them share a file, on any file system.

    >>> list(stems([("mine", "x_y"), ("mine", "x y"), ("mine_x", "y"), ("y", "y")]).values())
    ['mine_x_y', 'mine_x_y-96c719fb', 'mine_x_y-2f993d0e', 'y']
    """
    chosen: dict[tuple[str, str], str] = {}
    taken = {*_RESERVED, *reserved}
    for place in places:
        stem = _plain_stem(*place)
        if _footprint(stem) & taken:
            stem = f"{stem}-{sha256(repr(place).encode()).hexdigest()[:8]}"
        taken |= _footprint(stem)
        chosen[place] = stem
    return chosen


def _plain_stem(plan: str, problem: str) -> str:
    stem = re.sub(r"[^\w-]+", "_", problem if plan == problem else f"{plan}_{problem}")
    return stem.encode()[:_LONGEST_STEM].decode(errors="ignore")


def _footprint(stem: str) -> set[str]:
    """Return the names that a board takes, written so that equal ones are those that a file system may confuse."""
    names = (stem, f"{stem}_seconds", f"{stem}-title")
    return {unicodedata.normalize("NFC", name).casefold() for name in names}


def in_order(names: Iterable[str], first: Sequence[str]) -> list[str]:
    """Return the distinct names: known ones in their known order, then the others as they come.

    >>> in_order(["mine", "LAVA", "WISE", "mine"], first=("MSE", "WISE", "LAVA"))
    ['WISE', 'LAVA', 'mine']
    """
    known = [name.casefold() for name in first]
    distinct = dict.fromkeys(names)
    return sorted(distinct, key=lambda name: known.index(name.casefold()) if name.casefold() in known else len(known))


def in_sequence(settings: Iterable[Setting]) -> list[Setting]:
    """Return the distinct settings, ascending; one without a degree comes before all degrees."""
    return sorted(set(settings), key=lambda at: (at.degree is not None, at.degree or 0, at.samples))


def degree_text(degree: int | None) -> str:
    """Return "degree 4", or nothing for data without degrees."""
    return "" if degree is None else f"degree {degree}"
