"""Tables -> Markdown and LaTeX; boards and contests -> CSV, for whoever wants to compute with the numbers.

>>> from decidewise.report.results import Board, Trials, Column, Setting, Trial
>>> from decidewise.report.tables import regret_table
>>> cell = Trials({0: Trial(8.0, 6.5, 0.1, 0.0), 1: Trial(8.5, 6.7, 0.1, 0.0)})
>>> board = Board("mine", "mine", {(Setting(4, 200), Column("WISE", "adam")): cell})
>>> print(to_markdown(regret_table(board)))
| degree | samples | WISE | floor |
|---:|---:|---:|---:|
| 4 | 200 | 8.25 ± 0.35 | 6.60 |
"""

from __future__ import annotations

import csv
import re
from html import escape
from io import StringIO
from math import isfinite

from decidewise.paper.contest import Contest, ContestEntry
from decidewise.paper.verdicts import Verdict, judge
from decidewise.report.results import PROTOCOL, Board, Summary, Trials
from decidewise.report.tables import Table, TableEntry, TableRow

MARKS: dict[Verdict, str] = {"reproduced": "✓", "missed": "✗", "failed": "!", "not run": "–"}
_LATEX = {"✓": r"$\checkmark$", "✗": r"$\times$", "–": "--", "−": "$-$", "±": r"$\pm$", "×": r"$\times$"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"} | {"\\": r"\textbackslash{}"}
_LATEX |= {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}"}
_LATEX |= {"|": r"\textbar{}"}
_CSV_COLUMNS = (
    "degree", "samples", "method", "mode", "trials", "failed", "regret_mean", "regret_std", "floor",
    "published_mean", "published_std", "difference", "tolerance", "verdict", "seconds_mean", "seconds_std",
    "published_seconds_mean", "published_seconds_std", "solver_calls",
)  # fmt: skip
_CONTEST_COLUMNS = (
    "problem", "degree", "samples", "published_method", "repeated_method", "trials", "same_model_trials",
    "published_mean", "repeated_mean", "regret_mean", "regret_std", "difference", "margin", "same_model_mean",
    "same_model_std", "floor", "excess_percent", "excess_limit",
)  # fmt: skip
_LATEX_END = (r"\bottomrule", r"\end{tabular}}", r"\end{table}")


def to_markdown(table: Table) -> str:
    """Write one line a setting: ours, then in brackets the published number and the difference with its verdict."""
    heads = ["degree", "samples", *(_markdown_text(column.label) for column in table.columns), "floor"]
    lines = [
        [*map(str, row.setting), *(_markdown_entry(entry) for entry in row.entries), row.floor] for row in table.rows
    ]
    width = len(heads) if table.has_floor else len(heads) - 1
    return _markdown([line[:width] for line in [heads, *lines]])


def contest_to_markdown(contest: Contest) -> str:
    """Write one line a row; a cross marks what misses its goal."""
    lines = [[_bold(_markdown_text(_marked(entry)), entry.best) for entry in row] for row in contest.rows]
    return _markdown([list(contest.heads), *lines])


def contest_to_latex(contest: Contest) -> str:
    """Write a floating table, a rule between problems and degrees."""
    lines = _latex_head(contest.caption + ".", f"l{'r' * (len(contest.heads) - 1)}")
    lines.append(_latex_line([_escape(head) for head in contest.heads]))
    group = None
    for row in contest.rows:
        if row[:2] != group:
            lines.append(r"\midrule")
            group = row[:2]
        lines.append(_latex_line([_latex_bold(_marked(entry), entry.best) for entry in row]))
    return "\n".join([*lines, *_LATEX_END]) + "\n"


def contest_to_csv(contest: Contest) -> str:
    """Write one line a row with the numbers, to six digits; empty fields where there is nothing."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CONTEST_COLUMNS)
    for match in contest.matches:
        (method, published), (label, repeated) = match.rival, match.repeated
        numbers = [
            published,
            repeated,
            *match.ours.regret,
            match.difference,
            match.margin,
            *match.fair.regret,
            match.floor,
        ]
        numbers += [match.excess, match.excess_limit]
        names = _csv_text(method), _csv_text(label)
        start = [_csv_text(match.board.problem), *match.setting, *names, len(match.ours.trials), len(match.fair.trials)]
        writer.writerow([*start, *(f"{number:.6g}" if isfinite(number) else "" for number in numbers)])
    return text.getvalue()


def to_latex(table: Table, caption: str) -> str:
    """Write a floating table with up to three lines a setting: ours, published, difference with its verdict."""
    heads = ["degree", "samples", "", *(_escape(column.label) for column in table.columns)]
    lines = _latex_head(caption, f"rrl{'r' * (len(table.columns) + table.has_floor)}")
    lines.append(_latex_line([*heads, *["floor"] * table.has_floor]))
    degree = None
    for row in table.rows:
        if row.setting.degree != degree:
            lines.append(r"\midrule")
            degree = row.setting.degree
        lines += _latex_rows(row, table)
    return "\n".join([*lines, *_LATEX_END]) + "\n"


def to_csv(board: Board) -> str:
    """Write one line a cell with everything known about it, to six digits; empty fields where there is nothing."""
    comparisons = judge(board)
    text = StringIO()
    writer = csv.DictWriter(text, _CSV_COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for setting in board.settings:
        for column in board.columns:
            cell = board.cells.get((setting, column), Trials())
            start = [*setting, *map(_csv_text, column), len(cell.trials), len(cell.failures)]
            line = dict(zip(_CSV_COLUMNS, start, strict=False))
            numbers: dict[str, float | None] = {
                "floor": board.floors.get(setting),
                "solver_calls": cell.solver_calls.mean,
            }
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


def _markdown(lines: list[list[str]]) -> str:
    """Return lines of cells, the first of them the heads."""
    written = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([written[0], "|" + "---:|" * len(lines[0]), *written[1:]]) + "\n"


def _markdown_text(text: str) -> str:
    """Return text that Markdown, and the HTML it is turned into, show as it is."""
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", escape(text, quote=False))


def _csv_text(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _marked(entry: ContestEntry) -> str:
    return f"{entry.text} {MARKS['missed']}" if entry.missed else entry.text


def _markdown_entry(entry: TableEntry) -> str:
    ours = _bold(entry.ours, entry.best)
    if not entry.published:
        return ours
    parts = [_bold(entry.published, entry.published_best), _relation(entry)]
    return f"{ours} ({', '.join(part for part in parts if part)})"


def _latex_head(caption: str, columns: str) -> list[str]:
    return [
        r"% needs \usepackage{amssymb,booktabs,graphicx}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escape(caption)}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]


def _latex_rows(row: TableRow, table: Table) -> list[str]:
    start = [str(row.setting.degree), str(row.setting.samples)]
    floor, blank = ([row.floor], [""]) if table.has_floor else ([], [])
    ours = [_latex_bold(entry.ours, entry.best) for entry in row.entries]
    if not table.has_published:
        return [_latex_line([*start, "", *ours, *floor])]
    published = [_latex_bold(entry.published, entry.published_best) for entry in row.entries]
    relations = [_escape(_relation(entry)) for entry in row.entries]
    return [
        _latex_line([*start, "ours", *ours, *floor]),
        _latex_line(["", "", "published", *published, *blank]),
        _latex_line(["", "", "difference", *relations, *blank]),
    ]


def _relation(entry: TableEntry) -> str:
    return f"{entry.difference} {MARKS[entry.verdict] if entry.verdict else ''}".strip()


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _latex_bold(text: str, bold: bool) -> str:
    return rf"\textbf{{{_escape(text)}}}" if bold else _escape(text)


def _latex_line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _escape(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _named(name: str, moments: Summary) -> dict[str, float | None]:
    return {f"{name}_mean": moments.mean, f"{name}_std": moments.std}
