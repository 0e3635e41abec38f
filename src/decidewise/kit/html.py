"""Results as a small table of HTML, which notebooks show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape


def html_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    bold: Collection[int] = (),
    below: Iterable[str] = (),
    folded: Sequence[str] = (),
) -> str:
    """Return a table with the first column to the left, and lines of text below it.

    Parameters
    ----------
    headings, rows
    bold : collection of int
        The rows that stand out.
    below : iterable of str
    folded : sequence of str
        Lines that are shown on a click.

    >>> html_table(["model", "regret"], [["a < b", "1.0"]], below=["of 3 rows"]).splitlines()[-1]
    '<p>of 3 rows</p>'
    """
    head = "".join(f'<th style="text-align: {_side(j)}">{escape(text)}</th>' for j, text in enumerate(headings))
    lines = [f"<table><thead><tr>{head}</tr></thead><tbody>"]
    for i, row in enumerate(rows):
        weight = "; font-weight: bold" if i in bold else ""
        cells = (f'<td style="text-align: {_side(j)}{weight}">{escape(text)}</td>' for j, text in enumerate(row))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines.append("</tbody></table>")
    lines += [f"<p>{escape(text)}</p>" for text in below]
    if folded:
        items = "".join(f"<li>{escape(text)}</li>" for text in folded)
        lines.append(f"<details><summary>{len(folded)} notes</summary><ul>{items}</ul></details>")
    return "\n".join(lines)


def _side(column: int) -> str:
    return "right" if column else "left"
