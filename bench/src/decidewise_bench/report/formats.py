"""Write tables as Markdown and LaTeX, to be read, and boards as CSV, to compute with.

>>> from decidewise_bench.report.results import Board, Trials, Column, Setting, Trial
>>> from decidewise_bench.report.tables import regret_table
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
from math import isfinite, nan

from decidewise_bench.report.results import DEFAULT_MODE, Board, Summary, Trials
from decidewise_bench.report.tables import Table, TableEntry, TableRow

_LATEX = {"✓": r"$\checkmark$", "✗": r"$\times$", "–": "--", "−": "$-$", "±": r"$\pm$", "×": r"$\times$"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"} | {"\\": r"\textbackslash{}"}
_LATEX |= {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}"}
_LATEX |= {"|": r"\textbar{}", "†": r"$\dagger$"}
_CSV_COLUMNS = (
    "degree", "samples", "method", "mode", "trials", "failed", "regret_mean", "regret_std", "floor",
    "published_mean", "published_std", "difference", "tolerance", "verdict", "seconds_mean", "seconds_std",
    "published_seconds_mean", "published_seconds_std", "n_solves",
)  # fmt: skip
LATEX_END = (r"\bottomrule", r"\end{tabular}}", r"\end{table}")


def to_markdown(table: Table) -> str:
    """Write one line per row: ours, then in brackets the published number, the difference and any verdict."""
    heads = [*table.keys, *map(markdown_text, table.heads)]
    lines = [[*map(markdown_text, row.start), *map(_markdown_entry, row.entries)] for row in table.rows]
    return markdown_table([heads, *lines])


def to_latex(table: Table, caption: str) -> str:
    """Write a floating table with up to three lines per row: ours, published, difference and any verdict."""
    lines = latex_head(caption, f"{'r' * len(table.keys)}l{'r' * len(table.heads)}")
    lines.append(latex_line([*table.keys, "", *map(latex_text, table.heads)]))
    for row in table.rows:
        if row.is_first:
            lines.append(r"\midrule")
        lines += _latex_rows(row, table.has_published)
    return "\n".join([*lines, *LATEX_END]) + "\n"


def to_csv(board: Board) -> str:
    """Write one line per cell with all its numbers, to six digits; a field without a number is empty."""
    text = StringIO()
    columns = [name for name in _CSV_COLUMNS if board.has_degrees or name != "degree"]
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for setting in board.settings:
        for column in board.columns:
            cell = board.cells.get((setting, column), Trials())
            numbers = {"floor": board.floors.get(setting, nan), "n_solves": cell.n_solves.mean}
            numbers |= _named("regret", cell.regret) | _named("seconds", cell.seconds)
            published = board.published.get((setting, column.method)) if column.mode == DEFAULT_MODE else None
            verdict = board.verdicts.get((setting, column.method)) if published else None
            if published:
                numbers["difference"] = cell.regret.mean - published.regret.mean
                numbers |= _named("published", published.regret) | _named("published_seconds", published.seconds)
            elif not (cell.trials or cell.failures):
                continue
            if verdict:
                numbers["tolerance"] = verdict.tolerance
            line = {
                **{name: value for name, value in setting._asdict().items() if name in columns},
                **{name: csv_text(value) for name, value in column._asdict().items()},
                "trials": len(cell.trials),
                "failed": len(cell.failures),
                "verdict": verdict.word if verdict else "",
                **{name: f"{value:.6g}" for name, value in numbers.items() if isfinite(value)},
            }
            writer.writerow(line)
    return text.getvalue()


def markdown_table(lines: list[list[str]]) -> str:
    """Return a Markdown table; the first line holds the headings of the columns."""
    written = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([written[0], "|" + "---:|" * len(lines[0]), *written[1:]]) + "\n"


def markdown_text(text: str) -> str:
    """Return the text escaped, so that Markdown and the HTML made from it show it literally."""
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", escape(text, quote=False))


def csv_text(text: str) -> str:
    """Return the text, with a ' before it if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _markdown_entry(entry: TableEntry) -> str:
    ours = markdown_bold(entry.ours, entry.best)
    if not entry.published:
        return ours
    parts = [markdown_bold(entry.published, entry.published_best), _relation(entry)]
    return f"{ours} ({', '.join(part for part in parts if part)})"


def latex_head(caption: str, columns: str) -> list[str]:
    """Return the lines that begin a floating table; `LATEX_END` ends it."""
    return [
        r"% needs \usepackage{amssymb,booktabs,graphicx}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]


def _latex_rows(row: TableRow, has_published: bool) -> list[str]:
    start = [latex_text(text) for text in row.start]
    ours = [latex_bold(entry.ours, entry.best) for entry in row.entries]
    if not has_published:
        return [latex_line([*start, "", *ours])]
    published = [latex_bold(entry.published, entry.published_best) for entry in row.entries]
    relations = [latex_text(_relation(entry)) for entry in row.entries]
    blank = [""] * len(start)
    return [
        latex_line([*start, "ours", *ours]),
        latex_line([*blank, "published", *published]),
        latex_line([*blank, "difference", *relations]),
    ]


def _relation(entry: TableEntry) -> str:
    return f"{entry.difference} {entry.verdict.mark if entry.verdict else ''}".strip()


def markdown_bold(text: str, bold: bool) -> str:
    """Return the Markdown, in bold if asked for."""
    return f"**{text}**" if bold else text


def latex_bold(text: str, bold: bool) -> str:
    """Return the text escaped for LaTeX, in bold if asked for."""
    return rf"\textbf{{{latex_text(text)}}}" if bold else latex_text(text)


def latex_line(cells: list[str]) -> str:
    """Return one line of a LaTeX table."""
    return " & ".join(cells) + r" \\"


def latex_text(text: str) -> str:
    """Return the text escaped, so that LaTeX shows it literally."""
    return "".join(_LATEX.get(character, character) for character in text)


def _named(name: str, summary: Summary) -> dict[str, float]:
    return {f"{name}_mean": summary.mean, f"{name}_std": summary.std}
