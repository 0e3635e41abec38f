"""Boards -> tables, laid out but without a syntax: `formats` writes them to files, the page as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from operator import attrgetter

from decidewise.paper.verdicts import Verdict, judge
from decidewise.report.results import PROTOCOL, Board, Column, Setting, Summary, Trials


@dataclass(frozen=True)
class TableEntry:
    """One column in one row; strings are empty where there is nothing to say."""

    ours: str
    published: str
    difference: str
    verdict: Verdict | None
    best: bool
    published_best: bool


@dataclass(frozen=True)
class TableRow:
    """One setting."""

    setting: Setting
    entries: tuple[TableEntry, ...]
    floor: str


@dataclass(frozen=True)
class Table:
    """A table before it has a syntax."""

    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]

    @property
    def has_floor(self) -> bool:
        """Whether any row knows its floor."""
        return any(row.floor for row in self.rows)

    @property
    def has_published(self) -> bool:
        """Whether any entry has a published number beside ours."""
        return any(entry.published for row in self.rows for entry in row.entries)


@dataclass(frozen=True)
class _Quantity:
    """What a table shows: an attribute of our cells and of the published ones, and how to write it."""

    attribute: str
    show: Callable[[Summary], str]
    show_published: Callable[[Summary], str]
    relate: Callable[[float, float], str]


def regret_table(board: Board) -> Table:
    """Lay out regret in percent: mean ± standard deviation, difference and verdict; the floor at the end."""
    digits = digits_of(board)
    quantity = _Quantity(
        "regret",
        lambda moments: _plus_minus(moments, digits),
        _plus_minus,
        lambda ours, theirs: f"{ours - theirs:+.{digits}f}".replace("-", "−"),
    )
    verdicts = {key: comparison.verdict for key, comparison in judge(board).items()}
    return _table(board, quantity, verdicts, {at: f"{floor:.{digits}f}" for at, floor in board.floors.items()})


def seconds_table(board: Board) -> Table:
    """Lay out seconds of labels and training together; the relation to the paper's is the speed-up."""
    quantity = _Quantity(
        "seconds",
        lambda moments: f"{moments.mean:.3g} ± {moments.std:.1g}",
        _plus_minus,
        lambda ours, theirs: f"{theirs / ours:,.0f}×" if ours > 0 else "",
    )
    return _table(board, quantity, {}, {})


def digits_of(board: Board) -> int:
    """Return the decimals of a regret: the published two, and one more where most regrets are below one percent."""
    means = sorted(cell.regret.mean for cell in board.cells.values() if cell.trials)
    return 3 if means and means[len(means) // 2] < 1 else 2


def _table(
    board: Board, quantity: _Quantity, verdicts: Mapping[tuple[Setting, str], Verdict], floors: Mapping[Setting, str]
) -> Table:
    moments: Callable[[object], Summary] = attrgetter(quantity.attribute)

    def row(setting: Setting) -> TableRow:
        ours = {column: board.cells.get((setting, column), Trials()) for column in board.columns}
        theirs = {
            Column(name, PROTOCOL): moments(cell) for (at, name), cell in board.published.items() if at == setting
        }
        theirs = {column: value for column, value in theirs.items() if isfinite(value.mean)}
        best = _best({column: moments(cell).mean for column, cell in ours.items() if cell.trials})
        published_best = _best({column: value.mean for column, value in theirs.items()})

        def entry(column: Column, cell: Trials) -> TableEntry:
            published = theirs.get(column)
            return TableEntry(
                _show(cell, quantity.show(moments(cell)), board.n_trials, expected=published is not None),
                quantity.show_published(published) if published else "",
                quantity.relate(moments(cell).mean, published.mean) if published and cell.trials else "",
                verdicts.get((setting, column.method)) if column.mode == PROTOCOL else None,
                column in best,
                column in published_best,
            )

        return TableRow(setting, tuple(entry(*item) for item in ours.items()), floors.get(setting, ""))

    return Table(tuple(board.columns), tuple(map(row, board.settings)))


def _best(means: Mapping[Column, float]) -> set[Column]:
    """Return the lowest columns of each mode, where there are several to choose from: modes do not compete."""
    best = set()
    for mode in {column.mode for column in means}:
        rivals = {column: mean for column, mean in means.items() if column.mode == mode}
        if len(rivals) > 1:
            best |= {column for column, mean in rivals.items() if mean == min(rivals.values())}
    return best


def _show(cell: Trials, text: str, n_trials: int, *, expected: bool) -> str:
    if not cell.trials:
        return "failed" if cell.failures else "not run" if expected else ""
    if len(cell.trials) == 1:
        text, _, _ = text.partition(" ±")  # one trial has no spread
    return text if len(cell.trials) == n_trials else f"{text} (n={len(cell.trials)})"


def _plus_minus(moments: Summary, digits: int = 2) -> str:
    return f"{moments.mean:.{digits}f} ± {moments.std:.{digits}f}"
