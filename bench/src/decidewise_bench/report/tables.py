"""Lay out boards as tables, independent of any format: `formats` writes Markdown and LaTeX, the page HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from operator import attrgetter

from decidewise_bench.report.results import DEFAULT_MODE, Board, Column, Setting, Summary, Trials, Verdict


@dataclass(frozen=True)
class TableEntry:
    """One entry of a table; a string is empty if there is nothing to show, `absent` is true if we have no trial."""

    ours: str
    published: str
    difference: str
    verdict: Verdict | None
    best: bool
    published_best: bool
    absent: bool


@dataclass(frozen=True)
class TableRow:
    """One row of a table: the entries of one setting."""

    setting: Setting
    entries: tuple[TableEntry, ...]
    floor: str


@dataclass(frozen=True)
class Table:
    """A table, independent of any format."""

    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]

    @property
    def keys(self) -> list[str]:
        """The headings of the columns that identify the setting; without degrees only "samples"."""
        return [name for name in Setting._fields if any(getattr(row.setting, name) is not None for row in self.rows)]

    def start(self, row: TableRow) -> list[str]:
        """Return the entries of a row under `keys`."""
        values = [getattr(row.setting, key) for key in self.keys]
        return ["" if value is None else str(value) for value in values]

    @property
    def has_floor(self) -> bool:
        """Whether any row has a floor."""
        return any(row.floor for row in self.rows)

    @property
    def has_published(self) -> bool:
        """Whether any entry has a published number."""
        return any(entry.published for row in self.rows for entry in row.entries)


@dataclass(frozen=True)
class _Quantity:
    """The quantity in a table: an attribute of our cells and of the published ones, and how to format it."""

    attribute: str
    show: Callable[[Summary], str]
    show_published: Callable[[Summary], str]
    relate: Callable[[float, float], str]


def regret_table(board: Board) -> Table:
    """Return the table of regret in percent: mean ± standard deviation, difference and any verdict; the floor last."""
    digits = digits_of(board)
    quantity = _Quantity(
        "regret",
        lambda moments: _plus_minus(moments, digits),
        _plus_minus,
        lambda ours, theirs: f"{ours - theirs:+.{digits}f}".replace("-", "−"),
    )
    return _table(board, quantity, board.verdicts, {at: f"{floor:.{digits}f}" for at, floor in board.floors.items()})


def seconds_table(board: Board) -> Table:
    """Return the table of seconds of labels and training together, with the speed-up over the published seconds."""
    quantity = _Quantity(
        "seconds",
        lambda moments: f"{moments.mean:.3g} ± {moments.std:.1g}",
        _plus_minus,
        lambda ours, theirs: f"{theirs / ours:,.0f}×" if ours > 0 else "",
    )
    return _table(board, quantity, {}, {})


def digits_of(board: Board) -> int:
    """Return the decimals of regrets: two, as published, or three if the median regret is below one percent."""
    means = sorted(cell.regret.mean for cell in board.cells.values() if cell.trials)
    return 3 if means and means[len(means) // 2] < 1 else 2


def _table(
    board: Board, quantity: _Quantity, verdicts: Mapping[tuple[Setting, str], Verdict], floors: Mapping[Setting, str]
) -> Table:
    moments: Callable[[object], Summary] = attrgetter(quantity.attribute)

    def row(setting: Setting) -> TableRow:
        ours = {column: board.cells.get((setting, column), Trials()) for column in board.columns}
        theirs = {
            Column(name, DEFAULT_MODE): moments(cell) for (at, name), cell in board.published.items() if at == setting
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
                verdicts.get((setting, column.method)) if column.mode == DEFAULT_MODE else None,
                column in best,
                column in published_best,
                not cell.trials,
            )

        return TableRow(setting, tuple(entry(*item) for item in ours.items()), floors.get(setting, ""))

    return Table(tuple(board.columns), tuple(map(row, board.settings)))


def _best(means: Mapping[Column, float]) -> set[Column]:
    """Return the columns with the lowest mean of their mode, for modes of at least two columns."""
    best = set()
    for mode in {column.mode for column in means}:
        rivals = {column: mean for column, mean in means.items() if column.mode == mode}
        if len(rivals) > 1:
            best |= {column for column, mean in rivals.items() if mean == min(rivals.values())}
    return best


def _show(cell: Trials, text: str, n_trials: int, *, expected: bool) -> str:
    if not cell.trials:
        return cell.absence if expected or cell.failures or cell.refusals else ""
    if len(cell.trials) == 1:
        text, _, _ = text.partition(" ±")  # one trial has no spread
    return text if len(cell.trials) == n_trials else f"{text} (n={len(cell.trials)})"


def _plus_minus(moments: Summary, digits: int = 2) -> str:
    return f"{moments.mean:.{digits}f} ± {moments.std:.{digits}f}"
