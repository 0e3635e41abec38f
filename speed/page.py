"""What the scripts measured, as `docs/notes/benchmark_tables.md`: a pure function of the reports in `out/speed`.

`python speed/all.py --page` writes it, between two marks; `make speed` does so at its end.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark import HEADINGS, RIGHT, ROOT, groups_of, lines_of

PAGE = ROOT / "docs" / "notes" / "benchmark_tables.md"
BEGIN, END = "<!-- measured by make speed: begin -->", "<!-- measured by make speed: end -->"
HOW_TO_READ = """\
The ratio is how many times as fast as theirs ours is. Only where a target is "≤", or theirs is a part of our work and
so the limit, is it our time over theirs. A line without a peer has a target for its own figure. "Equal work" is what
was compared to make sure that both sides did the same. The sides run in turn, every other round in the opposite order;
figures are medians of the rounds in the last column. Three scripts keep one order: that of the losses has the least of
its rounds, those of linear and conic programs the mean over all rows."""


def read(path: Path) -> list[dict[str, Any]]:
    """Return the reports of a folder."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(path.glob("*.json"))]


def render(reports: Sequence[dict[str, Any]]) -> str:
    """Return the measured part of the page: the machine, a summary, and the tables of each script."""
    if not reports:
        raise ValueError("there are no reports. Run `make speed`, or a script of speed/, first.")
    latest = max(reports, key=lambda report: report["date"])
    parts = [_circumstances(reports, latest), HOW_TO_READ, _summary(reports)]
    parts += [_section(report, latest) for report in reports]
    return "\n\n".join(parts)


def insert(page: str, measured: str) -> str:
    """Return the page with the part between its marks replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks the marks {BEGIN!r} and {END!r}, between which the figures belong.")
    return f"{before}{BEGIN}\n\n{measured}\n\n{END}{after}"


def write_page(reports: Sequence[dict[str, Any]], path: Path = PAGE) -> None:
    """Write the figures of the reports into the page."""
    path.write_text(insert(path.read_text(encoding="utf-8"), render(reports)), encoding="utf-8")


def in_table(cells: Sequence[str]) -> str:
    """Return a row of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _circumstances(reports: Sequence[dict[str, Any]], latest: dict[str, Any]) -> str:
    machine, minutes = latest["machine"], sum(report["seconds"] for report in reports) / 60
    versions = ", ".join(f"{name} {number}" for name, number in latest["versions"].items())
    return (
        f"Measured on {latest['date'][:10]} at commit {latest['commit']}, in {minutes:.0f} minutes altogether, on "
        f"{machine['cores']} cores of {machine['processor']} with {machine['memory_gb']:.0f} GB ({machine['system']}); "
        f"{versions}."
    )


def _summary(reports: Sequence[dict[str, Any]]) -> str:
    rows = [in_table(("script", "lines", "targets met", "missed", "minutes")), "|---|---:|---:|---|---:|"]
    for report in reports:
        lines = lines_of(report)
        missed = [line.name for line in lines if line.met is False]
        met = sum(line.met is True for line in lines)
        trouble = ([f"FAILED: {report['failed']}"] if report["failed"] else []) + missed
        link = f"[{report['title']}](#{anchor(report['title'])})"
        cells = (link, str(len(lines)), f"{met} of {met + len(missed)}", "; ".join(trouble))
        rows.append(in_table((*cells, f"{report['seconds'] / 60:.1f}")))
    return "\n".join(rows)


def _section(report: dict[str, Any], latest: dict[str, Any]) -> str:
    parts = [f"### {report['title']}", f"`python speed/{report['script']}.py`; warm-up: {report['warm_up']}."]
    different = [
        text
        for same, text in (
            (report["machine"] == latest["machine"], f"on another machine, {report['machine']}"),
            (report["versions"] == latest["versions"], "with other versions of some packages"),
            (report["commit"] == latest["commit"], f"at commit {report['commit']}"),
            (not report["quick"], "in small sizes, to try the script"),
        )
        if not same
    ]
    if different:
        parts[-1] += f" Measured on {report['date'][:10]} {', '.join(different)}."
    if report["failed"]:
        parts.append(f"**The script failed**: `{report['failed']}`.")
    for title, lines in groups_of(report).items():
        used = [column for column in range(len(HEADINGS)) if any(line.cells()[column] for line in lines)]
        table = [f"{title}:\n"] if title != report["title"] else []
        table.append(in_table([HEADINGS[column] for column in used]))
        table.append("|" + "|".join("---:" if HEADINGS[column] in RIGHT else "---" for column in used) + "|")
        table += [in_table([line.cells()[column] for column in used]) for line in lines]
        parts.append("\n".join(table))
    return "\n\n".join(parts)


def anchor(title: str) -> str:
    """Return the anchor that Markdown gives to a heading.

    >>> anchor("Training, against PyEPO")
    'training-against-pyepo'
    """
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")
