"""Boards -> tables: one layout, written as Markdown, LaTeX and (by the page) HTML; the plain numbers as CSV.

>>> from decidewise.report.boards import Board, Cell, Column, Setting, Trial
>>> cell = Cell({0: Trial(8.0, 6.5, 0.1, 0.0), 1: Trial(8.5, 6.7, 0.1, 0.0)})
>>> board = Board("mine", "mine", {(Setting(4, 200), Column("WISE", "adam")): cell})
>>> print(to_markdown(regret_table(board)))
| degree | samples | WISE | floor |
|---:|---:|---:|---:|
| 4 | 200 | 8.25 ± 0.35 | 6.60 |
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from math import isfinite
from operator import attrgetter

from decidewise.report.boards import PROTOCOL, Board, Cell, Column, Moments, Setting
from decidewise.report.verdicts import Verdict, compare

MARKS: dict[Verdict, str] = {"reproduced": "✓", "missed": "✗", "failed": "!", "not run": "–"}
_LATEX = {"✓": r"$\checkmark$", "✗": r"$\times$", "–": "--", "±": r"$\pm$", "×": r"$\times$"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}
_CSV_COLUMNS = (
    "degree", "samples", "method", "mode", "trials", "failed", "regret_mean", "regret_std", "floor",
    "published_mean", "published_std", "difference", "tolerance", "verdict", "seconds_mean", "seconds_std",
    "published_seconds_mean", "published_seconds_std", "solver_calls",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One column in one row; strings are empty where there is nothing to say."""

    ours: str
    published: str
    difference: str
    verdict: Verdict | None
    best: bool
    published_best: bool


@dataclass(frozen=True)
class Row:
    """One setting."""

    setting: Setting
    entries: tuple[Entry, ...]
    floor: str


@dataclass(frozen=True)
class Table:
    """A table before it has a syntax."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

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
    show: Callable[[Moments], str]
    show_published: Callable[[Moments], str]
    relate: Callable[[float, float], str]


def regret_table(board: Board) -> Table:
    """Lay out regret in percent: mean ± standard deviation, difference and verdict; the floor at the end."""
    digits = digits_of(board)
    quantity = _Quantity(
        "regret", lambda m: _plus_minus(m, digits), _plus_minus, lambda ours, theirs: f"{ours - theirs:+.{digits}f}"
    )
    verdicts = {key: comparison.verdict for key, comparison in compare(board).items()}
    floors = {setting: board.floor(setting) for setting in board.settings}
    return _table(board, quantity, verdicts, {at: f"{v:.{digits}f}" for at, v in floors.items() if isfinite(v)})


def seconds_table(board: Board) -> Table:
    """Lay out seconds of labels and training together; the relation to the paper's is the speed-up."""
    quantity = _Quantity(
        "seconds",
        lambda m: f"{m.mean:.3g} ± {m.std:.1g}",
        _plus_minus,
        lambda ours, theirs: f"{theirs / ours:,.0f}×" if ours > 0 else "",
    )
    return _table(board, quantity, {}, {})


def digits_of(board: Board) -> int:
    """Return the decimals of a regret: the published two, and one more where most regrets are below one percent."""
    means = sorted(cell.regret.mean for cell in board.cells.values() if cell.trials)
    return 3 if means and means[len(means) // 2] < 1 else 2


def to_markdown(table: Table) -> str:
    """Write one line a setting: ours, then in brackets the published number and the difference with its verdict."""
    heads = ["degree", "samples", *(column.label for column in table.columns), "floor"]
    lines = [
        [*map(str, row.setting), *(_markdown_entry(entry) for entry in row.entries), row.floor] for row in table.rows
    ]
    width = len(heads) if table.has_floor else len(heads) - 1
    rule = "|" + "---:|" * width
    written = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line[:width]) + " |" for line in [heads, *lines]]
    return "\n".join([written[0], rule, *written[1:]]) + "\n"


def to_latex(table: Table, caption: str) -> str:
    """Write a floating table with up to three lines a setting: ours, published, difference with its verdict."""
    heads = ["degree", "samples", "", *(column.label for column in table.columns)]
    lines = [
        r"% needs \usepackage{amssymb,booktabs,graphicx}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escape(caption)}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{rrl{'r' * (len(table.columns) + table.has_floor)}}}",
        r"\toprule",
        _latex_line([*heads, *["floor"] * table.has_floor]),
    ]
    degree = None
    for row in table.rows:
        if row.setting.degree != degree:
            lines.append(r"\midrule")
            degree = row.setting.degree
        lines += _latex_rows(row, table)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table}"]) + "\n"


