"""Write the table of the contest as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
from io import StringIO
from math import isfinite

from decidewise_bench.paper.contest import Contest, ContestEntry
from decidewise_bench.paper.verdicts import MARKS
from decidewise_bench.report.formats import (
    LATEX_END,
    csv_text,
    latex_bold,
    latex_head,
    latex_line,
    latex_text,
    markdown_bold,
    markdown_table,
    markdown_text,
)

_COLUMNS = (
    "problem", "degree", "samples", "published_method", "repeated_method", "trials", "same_model_trials",
    "published_mean", "repeated_mean", "regret_mean", "regret_std", "difference", "margin", "same_model_mean",
    "same_model_std", "floor", "excess_percent", "excess_limit",
)  # fmt: skip


def contest_to_markdown(contest: Contest) -> str:
    """Write one line per row; a cross marks a missed goal."""
    lines = [[markdown_bold(markdown_text(_marked(entry)), entry.best) for entry in row] for row in contest.rows]
    return markdown_table([list(contest.heads), *lines])


def contest_to_latex(contest: Contest) -> str:
    """Write a floating table with a rule between problems and between degrees."""
    lines = latex_head(contest.caption + ".", f"l{'r' * (len(contest.heads) - 1)}")
    lines.append(latex_line([latex_text(head) for head in contest.heads]))
    group = None
    for row in contest.rows:
        if row[:2] != group:
            lines.append(r"\midrule")
            group = row[:2]
        lines.append(latex_line([latex_bold(_marked(entry), entry.best) for entry in row]))
    return "\n".join([*lines, *LATEX_END]) + "\n"


def contest_to_csv(contest: Contest) -> str:
    """Write one line per row with its numbers, to six digits; a field without a number is empty."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
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
        names = csv_text(method), csv_text(label)
        start = [csv_text(match.board.problem), *match.setting, *names, len(match.ours.trials), len(match.fair.trials)]
        writer.writerow([*start, *(f"{number:.6g}" if isfinite(number) else "" for number in numbers)])
    return text.getvalue()


def _marked(entry: ContestEntry) -> str:
    return f"{entry.text} {MARKS['missed']}" if entry.missed else entry.text
