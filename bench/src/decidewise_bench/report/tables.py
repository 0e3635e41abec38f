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
    published: str = ""
    difference: str = ""
    verdict: Verdict | None = None
    best: bool = False
    published_best: bool = False
    absent: bool = False
    is_floor: bool = False


@dataclass(frozen=True)
class TableRow:
    """One row of a table: what identifies it, its entries, and whether a group of rows begins with it."""

    start: tuple[str, ...]
    entries: tuple[TableEntry, ...]
    is_first: bool


@dataclass(frozen=True)
class Table:
    """A table, independent of any format: a row for each setting, or for each method where there are many.

    Parameters
    ----------
    keys : tuple of str
        The headings of what identifies a row: degree and samples (without degrees only "samples"), or method.
    heads : tuple of str
        The headings of the entries.
    """

    keys: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[TableRow, ...]

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

    def entries(setting: Setting) -> list[TableEntry]:
        ours = {column: board.cells.get((setting, column), Trials()) for column in columns}
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

        own = [entry(*item) for item in ours.items()]
        return [*own, TableEntry(floors.get(setting, ""), is_floor=True)] if floors else own

    columns = board.ranked if board.has_many_columns else board.columns
    heads = (*(column.label for column in columns), *["floor"] * bool(floors))
    by_setting = {setting: entries(setting) for setting in board.settings}
    if board.has_many_columns:
        by_method = zip(heads, zip(*by_setting.values(), strict=True), strict=True)
        rows = [TableRow((head,), own, i == 0) for i, (head, own) in enumerate(by_method)]
        return Table(("method",), tuple(setting.text for setting in by_setting), tuple(rows))
    keys = [name for name in Setting._fields if any(getattr(at, name) is not None for at in by_setting)]
    rows, degree = [], object()
    for setting, own in by_setting.items():
        start = ("" if (value := getattr(setting, key)) is None else str(value) for key in keys)
        rows.append(TableRow(tuple(start), tuple(own), setting.degree != degree))
        degree = setting.degree
    return Table(tuple(keys), heads, tuple(rows))


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