def to_csv(board: Board) -> str:
    """Write one line a cell with everything known about it, unrounded; empty fields where there is nothing."""
    comparisons = compare(board)
    text = StringIO()
    writer = csv.DictWriter(text, _CSV_COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for setting in board.settings:
        for column in board.columns:
            cell = board.cells.get((setting, column), Cell())
            line = dict(zip(_CSV_COLUMNS, [*setting, *column, len(cell.trials), len(cell.failures)], strict=False))
            numbers = {"floor": board.floor(setting), "solver_calls": cell.solver_calls.mean}
            numbers |= _named("regret", cell.regret) | _named("seconds", cell.seconds)
            comparison = comparisons.get((setting, column.method)) if column.mode == PROTOCOL else None
            if comparison:
                line["verdict"] = comparison.verdict
                numbers |= {"difference": comparison.difference, "tolerance": comparison.tolerance}
                numbers |= _named("published", comparison.published)
                numbers |= _named("published_seconds", board.published[setting, column.method].seconds)
            elif not (cell.trials or cell.failures):
                continue
            line |= {name: f"{value:.6g}" for name, value in numbers.items() if value is not None and isfinite(value)}
            writer.writerow(line)
    return text.getvalue()


def _table(
    board: Board, quantity: _Quantity, verdicts: Mapping[tuple[Setting, str], Verdict], floors: Mapping[Setting, str]
) -> Table:
    moments: Callable[[object], Moments] = attrgetter(quantity.attribute)
    rows = []
    for setting in board.settings:
        ours = {column: board.cells.get((setting, column), Cell()) for column in board.columns}
        published = {Column(m, PROTOCOL): moments(value) for (at, m), value in board.published.items() if at == setting}
        published = {column: value for column, value in published.items() if isfinite(value.mean)}
        best = _best((column, moments(cell).mean) for column, cell in ours.items())
        published_best = _best((column, value.mean) for column, value in published.items())
        rows.append(
            Row(
                setting,
                tuple(
                    Entry(
                        _show(cell, quantity.show(moments(cell)), board.n_trials, planned=column in published),
                        quantity.show_published(published[column]) if column in published else "",
                        quantity.relate(moments(cell).mean, published[column].mean)
                        if column in published and cell.trials
                        else "",
                        verdicts.get((setting, column.method)) if column.mode == PROTOCOL else None,
                        column in best,
                        column in published_best,
                    )
                    for column, cell in ours.items()
                ),
                floors.get(setting, ""),
            )
        )
    return Table(tuple(board.columns), tuple(rows))


def _best(means: Iterable[tuple[Column, float]]) -> set[Column]:
    """Return the lowest column of each mode, where there are several to choose from: modes do not compete."""
    by_mode: dict[str, list[tuple[float, Column]]] = {}
    for column, mean in means:
        if isfinite(mean):
            by_mode.setdefault(column.mode, []).append((mean, column))
    return {min(columns)[1] for columns in by_mode.values() if len(columns) > 1}


def _show(cell: Cell, text: str, n_trials: int, *, planned: bool) -> str:
    if not cell.trials:
        return "failed" if cell.failures else "not run" if planned else ""
    return text if len(cell.trials) == n_trials else f"{text} (n={len(cell.trials)})"


def _plus_minus(moments: Moments, digits: int = 2) -> str:
    return f"{moments.mean:.{digits}f} ± {moments.std:.{digits}f}"


def _markdown_entry(entry: Entry) -> str:
    ours = _bold(entry.ours, entry.best)
    if not entry.published:
        return ours
    parts = [_bold(entry.published, entry.published_best), _relation(entry)]
    return f"{ours} ({', '.join(part for part in parts if part)})"


def _latex_rows(row: Row, table: Table) -> list[str]:
    start = [str(row.setting.degree), str(row.setting.samples)]
    floor = [row.floor] * table.has_floor
    ours = [_bold(entry.ours, entry.best) for entry in row.entries]
    if not table.has_published:
        return [_latex_line([*start, "", *ours, *floor])]
    published = [_bold(entry.published, entry.published_best) for entry in row.entries]
    return [
        _latex_line([*start, "ours", *ours, *floor]),
        _latex_line(["", "", "published", *published, *[""] * table.has_floor]),
        _latex_line(["", "", "difference", *map(_relation, row.entries), *[""] * table.has_floor]),
    ]


def _relation(entry: Entry) -> str:
    return f"{entry.difference} {MARKS[entry.verdict] if entry.verdict else ''}".strip()


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold and text else text


def _latex_line(cells: list[str]) -> str:
    return " & ".join(_escape(cell) for cell in cells) + r" \\"


def _escape(text: str) -> str:
    inner = text.strip("*")
    escaped = "".join(_LATEX.get(character, character) for character in inner)
    return escaped if inner == text else rf"\textbf{{{escaped}}}"


def _named(name: str, moments: Moments) -> dict[str, float | None]:
    return {f"{name}_mean": moments.mean, f"{name}_std": moments.std}
